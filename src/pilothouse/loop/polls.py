"""Releases that ask, by annotation, to be looked at again and again although nothing was heard of them.

Watches tell what changes, so nobody needs this for ordinary work; whoever does not trust them, or reads values of
objects that nobody watches, has the cluster itself asked at an interval.
"""

import asyncio
from datetime import datetime

from pilothouse.api.meta import Key
from pilothouse.api.release import Release
from pilothouse.core.polling import poll_interval
from pilothouse.loop.queue import KeyedQueue
from pilothouse.ports import Clock


class Polls:
    """When each of them is due."""

    def __init__(self, queue: KeyedQueue, clock: Clock) -> None:
        self._queue = queue
        self._clock = clock
        self._next: dict[Key, datetime] = {}
        # Timers of its own: the queue keeps one per key, which is for what a pass waits for.
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        # Whose timer has ended: timers and the clock that people read do not agree to the millisecond.
        self._rung: set[Key] = set()

    def due(self, key: Key, release: Release) -> bool:
        """Whether the cluster is to be asked now; sees to it that the key is queued for the next time."""
        every = poll_interval(release)
        if every is None:
            self.forget(key)
            return False
        now, planned = self._clock.now(), self._next.get(key)
        rung = key in self._rung
        if planned and not rung and now < planned <= now + every:
            return False
        self.forget(key)
        self._next[key] = now + every
        loop = asyncio.get_running_loop()
        self._timers[key] = loop.call_later(every.total_seconds(), self._ring, key)
        # What was never looked at before is being looked at anyway.
        return planned is not None and (rung or planned <= now)

    def forget(self, key: Key) -> None:
        """The object is gone, or asks no more."""
        self._next.pop(key, None)
        self._rung.discard(key)
        timer = self._timers.pop(key, None)
        if timer:
            timer.cancel()

    def _ring(self, key: Key) -> None:
        self._rung.add(key)
        self._queue.add(key)
