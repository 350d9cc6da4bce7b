"""The engine is started, replaced when it dies, and never outlives its brain."""

import asyncio
import contextlib
import os
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from stand_in import stand_in

from pilothouse import __version__
from pilothouse.engine.client import EngineClient
from pilothouse.engine.process import CONTRACT, EngineProcess, locate
from pilothouse.errors import EngineLost, PilothouseError


def alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


async def until(condition) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - another process has no Event to offer
            await asyncio.sleep(0.02)


async def hello(process: EngineProcess):
    """Say hello to the next engine; the death of the last one may not have been noticed yet."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(EngineLost):
                return await EngineClient(process).hello()
            await asyncio.sleep(0.01)


async def test_it_says_hello(engine: EngineClient) -> None:
    hello = await engine.hello()
    assert hello.contract == CONTRACT
    assert hello.helm_version.startswith("v4.3")


async def test_a_killed_engine_is_replaced_by_another(process: EngineProcess) -> None:
    first = await process.current()
    os.kill(first.pid, signal.SIGKILL)
    await until(lambda: not alive(first.pid))
    assert (await hello(process)).contract == CONTRACT
    second = await process.current()
    assert second.number == first.number + 1


async def test_a_call_under_way_ends_as_engine_lost(process: EngineProcess, engine, at) -> None:
    from pilothouse.api.kinds import NAMESPACE

    batches = engine.watch(at, NAMESPACE)
    await anext(batches)
    os.kill((await process.current()).pid, signal.SIGKILL)
    with pytest.raises(EngineLost):
        async for _ in batches:
            pass


async def test_whatever_is_asked_of_a_dying_engine_ends_as_engine_lost(
    process: EngineProcess, engine, at
) -> None:
    """Kill it again and again while calls are made: no other error ever comes out."""
    from pilothouse.api.kinds import NAMESPACE

    async def keep_asking() -> None:
        while True:
            try:
                await engine.get(at, NAMESPACE, "default")
                batches = engine.watch(at, NAMESPACE)
                async with contextlib.aclosing(batches):
                    await anext(batches)
            except EngineLost:
                pass

    async with asyncio.TaskGroup() as tasks:
        askers = [tasks.create_task(keep_asking()) for _ in range(8)]
        for _ in range(6):
            living = await process.current()
            with contextlib.suppress(ProcessLookupError):
                os.kill(living.pid, signal.SIGKILL)
            await hello(process)
        for asker in askers:
            asker.cancel()


async def test_it_ends_with_its_brain(tmp_path: Path) -> None:
    """SIGKILL gives the brain no chance to clean up; the engine notices by itself."""
    brain = textwrap.dedent(f"""
        import asyncio
        from pathlib import Path
        from pilothouse.engine.process import EngineProcess, locate
        async def main():
            async with EngineProcess(locate(), Path({str(tmp_path)!r})).running() as engine:
                print((await engine.current()).pid, flush=True)
                await asyncio.sleep(60)
        asyncio.run(main())
    """)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", brain, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout
    pid = int(await process.stdout.readline())
    assert alive(pid)
    process.kill()
    await process.wait()
    await until(lambda: not alive(pid))


async def test_a_program_that_is_no_engine_is_told_apart(tmp_path: Path) -> None:
    impostor = tmp_path / "impostor"
    impostor.write_text("#!/bin/sh\necho 'no such flag' >&2\nexit 3\n")
    impostor.chmod(0o755)
    async with EngineProcess(impostor, tmp_path).running() as engine:
        with pytest.raises(PilothouseError, match="did not start: no such flag") as caught:
            await engine.current()
        assert not isinstance(caught.value, EngineLost), "trying again would not help"


async def test_an_engine_of_another_contract_is_refused(tmp_path: Path) -> None:
    other = CONTRACT + 1
    async with EngineProcess(stand_in(tmp_path, other), tmp_path).running() as engine:
        with pytest.raises(PilothouseError) as caught:
            await engine.current()
    assert caught.value.message == f"the engine speaks contract {other}, this is {CONTRACT}"
    assert not isinstance(caught.value, EngineLost), "trying again would not help"


async def test_the_sockets_are_private(process: EngineProcess) -> None:
    pid = (await process.current()).pid
    arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    socket = Path(arguments[arguments.index(b"--socket") + 1].decode())
    both = {socket, Path(f"{socket}.objects")}
    assert set(socket.parent.glob("*.sock*")) == both
    assert [stat.S_IMODE(one.stat().st_mode) for one in both] == [0o600] * 2
    assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700


def test_a_wrong_path_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PILOTHOUSE_ENGINE", "/no/such/engine")
    with pytest.raises(PilothouseError, match="PILOTHOUSE_ENGINE names /no/such/engine"):
        locate()


def test_brain_and_engine_say_the_same_version() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pilothouse", "version"], capture_output=True, text=True, check=True
    )
    brain, engine, helm = done.stdout.splitlines()
    assert brain == f"pilothouse {__version__}"
    assert engine == f"engine {__version__}"
    assert helm.startswith("helm v4.")
