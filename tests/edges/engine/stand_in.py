"""A program that says hello as an engine does, and no more."""

import sys
from pathlib import Path

from pilothouse.engine.process import CONTRACT

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


def stand_in(place: Path, contract: int = CONTRACT) -> Path:
    """Write it there, and return its path."""
    binary = place / "engine"
    binary.write_text(ENGINE % contract)
    binary.chmod(0o700)
    return binary
