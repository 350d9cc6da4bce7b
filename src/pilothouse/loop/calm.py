"""Hold details back for a moment, so that a rollout costs a few writes and not one per object."""

from datetime import datetime, timedelta

from pilothouse.api.meta import Key
from pilothouse.api.status import ReleaseStatus
from pilothouse.core.details import may_wait
from pilothouse.loop.queue import KeyedQueue
from pilothouse.ports import Clock

DETAILS_WAIT = timedelta(milliseconds=300)


class Calm:
    """Which keys have details to tell, and since when."""

    def __init__(self, queue: KeyedQueue, clock: Clock) -> None:
        self._queue = queue
        self._clock = clock
        self._since: dict[Key, datetime] = {}

    def holds(self, key: Key, before: ReleaseStatus, after: ReleaseStatus) -> bool:
        """Whether the write of `after` is to wait; the key comes again when it no longer is."""
        if before == after or not may_wait(before, after):
            self.forget(key)
            return False
        now = self._clock.now()
        left = DETAILS_WAIT - (now - self._since.setdefault(key, now))
        # A clock that was set back must not hold it for longer.
        if left <= timedelta() or left > DETAILS_WAIT:
            self.forget(key)
            return False
        self._queue.add_after(key, left)
        return True

    def forget(self, key: Key) -> None:
        """Nothing is held back any more."""
        self._since.pop(key, None)
