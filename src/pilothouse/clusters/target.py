"""One cluster that releases go to: its client and its eyes."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any

import msgspec
import structlog

from pilothouse.api.kinds import NAMESPACE
from pilothouse.clusters.eyes import Eyes
from pilothouse.clusters.objects import Objects
from pilothouse.core.attention import Attention
from pilothouse.core.desired import ChartAsk, ReleaseName
from pilothouse.core.drift_known import Correction
from pilothouse.core.observed import Decoded, ObjectRef, Record, Suspect, WatchMode
from pilothouse.core.observed import Objects as ObservedObjects
from pilothouse.core.outcome import Outcome
from pilothouse.engine.client import EngineClient
from pilothouse.engine.failures import as_error
from pilothouse.errors import (
    EngineLost,
    NotPermitted,
    PilothouseError,
)
from pilothouse.ports import Comparison, Credentials, Order, Progress, ResolvedChart, Sighting

log = structlog.get_logger(__name__)

REOPEN_SECONDS = 1.0
NEWS_AT_ONCE = 500
WakeRelease = Callable[[str, ReleaseName], None]


class ClusterTarget:
    """One cluster, reached with one set of credentials."""

    def __init__(
        self,
        engine: EngineClient,
        at: Credentials,
        wake: WakeRelease,
        wake_all: Callable[[str], None],
    ) -> None:
        self._engine = engine
        self._at = at
        self._objects = Objects(engine, at)
        self._identity = ""
        self._eyes = Eyes(
            lambda release: wake(self.id, release),
            lambda: wake_all(self.id),
        )
        self._heed: asyncio.Queue[Attention | ReleaseName] = asyncio.Queue()
        self._mode = WatchMode.CLUSTER

    @property
    def id(self) -> str:
        """Name the cluster, for the length of this process."""
        return self._at.fingerprint

    @property
    def objects(self) -> Objects:
        """Objects of the cluster."""
        return self._objects

    async def identity(self) -> str:
        """Name the cluster by its oldest namespace, which every cluster has and none shares."""
        if not self._identity:
            try:
                self._identity = (await self._objects.get(NAMESPACE, "kube-system")).metadata.uid
            except NotPermitted:
                self._identity = self.id
        return self._identity

    async def attend(self, attention: Attention) -> None:
        """Look after a release from now on, this way."""
        held = self._eyes.attention(attention.release)
        if held == attention:
            return
        expressions = [found for check in attention.checks for found in check.expressions()]
        if expressions:
            await self._engine.check_expressions(expressions)
        if self._eyes.attend(attention):
            self._heed.put_nowait(attention)

    def watched(self) -> Counter[str]:
        """Count the releases by how closely they are watched."""
        return self._eyes.watched()

    def disregard(self, release: ReleaseName) -> None:
        """Look after a release no longer."""
        if self._eyes.disregard(release):
            self._heed.put_nowait(release)

    def sees(self, release: ReleaseName) -> bool:
        """Whether every record of a release is known; raises what keeps the eyes shut."""
        fault = self._eyes.fault_of(release)
        if fault:
            raise as_error(fault)
        return self._eyes.sees(release)

    def record(self, release: ReleaseName) -> Record | None:
        """Return the newest revision."""
        return self._eyes.newest(release)

    def before(self, release: ReleaseName, revision: int) -> list[Record]:
        """Return the revisions before that one."""
        return self._eyes.before(release, revision)

    def objects_of(self, release: ReleaseName) -> ObservedObjects | None:
        """Return how the release's objects are."""
        return self._eyes.objects_of(release)

    def learn(self, release: ReleaseName, outcome: Outcome, *, removed: bool) -> None:
        """Take in what an action came to, ahead of the watch."""
        self._eyes.learn(release, outcome, removed=removed)

    async def read(self, api_version: str, kind: str, name: str, namespace: str) -> dict[str, Any]:
        """Read any object whole."""
        raw = await self._engine.get_by_kind(self._at, api_version, kind, name, namespace)
        found: dict[str, Any] = msgspec.json.decode(raw)
        return found

    async def resolve_chart(self, chart: ChartAsk) -> ResolvedChart:
        """Find the chart and bring it into the engine's cache."""
        return await self._engine.resolve_chart(chart)

    def run(self, order: Order) -> AsyncGenerator[Progress | Outcome, None]:
        """Do an action."""
        return self._engine.run(self._at, order)

    async def decode(self, release: ReleaseName, revision: int) -> Decoded:
        """Read a revision whole."""
        return await self._engine.decode(self._at, release, revision)

    async def compare(
        self, release: ReleaseName, revision: int, suspects: Sequence[Suspect]
    ) -> list[Comparison]:
        """Ask what applying these objects again would change."""
        return await self._engine.compare(self._at, release, revision, suspects)

    async def repair(
        self, release: ReleaseName, revision: int, corrections: Sequence[Correction]
    ) -> dict[ObjectRef, str]:
        """Apply objects of the deployed revision again; return why some could not be."""
        return await self._engine.repair(self._at, release, revision, corrections)

    async def look(self) -> None:
        """Keep the eyes open for ever, across engines."""
        while True:
            try:
                # An engine knows nothing at first, so it is told everything.
                self._heed = asyncio.Queue()
                for attention in self._eyes.attended():
                    self._heed.put_nowait(attention)
                async with aclosing(self._engine.observe(self._at, self._news)) as sightings:
                    async for sighting in sightings:
                        self._eyes.take(sighting)
                        self._tell_mode(sighting)
            except EngineLost:
                log.info("eyes re-open", cluster=self.id)
            except PilothouseError as error:
                log.warning("cannot observe", cluster=self.id, error=error.message)
                await asyncio.sleep(REOPEN_SECONDS)
            self._eyes.blind()

    async def _news(self) -> Sequence[Attention | ReleaseName]:
        """Wait for changes of what is looked after."""
        news = [await self._heed.get()]
        while not self._heed.empty() and len(news) < NEWS_AT_ONCE:
            news.append(self._heed.get_nowait())
        return news

    def _tell_mode(self, sighting: Sighting) -> None:
        for change in sighting.objects:
            if change.complete and change.watch != self._mode:
                self._mode = change.watch
                log.info("watch mode", cluster=self.id, mode=str(self._mode))
