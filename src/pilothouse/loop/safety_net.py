"""Every Release has a pass now and then, although nothing was heard of it.

Whatever matters wakes the Releases it concerns; if a wake or a timer was ever lost, by a fault of ours, this is where
the Release goes on. Such a pass looks at what is known already: of a Release at rest it makes no request, and what a
watch never told it does not see either.
"""

import asyncio
from collections.abc import Iterable
from datetime import timedelta

from pilothouse.api.meta import Key
from pilothouse.loop.queue import KeyedQueue


async def look_after_all(releases: Iterable[Key], queue: KeyedQueue, every: timedelta) -> None:
    """Queue each once in that time, for ever; one after the other, so that there is never a crowd."""
    while True:
        # Those that come meanwhile have passes of their own; those that go cost a look at nothing.
        keys = tuple(releases)
        pause = every.total_seconds() / max(len(keys), 1)
        if not keys:
            await asyncio.sleep(pause)
        for key in keys:
            await asyncio.sleep(pause)
            queue.add(key)
