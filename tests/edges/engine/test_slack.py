"""What is started with late timers has them, and who starts it has not."""

import asyncio
import ctypes
import sys
from pathlib import Path

from pilothouse.engine.process import CONTRACT, EngineProcess
from pilothouse.engine.slack import LATE_NANOSECONDS, late_timers

GET = 30
# Says hello as an engine does, and in its version how late its timers may be.
ENGINE = f"""\
#!{sys.executable}
import ctypes, json, socket, sys
path = sys.argv[sys.argv.index("--socket") + 1]
doors = [socket.socket(socket.AF_UNIX) for _ in range(2)]
for door, name in zip(doors, (path, path + ".objects")):
    door.bind(name)
    door.listen()
late = ctypes.CDLL(None).prctl({GET}, 0, 0, 0, 0)
print(json.dumps({{"contract": %d, "version": str(late)}}), flush=True)
sys.stdin.read()
"""


def timer_slack() -> int:
    return int(ctypes.CDLL(None).prctl(GET, 0, 0, 0, 0))


async def test_the_engine_has_late_timers_and_the_brain_has_not(tmp_path: Path) -> None:
    binary = tmp_path / "engine"
    binary.write_text(ENGINE % CONTRACT)
    binary.chmod(0o700)
    before = timer_slack()
    assert before != LATE_NANOSECONDS
    async with EngineProcess(binary, tmp_path).running() as process, asyncio.timeout(60):
        assert (await process.current()).version == str(LATE_NANOSECONDS)
    assert timer_slack() == before


def test_whoever_starts_two_things_at_once_is_left_as_it_was() -> None:
    before, one, other = timer_slack(), late_timers(), late_timers()
    one.__enter__()
    other.__enter__()
    assert timer_slack() == LATE_NANOSECONDS
    one.__exit__(None, None, None)
    other.__exit__(None, None, None)
    assert timer_slack() == before
