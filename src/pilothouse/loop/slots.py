"""Places for work on clusters: so many at once, and no cluster can keep the others from them.

A cluster that takes requests and never answers holds what works on it until time-outs end it, which may take a
minute. So a cluster has a share of its own, smaller than the whole, and work that takes unusually long gives the
common place back and goes on beside the others: it waits for its cluster, not for this machine.
"""

import asyncio
from datetime import timedelta
from typing import Self
from weakref import WeakValueDictionary

# An action's own work takes a fraction of this, unless its cluster is slow to answer.
PATIENCE = timedelta(seconds=2)


class Slots:
    """The places, common to all clusters."""

    def __init__(self, at_once: int, patience: timedelta = PATIENCE) -> None:
        self._common = asyncio.Semaphore(at_once)
        self._share = max(1, at_once * 3 // 4)
        self._patience = patience.total_seconds()
        # A cluster's share lives as long as somebody wants a part of it.
        self._shares: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def on(self, cluster: str) -> "Slot":
        """Return a place for work on that cluster, to be entered."""
        share = self._shares.get(cluster)
        if share is None:
            self._shares[cluster] = share = asyncio.Semaphore(self._share)
        return Slot(self._common, share, self._patience)


class Slot:
    """One place; given back once, early or at the end."""

    def __init__(
        self, common: asyncio.Semaphore, share: asyncio.Semaphore, patience: float
    ) -> None:
        self._common = common
        self._share = share
        self._patience = patience
        self._held: list[asyncio.Semaphore] = []
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Self:
        # The share first: who waits for its own cluster keeps nobody waiting.
        try:
            for place in (self._share, self._common):
                await place.acquire()
                self._held.append(place)
        except asyncio.CancelledError:
            self.release()
            raise
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._patience, self._give_back, self._common)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Give back what is held: the rest of the work only waits."""
        if self._timer:
            self._timer.cancel()
        for place in tuple(self._held):
            self._give_back(place)

    def _give_back(self, place: asyncio.Semaphore) -> None:
        if place in self._held:
            self._held.remove(place)
            place.release()
