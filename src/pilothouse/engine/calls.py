"""Calls on single objects, and watches: frames of the contract's messages on a socket of their own.

The same calls through gRPC cost several times as much, in this process alone. What is asked at the same moment is
written at once.
"""

import asyncio
import struct
from collections import deque
from collections.abc import AsyncGenerator
from itertools import count
from typing import cast

from google.protobuf.message import DecodeError

from pilothouse.engine.v1 import engine_pb2 as pb
from pilothouse.errors import EngineLost
from pilothouse.faults import FaultKind

_LENGTH = struct.Struct(">I")


class _Answers:
    """The answers to one watch, in their order; None is the end of the connection."""

    def __init__(self) -> None:
        self._unread: deque[pb.ObjectAnswer | None] = deque()
        self._news = asyncio.Event()

    def put(self, answer: pb.ObjectAnswer | None) -> None:
        self._unread.append(answer)
        self._news.set()

    async def next(self) -> pb.ObjectAnswer | None:
        while not self._unread:
            self._news.clear()
            await self._news.wait()
        return self._unread.popleft()


class ObjectCalls(asyncio.Protocol):
    """The calls to one living engine."""

    def __init__(self) -> None:
        self.lost = asyncio.Event()
        """Set when the connection has ended, which is when the engine has."""
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[pb.ObjectAnswer | None]] = {}
        self._watching: dict[int, _Answers] = {}
        self._unsent: list[bytes] = []
        self._received = bytearray()

    async def ask(self, call: pb.ObjectCall) -> pb.ObjectAnswer:
        """Make a call and wait for its answer; leaving early cancels it in the engine."""
        answer: pb.ObjectAnswer | None = None
        if self._transport is not None:
            call.id = number = next(self._numbers)
            waiting = self._waiting[number] = self._loop.create_future()
            self._send_soon(call)
            try:
                answer = await waiting
            except asyncio.CancelledError:
                self._leave(number)
                raise
        else:
            # Whoever tries again at once must not keep the loop from noticing that the engine is gone.
            await asyncio.sleep(0)
        if answer is None:
            raise _lost(call)
        return answer

    async def watch(self, call: pb.ObjectCall) -> AsyncGenerator[pb.ObjectAnswer, None]:
        """Make a call that has many answers: batches, and at last what ended it. Leaving ends it in the engine."""
        if self._transport is None:
            await asyncio.sleep(0)  # as above
            raise _lost(call)
        call.id = number = next(self._numbers)
        answers = self._watching[number] = _Answers()
        self._send_soon(call)
        try:
            while answer := await answers.next():
                yield answer
                if not answer.HasField("batch"):
                    return
        finally:
            if self._watching.pop(number, None) is not None:
                self._cancel(number)
        raise _lost(call)

    def close(self) -> None:
        """End all calls: what they did is unknown."""
        if self._transport is not None:
            self._transport.abort()
        self.connection_lost(None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take calls from here on."""
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  however it ended
        """Tell everyone who waits."""
        self._transport = None
        self.lost.set()
        self._unsent.clear()
        lost, self._waiting = self._waiting, {}
        for waiting in lost.values():
            if not waiting.done():
                waiting.set_result(None)
        watching, self._watching = self._watching, {}
        for answers in watching.values():
            answers.put(None)

    def data_received(self, data: bytes) -> None:
        """Hand out the answers that are complete."""
        received = self._received
        received += data
        start = 0
        while len(received) - start >= _LENGTH.size:
            end = start + _LENGTH.size + _LENGTH.unpack_from(received, start)[0]
            if len(received) < end:
                break
            self._answered(bytes(received[start + _LENGTH.size : end]))
            start = end
        del received[:start]

    def _answered(self, message: bytes) -> None:
        try:
            answer = pb.ObjectAnswer.FromString(message)
        except DecodeError:
            self.close()
            return
        waiting = self._waiting.pop(answer.id, None)
        if waiting is not None:
            if not waiting.done():
                waiting.set_result(answer)
        elif answer.id in self._watching:
            self._watching[answer.id].put(answer)

    def _leave(self, number: int) -> None:
        if self._waiting.pop(number, None) is not None:
            self._cancel(number)

    def _cancel(self, number: int) -> None:
        self._send_soon(pb.ObjectCall(id=number, cancel=True))

    def _send_soon(self, call: pb.ObjectCall) -> None:
        message = call.SerializeToString()
        if not self._unsent:
            self._loop.call_soon(self._send)
        self._unsent.append(_LENGTH.pack(len(message)) + message)

    def _send(self) -> None:
        if self._transport is not None:
            self._transport.write(b"".join(self._unsent))
        self._unsent.clear()


def _lost(call: pb.ObjectCall) -> EngineLost:
    msg = f"the engine went away during {call.WhichOneof('verb')}"
    return EngineLost(msg, FaultKind.ENGINE_LOST)
