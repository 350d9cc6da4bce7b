"""What is started with late timers has them, and who starts it has not."""

import asyncio
import ctypes
import sys
from pathlib import Path

from pilothouse.engine.process import CONTRACT, EngineProcess
from pilothouse.engine.slack import LATE_NANOSECONDS

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


async def test_the_engine_has_late_timers_and_the_brain_has_not(tmp_path: Path) -> None:
    binary = tmp_path / "engine"
    binary.write_text(ENGINE % CONTRACT)
    binary.chmod(0o700)
    before = ctypes.CDLL(None).prctl(GET, 0, 0, 0, 0)
    async with EngineProcess(binary, tmp_path).running() as process, asyncio.timeout(60):
        assert (await process.current()).version == str(LATE_NANOSECONDS)
    assert ctypes.CDLL(None).prctl(GET, 0, 0, 0, 0) == before != LATE_NANOSECONDS
