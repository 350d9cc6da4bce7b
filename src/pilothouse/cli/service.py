"""How a service of ours runs: on the fastest loop there is, and not in the way of who is at work."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def serve(service: Coroutine[Any, Any, T]) -> T:
    """Run it to its end, in this thread."""
    _give_way()
    with asyncio.Runner(loop_factory=_uvloop()) as runner:
        return runner.run(service)


def _give_way() -> None:
    """Be a batch process, and so everything that is started from here, unless an operator has chosen otherwise.

    Whoever wakes up usually pushes aside who runs. Our work is thousands of small steps, each woken by an answer of an
    API server: pushing it aside for every one cost us a third of our CPU where we share its cores. A batch process
    takes the next free moment, and then finds several answers. Where a core is free, that is at once.
    """
    # Only Linux has it, not with every C library, and a sandbox may forbid it.
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            if os.sched_getscheduler(0) == os.SCHED_OTHER:
                os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _uvloop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's loop where the server extra is installed; the standard one serves as well."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
