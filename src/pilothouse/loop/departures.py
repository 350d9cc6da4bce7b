"""Releases that are being deleted while their cluster cannot be reached."""

from datetime import datetime, timedelta

from pilothouse.api.meta import Key
from pilothouse.api.release import Release
from pilothouse.core.abandon import ABANDON, Farewell, conclude_abandoned, farewell
from pilothouse.errors import ClusterForgotten, PilothouseError
from pilothouse.loop.commit import Committer
from pilothouse.ports import Clock


def abandoned(release: Release) -> bool:
    """Whether someone asked to let go of a deleted Release without an uninstall."""
    metadata = release.metadata
    return bool(metadata.deletion_timestamp) and metadata.annotations.get(ABANDON) == "true"


class Departures:
    """Remembers since when a cluster has been certainly gone; a restart counts anew, to be on the safe side."""

    def __init__(self, committer: Committer, clock: Clock, patience: timedelta | None) -> None:
        self._committer = committer
        self._clock = clock
        self._patience = patience
        self._gone_since: dict[Key, datetime] = {}

    def forget(self, key: Key) -> None:
        """The cluster was reached, or the object is gone."""
        self._gone_since.pop(key, None)

    def judge(self, key: Key, error: PilothouseError) -> Farewell:
        """Say whether to let go, and what to tell meanwhile."""
        now = self._clock.now()
        if not isinstance(error, ClusterForgotten):
            self.forget(key)
            return farewell(error.message, None, now, self._patience)
        since = self._gone_since.setdefault(key, now)
        return farewell(error.message, since, now, self._patience)

    async def record(self, key: Key, release: Release, cluster: str, why: str) -> None:
        """Keep in the archive what was left behind, and tell it."""
        conclusion = conclude_abandoned(release, cluster, why, self._clock.now())
        await self._committer.commit(key, release, conclusion)
