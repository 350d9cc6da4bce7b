"""Find the engine, start it, keep it alive, stop it.

One incarnation is one process with one socket and one channel; when it dies the next one gets new ones,
so that nothing can talk to the wrong process. It stops when its standard input closes, which a killed
parent does too.
"""

import asyncio
import contextlib
import json
import os
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc
import structlog

from pilothouse import gobuild
from pilothouse.engine.calls import ObjectCalls
from pilothouse.engine.place import private_directory
from pilothouse.engine.slack import late_timers
from pilothouse.errors import EngineLost, PilothouseError

# The socket for calls on single objects, and for watches, is beside the one for gRPC.
_OBJECTS = ".objects"
# A source checkout builds its engine when it is first needed.
SOURCE = Path(__file__).resolve().parents[3]
CONTRACT = 4
MESSAGE_LIMIT = 64 * 1024 * 1024
HANDSHAKE_SECONDS = 30.0
STOP_SECONDS = 10.0
STDERR_LINES = 50
FIRST_RESTART, LONGEST_RESTART = 0.05, 5.0
# An engine that was killed while it started may start the next time; one that is broken never does.
FIRST_TRIES = 4
# What ran this long was healthy: the next death is a new story.
HEALTHY_SECONDS = 10.0

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Incarnation:
    """One living engine."""

    number: int
    pid: int
    channel: grpc.aio.Channel
    calls: ObjectCalls
    version: str


def locate() -> Path:
    """Return the engine's path: named by PILOTHOUSE_ENGINE, in this package, or built from source."""
    named = os.environ.get("PILOTHOUSE_ENGINE")
    if named:
        path = Path(named)
        if not path.is_file():
            msg = f"PILOTHOUSE_ENGINE names {named}, which is not a file"
            raise PilothouseError(msg)
        return path
    packaged = Path(__file__).parent / "bin" / "pilothouse-engine"
    if packaged.is_file():
        return packaged
    try:
        return gobuild.build(gobuild.engine_program(SOURCE), gobuild.default_cache_root(), _report)
    except gobuild.GoBuildError as error:
        raise PilothouseError(str(error)) from None


def _report(line: str) -> None:
    log.info(line)


class EngineProcess:
    """Keeps exactly one engine alive while `running` is entered."""

    def __init__(self, binary: Path, cache_dir: Path, flags: Sequence[str] = ()) -> None:
        self._binary = binary
        self._arguments = ["--cache-dir", str(cache_dir), *flags]
        self._current: asyncio.Future[Incarnation] | None = None
        self._count = 0
        self._came_up = False
        self._tail: deque[str] = deque(maxlen=STDERR_LINES)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["EngineProcess"]:
        """Start the engine, restart it when it dies, stop it on leaving."""
        self._current = asyncio.get_running_loop().create_future()
        # The future may never be awaited; its exception must not be reported as forgotten.
        self._current.add_done_callback(lambda done: done.cancelled() or done.exception())
        keeper = asyncio.create_task(self._keep(), name="engine keeper")
        # Not a TaskGroup: that would wrap the caller's own errors into groups.
        try:
            yield self
        finally:
            keeper.cancel()
            await asyncio.wait({keeper})

    async def current(self) -> Incarnation:
        """Return the living engine, waiting for it to be restarted if need be."""
        if self._current is None:
            msg = "the engine has not been started"
            raise PilothouseError(msg)
        if self._current.done():
            return self._current.result()
        return await asyncio.shield(self._current)

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        pause = FIRST_RESTART
        while True:
            began = loop.time()
            try:
                await self._live_once()
            except EngineLost as lost:
                if not self._came_up and self._count >= FIRST_TRIES and self._current:
                    # It never came up: whoever waits for it must hear why, and not "try again".
                    self._current.set_exception(PilothouseError(lost.message))
                    return
                log.warning("engine died", error=lost.message, restart_in=pause)
            except Exception as error:
                log.exception("the engine's keeper failed")
                if self._current and not self._current.done():
                    self._current.set_exception(error)
                return
            finally:
                self._expect_next()
            if loop.time() - began > HEALTHY_SECONDS:
                pause = FIRST_RESTART
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_RESTART)

    def _expect_next(self) -> None:
        if self._current and self._current.done() and not self._current.exception():
            self._current = asyncio.get_running_loop().create_future()

    async def _live_once(self) -> None:
        """Run one incarnation to its end; always ends in EngineLost or cancellation."""
        self._count += 1
        self._tail.clear()
        with private_directory() as directory:
            socket = directory / f"{self._count}.sock"
            with late_timers():
                process = await asyncio.create_subprocess_exec(
                    str(self._binary),
                    "--socket",
                    str(socket),
                    *self._arguments,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                    # A terminal's Ctrl-C goes to the brain, which stops the engine when it is ready.
                    start_new_session=True,
                )
            drain = asyncio.create_task(self._drain(process), name="engine stderr")
            try:
                what = await self._serve(process, socket)
            finally:
                await _stop(process)
                # Its last words are the explanation: they must be read before it is told.
                await asyncio.wait({drain})
        raise EngineLost(self._epitaph(what or f"the engine ended with code {process.returncode}"))

    async def _serve(self, process: asyncio.subprocess.Process, socket: Path) -> str:
        """Offer one engine for as long as it lives; return why it never did, if so."""
        version, failure = await self._handshake(process)
        if failure:
            return failure
        try:
            _, calls = await asyncio.get_running_loop().create_unix_connection(
                ObjectCalls, f"{socket}{_OBJECTS}"
            )
        except OSError as error:
            return f"the engine's socket cannot be used: {error}"
        channel = _channel(socket)
        try:
            self._came_up = True
            if self._current:
                living = Incarnation(self._count, process.pid, channel, calls, version)
                self._current.set_result(living)
            await calls.lost.wait()
        finally:
            # First of all: whoever asks from now on waits for the next engine instead of using this one.
            self._expect_next()
            calls.close()
            await channel.close(grace=None)
        return ""

    async def _handshake(self, process: asyncio.subprocess.Process) -> tuple[str, str]:
        """Return the engine's version, or else why it is not one of ours."""
        assert process.stdout is not None
        try:
            async with asyncio.timeout(HANDSHAKE_SECONDS):
                line = await process.stdout.readline()
        except TimeoutError:
            return "", "the engine did not say hello"
        try:
            hello = json.loads(line)
        except ValueError:
            return "", "the engine did not start"
        if hello.get("contract") != CONTRACT:
            return "", f"the engine speaks contract {hello.get('contract')}, this is {CONTRACT}"
        return str(hello.get("version", "")), ""

    async def _drain(self, process: asyncio.subprocess.Process) -> None:
        """Read stderr to its end: a full pipe would stop the engine."""
        assert process.stderr is not None
        async for raw in process.stderr:
            line = raw.decode(errors="replace").rstrip()
            self._tail.append(line)
            log.debug("engine", line=line)

    def _epitaph(self, what: str) -> str:
        said = "; ".join(list(self._tail)[-5:])
        return f"{what}: {said}" if said else what


def _channel(socket: Path) -> grpc.aio.Channel:
    return grpc.aio.insecure_channel(
        f"unix:{socket}",
        options=[
            ("grpc.max_receive_message_length", MESSAGE_LIMIT),
            ("grpc.max_send_message_length", MESSAGE_LIMIT),
            # The socket is ours alone: no proxy from the environment, no other name.
            ("grpc.enable_http_proxy", 0),
            ("grpc.default_authority", "engine"),
        ],
    )


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    if process.stdin:
        process.stdin.close()
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
