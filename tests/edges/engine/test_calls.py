"""Many calls share one connection to the engine: each has its own answer, end and cancellation."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from pilothouse.api.kinds import NAMESPACE, Kind
from pilothouse.api.meta import Object
from pilothouse.engine.client import EngineClient
from pilothouse.engine.process import EngineProcess
from pilothouse.errors import EngineLost, InvalidInput, Missing
from pilothouse.ports import Credentials

CONFIG_MAP = Kind(
    group="", version="v1", kind="ConfigMap", plural="configmaps", struct=Object, namespaced=True
)


@dataclass
class SilentServer:
    """Takes requests, one on each connection, and never answers."""

    port: int = 0
    asked: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    left: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    waiting: set[str] = field(default_factory=set)

    @property
    def credentials(self) -> Credentials:
        config = {
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c"}}],
            "current-context": "c",
        }
        return Credentials(kubeconfig=json.dumps(config).encode(), trusted=True)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readline()).decode()
        if line:  # whoever is told in time to leave connects, and asks nothing
            path = line.split(" ")[1]
            self.waiting.add(path)
            self.asked.put_nowait(path)
            with contextlib.suppress(ConnectionError):
                await reader.read()
            self.waiting.discard(path)
            self.left.put_nowait(path)
        writer.close()


@pytest.fixture
async def silent() -> AsyncIterator[SilentServer]:
    silent = SilentServer()
    server = await asyncio.start_server(silent.serve, "127.0.0.1", 0)
    silent.port = server.sockets[0].getsockname()[1]
    yield silent
    server.close()


async def test_many_at_once_have_their_own_answers(engine: EngineClient, at, namespace) -> None:
    async def one(number: int) -> None:
        name = f"many-{number}"
        with pytest.raises(Missing, match=name):
            await engine.get(at, CONFIG_MAP, name, namespace)
        # From tiny to large.
        data = {"text": str(number) * (1 if number % 20 else 300_000)}
        body = json.dumps({"metadata": {"name": name}, "data": data}).encode()
        assert json.loads(await engine.create(at, CONFIG_MAP, body, namespace))["data"] == data
        got = json.loads(await engine.get(at, CONFIG_MAP, name, namespace))
        assert (got["metadata"]["name"], got["data"]) == (name, data)
        await engine.delete(at, CONFIG_MAP, name, namespace)

    async with asyncio.timeout(120), asyncio.TaskGroup() as tasks:
        for number in range(200):
            tasks.create_task(one(number))


async def test_all_that_wait_hear_of_the_engines_death(
    process: EngineProcess, engine: EngineClient, silent: SilentServer, at
) -> None:
    async with asyncio.timeout(60):
        asking = [
            asyncio.create_task(engine.get(silent.credentials, NAMESPACE, f"n{number}"))
            for number in range(30)
        ]
        for _ in asking:
            await silent.asked.get()
        os.kill((await process.current()).pid, signal.SIGKILL)
        ends = await asyncio.gather(*asking, return_exceptions=True)
        assert {(type(end), str(end)) for end in ends} == {
            (EngineLost, "the engine went away during get")
        }
        assert await engine.get(at, NAMESPACE, "default")


async def test_a_cancelled_call_ends_in_the_engine_too(
    engine: EngineClient, silent: SilentServer, at
) -> None:
    async with asyncio.timeout(60):
        left, stayed = (
            asyncio.create_task(engine.get(silent.credentials, NAMESPACE, name))
            for name in ("left", "stayed")
        )
        assert {await silent.asked.get(), await silent.asked.get()} == {
            "/api/v1/namespaces/left",
            "/api/v1/namespaces/stayed",
        }
        left.cancel()
        assert await silent.left.get() == "/api/v1/namespaces/left"
        assert left.cancelled() or not left.done()
        assert await engine.get(at, NAMESPACE, "default")
        assert not stayed.done()
        stayed.cancel()
        assert await silent.left.get() == "/api/v1/namespaces/stayed"


@pytest.mark.parametrize("sent", [False, True])
async def test_calls_that_are_cancelled_at_once_end_in_the_engine_too(
    process: EngineProcess, engine: EngineClient, silent: SilentServer, at, *, sent: bool
) -> None:
    calls = (await process.current()).calls
    async with asyncio.timeout(60):
        await engine.connect(silent.credentials)  # from here on a call takes one step to be made
        leaving = [
            asyncio.create_task(engine.get(silent.credentials, NAMESPACE, f"left-{number}"))
            for number in range(30)
        ]
        await asyncio.sleep(0)
        if sent:
            await asyncio.sleep(0)
        assert (len(calls._unsent), len(calls._waiting)) == (0 if sent else 30, 30)
        for call in leaving:
            call.cancel()
        stayed = asyncio.create_task(engine.get(silent.credentials, NAMESPACE, "stayed"))
        await asyncio.wait(leaving)
        assert all(call.cancelled() for call in leaving)
        while await silent.asked.get() != "/api/v1/namespaces/stayed":
            pass
        while silent.waiting != {"/api/v1/namespaces/stayed"}:
            await silent.left.get()
        assert await engine.get(at, NAMESPACE, "default")
        assert not stayed.done()
        stayed.cancel()


async def test_a_watch_that_is_left_ends_in_the_engine_too(
    engine: EngineClient, silent: SilentServer, at
) -> None:
    """Calls go on beside it, before and after."""
    async with asyncio.timeout(60):
        batches = engine.watch(silent.credentials, NAMESPACE)
        first = asyncio.create_task(anext(batches))
        asked = await silent.asked.get()
        assert asked.startswith("/api/v1/namespaces?")
        assert await engine.get(at, NAMESPACE, "default")
        first.cancel()
        assert await silent.left.get() == asked
        assert await engine.get(at, NAMESPACE, "default")


async def test_a_watch_of_nothing_that_is_says_so(engine: EngineClient, at) -> None:
    """Its failure is the last that comes, and other calls go on."""
    nowhere = Kind(group="", version="v1", kind="Nothing", plural="nothing/at/all", struct=Object)
    with pytest.raises(InvalidInput, match="nothing/at/all"):
        await anext(engine.watch(at, nowhere))
    assert await engine.get(at, NAMESPACE, "default")
