"""What is still to be written: whatever cannot be written now is tried again, as nothing else would bring it back."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

import structlog

from pilothouse.core.retry import doubled
from pilothouse.errors import Missing, PilothouseError

log = structlog.get_logger(__name__)

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Delays:
    """How long things are put off, in seconds."""

    # News that come together are one write.
    settle: float = 0.0
    # After a failure, doubled with each that follows.
    first: float = 1.0
    longest: float = 60.0

    def after(self, failures: int) -> float:
        """Return how long to wait after so many failures."""
        return doubled(self.first, failures - 1, self.longest)


class Owed(Generic[K]):
    """Keys of what is to be written, one at a time."""

    def __init__(self, write: Callable[[K], Awaitable[None]], delays: Delays) -> None:
        self._write = write
        self._delays = delays
        self._due: set[K] = set()
        self._news = asyncio.Event()
        self._failures: dict[K, int] = {}
        self._timers: dict[K, asyncio.TimerHandle] = {}

    def add(self, key: K) -> None:
        """Have something written soon."""
        timer = self._timers.pop(key, None)
        if timer:
            timer.cancel()
        self._due.add(key)
        self._news.set()

    async def run(self) -> None:
        """Write what is due, until cancelled."""
        try:
            while True:
                await self._news.wait()
                await asyncio.sleep(self._delays.settle)
                self._news.clear()
                due, self._due = self._due, set()
                for key in due:
                    await self._try(key)
        finally:
            for timer in self._timers.values():
                timer.cancel()

    async def _try(self, key: K) -> None:
        try:
            await self._write(key)
        except Missing:
            self._failures.pop(key, None)  # it went meanwhile
        except PilothouseError as error:
            failures = self._failures.get(key, 0) + 1
            self._failures[key] = failures
            if failures == 1:
                log.warning("cannot write, trying again", about=str(key), error=error.message)
            if key not in self._due:  # otherwise it comes anyway
                wait = self._delays.after(failures)
                loop = asyncio.get_running_loop()
                self._timers[key] = loop.call_later(wait, self.add, key)
        else:
            self._failures.pop(key, None)
