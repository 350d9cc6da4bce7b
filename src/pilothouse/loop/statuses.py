"""Statuses: what is known of a Release at once, and what is told of it when it is time.

A pass reads back what the pass before concluded, told or not. What may wait (core/pace.py) is told together with
what follows; a crash loses it like any status that was not written yet, and the next start concludes from Helm's
records.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from weakref import WeakValueDictionary

import msgspec
import structlog

from pilothouse.api.meta import Key
from pilothouse.api.release import Release
from pilothouse.api.status import ReleaseStatus
from pilothouse.core.pace import BEGUN, LONGEST, is_next_step, patience
from pilothouse.errors import Missing, PilothouseError
from pilothouse.loop.queue import KeyedQueue
from pilothouse.ports import Clock, Releases, Writer

log = structlog.get_logger(__name__)

# How soon to try again when the cluster that Releases are on is away.
AFTER_OUTAGE = timedelta(seconds=5)


_Write = Callable[[Key, Release, ReleaseStatus], Awaitable[Release]]


@dataclass(frozen=True, slots=True)
class _Held:
    uid: str
    status: ReleaseStatus
    first: datetime
    until: datetime


class Statuses:
    """Which Releases have something to tell, and since when."""

    def __init__(self, releases: Releases, writer: Writer, queue: KeyedQueue, clock: Clock) -> None:
        self._releases = releases
        self._writer = writer
        self._queue = queue
        self._clock = clock
        self._held: dict[Key, _Held] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._turns: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()
        self._telling: set[asyncio.Task[None]] = set()

    def known(self, key: Key, release: Release) -> Release:
        """Return the Release with the newest status, told or not."""
        held = self._held.get(key)
        if held is None or held.uid != release.metadata.uid:
            return release
        return msgspec.structs.replace(release, status=held.status)

    def current(self, key: Key, release: Release) -> Release:
        """Return a Release as a pass began with it, with the newest status: that pass may have concluded something."""
        newest = self.known(key, self._told(key, release))
        return msgspec.structs.replace(release, status=newest.status)

    def get(self, key: Key) -> Release | None:
        """Return the latest sight of a Release, with its newest status."""
        release = self._releases.get(key)
        return self.known(key, release) if release else None

    async def write(self, key: Key, release: Release, status: ReleaseStatus) -> Release:
        """Tell a status, now or soon; return the Release with it."""
        async with self._turn(key):
            return await self._write(key, release, status)

    async def _write(self, key: Key, release: Release, status: ReleaseStatus) -> Release:
        told = self._told(key, release)
        if told.status == status:
            self.forget(key)
            return msgspec.structs.replace(release, status=status)
        if self._may_wait(key, told, status):
            return msgspec.structs.replace(release, status=status)
        return await self._write_now(key, release, status)

    async def _write_now(self, key: Key, release: Release, status: ReleaseStatus) -> Release:
        written = await self._writer.status(self._told(key, release), status)
        self.forget(key)
        if written.metadata.generation == release.metadata.generation:
            return written
        # The edit that came with the answer is for the next pass: this one judges the spec that it began with.
        return msgspec.structs.replace(release, status=written.status)

    async def tell_due(self, key: Key) -> None:
        """Tell what has waited for long enough; a pass that had more to say has told it along."""
        await self._tell(key, self._write)

    async def tell_all(self) -> None:
        """Tell everything, before the end; what cannot be told is concluded by the next start."""
        if self._telling:
            await asyncio.wait(self._telling)
        for key in list(self._held):
            if not await self._tell(key, self._write_now):
                return

    async def _tell(self, key: Key, write: _Write) -> bool:
        """Tell what is held back of one key; False when there is nobody to tell now."""
        async with self._turn(key):
            held, release = self._held.get(key), self._releases.get(key)
            if held is None or release is None or held.uid != release.metadata.uid:
                self.forget(key)
                return True
            try:
                await write(key, release, held.status)
            except Missing:
                self.forget(key)
            except PilothouseError as error:
                # It is kept, and the next pass may have more to say.
                log.warning("cannot write", key=str(key), error=error.message)
                self._hold(key, replace(held, until=self._clock.now() + AFTER_OUTAGE))
                return False
            return True

    def forget_all(self) -> None:
        """Somebody else has the word now."""
        for key in list(self._held):
            self.forget(key)

    def begun(self, key: Key) -> None:
        """It is this Release's turn: what is being done is soon told, unless it is soon done."""
        held, until = self._held.get(key), self._clock.now() + BEGUN
        if held and until < held.until:
            self._hold(key, replace(held, until=until))

    def forget(self, key: Key) -> None:
        """Nothing is held back any more."""
        self._held.pop(key, None)
        timer = self._timers.pop(key, None)
        if timer:
            timer.cancel()

    def _may_wait(self, key: Key, told: Release, status: ReleaseStatus) -> bool:
        """Hold a status back, if that is in time; its key comes again when it no longer is."""
        now, uid = self._clock.now(), told.metadata.uid
        until, first = now + patience(told.status, status), now
        held = self._held.get(key)
        if held and held.uid == uid:
            first = held.first
            if not is_next_step(held.status, status):
                until = min(until, held.until)
        until = min(until, first + LONGEST)
        # A clock that was set back must not hold it for longer.
        if until <= now or first > now:
            return False
        self._hold(key, _Held(uid, status, first, until))
        return True

    def _hold(self, key: Key, held: _Held) -> None:
        self.forget(key)
        left = (held.until - self._clock.now()).total_seconds()
        self._timers[key] = asyncio.get_running_loop().call_later(left, self._due, key)
        self._held[key] = held

    def _due(self, key: Key) -> None:
        """Let a pass tell it along with what there is more to say, unless that pass is a long one."""
        if not self._queue.busy(key):
            self._queue.add(key)
            return
        task = asyncio.get_running_loop().create_task(self.tell_due(key), name=f"tell {key}")
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    def _turn(self, key: Key) -> asyncio.Lock:
        """Return the lock of one key: what is newer is written later."""
        turn = self._turns.get(key)
        if turn is None:
            self._turns[key] = turn = asyncio.Lock()
        return turn

    def _told(self, key: Key, release: Release) -> Release:
        """Return the Release with the status that everybody can read."""
        seen = self._releases.get(key)
        return seen if seen and seen.metadata.uid == release.metadata.uid else release
