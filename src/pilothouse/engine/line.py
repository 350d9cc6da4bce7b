"""The line to whichever engine is alive.

A cluster handle lives as long as one engine; credentials live longer. So every verb takes credentials, and
the handle for the living engine is looked up, or asked for, here.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from pilothouse.engine import codec
from pilothouse.engine.failures import as_error, our_errors
from pilothouse.engine.process import CONTRACT, EngineProcess, Incarnation
from pilothouse.engine.v1 import engine_pb2 as pb
from pilothouse.ports import Credentials

SERVICE = "/pilothouse.engine.v1.Engine/"


class EngineLine:
    """Speaks to whichever engine is alive."""

    def __init__(self, process: EngineProcess) -> None:
        self._process = process
        self._incarnation = 0
        self._handles: dict[str, str] = {}
        self._calls: dict[str, Any] = {}

    async def hello(self) -> pb.HelloReply:
        """Ask the engine for its versions."""
        reply: pb.HelloReply = await self._unary(
            "Hello", pb.HelloRequest(contract=CONTRACT), pb.HelloReply
        )
        return reply

    async def connect(self, credentials: Credentials) -> str:
        """Return the handle of a cluster in the living engine; needs no answer from the cluster."""
        living = await self._living()
        known = self._handles.get(credentials.fingerprint)
        if known:
            return known
        request = codec.connect_request(credentials)
        reply = await self._unary("Connect", request, pb.ConnectReply)
        if living.number == self._incarnation:
            self._handles[credentials.fingerprint] = reply.cluster
        handle: str = reply.cluster
        return handle

    async def _object(self, call: pb.ObjectCall) -> bytes:
        living = await self._living()
        answer = await living.calls.ask(call)
        if answer.HasField("fault"):
            raise as_error(codec.fault(answer.fault))
        return answer.object

    async def _watch(self, call: pb.ObjectCall) -> AsyncGenerator[pb.WatchBatch, None]:
        living = await self._living()
        async with aclosing(living.calls.watch(call)) as answers:
            async for answer in answers:
                if answer.HasField("fault"):
                    raise as_error(codec.fault(answer.fault))
                if answer.HasField("batch"):
                    yield answer.batch

    async def _unary(self, verb: str, request: Any, reply: type[Any]) -> Any:
        living = await self._living()
        call = self._calls.get(verb)
        if call is None:
            call = living.channel.unary_unary(
                SERVICE + verb,
                request_serializer=type(request).SerializeToString,
                response_deserializer=reply.FromString,
            )
            self._calls[verb] = call
        with our_errors(verb):
            return await call(request)

    async def _stream(self, verb: str, request: Any, reply: type[Any]) -> AsyncGenerator[Any, None]:
        living = await self._living()
        with our_errors(verb):
            call = living.channel.unary_stream(
                SERVICE + verb,
                request_serializer=type(request).SerializeToString,
                response_deserializer=reply.FromString,
            )(request)
            try:
                async for message in call:
                    yield message
            finally:
                call.cancel()

    async def _living(self) -> Incarnation:
        living = await self._process.current()
        if living.number != self._incarnation:
            self._incarnation = living.number
            self._handles.clear()
            self._calls.clear()
        return living
