"""Releases that go: those that are done with, and those that are being deleted while their cluster is out of reach."""

from datetime import datetime, timedelta

import structlog

from pilothouse.api.meta import Key
from pilothouse.api.release import Release
from pilothouse.core.abandon import ABANDON, Farewell, conclude_abandoned, farewell
from pilothouse.core.desired import Desired
from pilothouse.core.outcome import Fault
from pilothouse.errors import ClusterForgotten, Conflict, EngineLost, PilothouseError
from pilothouse.loop.commit import Committer
from pilothouse.loop.queue import KeyedQueue
from pilothouse.loop.refusals import Refusals
from pilothouse.loop.survey import Surveyor
from pilothouse.ports import Clock, Writer

log = structlog.get_logger(__name__)


def abandoned(release: Release) -> bool:
    """Whether someone asked to let go of a deleted Release without an uninstall."""
    metadata = release.metadata
    return bool(metadata.deletion_timestamp) and metadata.annotations.get(ABANDON) == "true"


class Departures:
    """Lets Releases go.

    Since when a cluster has been certainly gone is only remembered: a restart counts anew, to be on the safe side.
    """

    def __init__(
        self,
        surveyor: Surveyor,
        writer: Writer,
        committer: Committer,
        refusals: Refusals,
        queue: KeyedQueue,
        clock: Clock,
        patience: timedelta | None,
    ) -> None:
        self._surveyor = surveyor
        self._writer = writer
        self._committer = committer
        self._refusals = refusals
        self._queue = queue
        self._clock = clock
        self._patience = patience
        self._gone_since: dict[Key, datetime] = {}
        self._let_go: dict[Key, str] = {}

    def forget(self, key: Key) -> None:
        """The object is gone."""
        self.reached(key)
        self._let_go.pop(key, None)

    def reached(self, key: Key) -> None:
        """The cluster answers."""
        self._gone_since.pop(key, None)

    def is_over(self, key: Key, release: Release) -> bool:
        """Whether this very Release was let go."""
        return self._let_go.get(key) == release.metadata.uid

    async def let_go(self, key: Key, release: Release) -> None:
        """Have nothing to do with a Release any more."""
        await self._writer.let_go(release)
        self._let_go[key] = release.metadata.uid

    async def abandon(self, key: Key, release: Release, why: str) -> None:
        """Let go of a Release and leave what it stands for: told, and kept in the archive."""
        cluster = self._surveyor.cluster_of(key, release)
        conclusion = conclude_abandoned(release, cluster, why, self._clock.now())
        await self._committer.commit(key, release, conclusion)
        await self.let_go(key, release)
        log.warning("abandoned", key=str(key), reason=why)

    async def cannot_remove(
        self, key: Key, release: Release, wanted: Desired | None, error: PilothouseError
    ) -> None:
        """The cluster of a Release that is being deleted cannot be reached: wait, or let go."""
        verdict = self._judge(key, error)
        if not verdict.now:
            await self._refusals.refuse(key, release, wanted, Fault(error.kind, verdict.message))
            if verdict.until:
                self._queue.add_after(key, verdict.until - self._clock.now())
            return
        try:
            await self.abandon(key, release, verdict.message)
        except (Conflict, EngineLost):
            self._queue.add(key)

    def _judge(self, key: Key, error: PilothouseError) -> Farewell:
        """Say whether to let go, and what to tell meanwhile."""
        now = self._clock.now()
        if not isinstance(error, ClusterForgotten):
            self.reached(key)
            return farewell(error.message, None, now, self._patience)
        since = self._gone_since.setdefault(key, now)
        return farewell(error.message, since, now, self._patience)
