"""Let a process that is started here be woken by its timers a little late, and so less often.

Go's monitor thread asks to be woken after 20 microseconds, again and again while anything runs, and sleeps when nothing
does. In the engine, whose work is small steps between waits, that was a fifth of a small request. Linux wakes those who
do not mind together with others, or later: then that thread looks once, at what is over already.
"""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# From <linux/prctl.h>. A process begins with what the thread that started it had at that moment.
_SET, _GET = 29, 30
# No timer of the engine has to be more exact.
LATE_NANOSECONDS = 5_000_000


@contextmanager
def late_timers() -> Iterator[None]:
    """Give it to what this thread starts meanwhile; only Linux has it."""
    if sys.platform != "linux":
        yield
        return
    control = ctypes.CDLL(None).prctl
    control.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    before = control(_GET, 0, 0, 0, 0)
    # A sandbox may forbid it, and then it is as it was.
    control(_SET, LATE_NANOSECONDS, 0, 0, 0)
    try:
        yield
    finally:
        if before > 0:
            control(_SET, before, 0, 0, 0)
