"""A queue of keys: each is handed to one worker at a time, and asking twice is asking once.

A key that is asked for while a worker has it comes again when the worker is done, so nothing is missed and
no two passes over one object overlap.
"""

import asyncio
from collections import deque
from datetime import timedelta

from pilothouse.api.meta import Key


class KeyedQueue:
    """Keys that want a pass, now or later."""

    def __init__(self) -> None:
        self._ready: deque[Key] = deque()
        self._waiting: set[Key] = set()
        self._busy: set[Key] = set()
        self._again: set[Key] = set()
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._available = asyncio.Semaphore(0)

    def add(self, key: Key) -> None:
        """Ask for a pass as soon as possible."""
        if key in self._busy:
            self._again.add(key)
        elif key not in self._waiting:
            self._waiting.add(key)
            self._ready.append(key)
            self._available.release()

    def add_after(self, key: Key, delay: timedelta) -> None:
        """Ask for a pass later; the newest wish replaces an older one."""
        self.forget_timer(key)
        loop = asyncio.get_running_loop()
        seconds = max(delay.total_seconds(), 0.0)
        self._timers[key] = loop.call_later(seconds, self._due, key)

    def forget_timer(self, key: Key) -> None:
        """Drop the wish for a later pass."""
        timer = self._timers.pop(key, None)
        if timer:
            timer.cancel()

    def _due(self, key: Key) -> None:
        self._timers.pop(key, None)
        self.add(key)

    async def get(self) -> Key:
        """Take the next key; `done` must follow."""
        await self._available.acquire()
        key = self._ready.popleft()
        self._waiting.discard(key)
        self._busy.add(key)
        return key

    def done(self, key: Key) -> None:
        """Give a key back."""
        self._busy.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def __len__(self) -> int:
        return len(self._ready)

    def wants(self, key: Key) -> bool:
        """Whether a pass over a key is asked for or under way."""
        return key in self._waiting or key in self._busy

    def busy(self, key: Key) -> bool:
        """Whether a pass over a key is under way."""
        return key in self._busy

    def idle(self) -> bool:
        """Whether nothing is asked for now; timers do not count."""
        return not self._ready and not self._busy

    def close(self) -> None:
        """Drop all timers."""
        for key in list(self._timers):
            self.forget_timer(key)
