"""Let a process that is started here be woken by its timers a little late, and so less often.

Go's monitor thread asks to be woken after 20 microseconds, again and again while anything runs, and sleeps when nothing
does. In the engine, whose work is small steps between waits, that was a fifth of a small request. Linux wakes those who
do not mind together with others, or later: then that thread looks once, at what is over already.
"""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

# From <linux/prctl.h>. A process begins with what the thread that started it had at that moment.
_SET, _GET = 29, 30
# No timer of the engine has to be more exact.
LATE_NANOSECONDS = 5_000_000


@contextmanager
def late_timers() -> Iterator[None]:
    """Give it to what this thread starts meanwhile; only Linux has it, and a sandbox may forbid it."""
    usual = _usual()
    if usual > 0:
        _prctl(_SET, LATE_NANOSECONDS)
    try:
        yield
    finally:
        if usual > 0:
            _prctl(_SET, usual)


@cache
def _usual() -> int:
    """Return what this thread has by itself, even when two start something at the same time."""
    return _prctl(_GET, 0) if sys.platform == "linux" else 0


def _prctl(option: int, value: int) -> int:
    call = ctypes.CDLL(None).prctl
    call.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    answer: int = call(option, value, 0, 0, 0)
    return answer
