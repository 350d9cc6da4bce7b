"""Keys in, passes out: the workers, and what wakes them."""

import asyncio
from collections.abc import Iterable
from typing import Protocol

import msgspec
import structlog

from pilothouse.api.meta import Key
from pilothouse.api.release import Release
from pilothouse.core.desired import ReleaseName
from pilothouse.loop.actions import Actions
from pilothouse.loop.commit import Committer
from pilothouse.loop.passes import Passes
from pilothouse.loop.queue import KeyedQueue
from pilothouse.loop.reconcile import Reconciler
from pilothouse.loop.sources import SourceReader
from pilothouse.loop.triggers import Claims, Configs
from pilothouse.ports import (
    Archive,
    Clock,
    Composer,
    Instances,
    LoopSettings,
    References,
    Targets,
    Writer,
)

log = structlog.get_logger(__name__)


class Releases(Protocol):
    """Where the controller finds the latest sight of a Release."""

    def get(self, key: Key) -> Release | None:
        """Return the latest sight of one Release."""
        ...


class Controller:
    """Runs the loop for Releases."""

    def __init__(
        self,
        *,
        releases: Releases,
        targets: Targets,
        references: References,
        composer: Composer,
        instances: Instances,
        writer: Writer,
        archive: Archive,
        clock: Clock,
        settings: LoopSettings,
    ) -> None:
        self._releases = releases
        self._targets = targets
        self._sources = SourceReader(references, composer, settings.namespace)
        self._instances = instances
        self._writer = writer
        self._archive = archive
        self._clock = clock
        self._settings = settings
        self._queue = KeyedQueue()
        self._claims = Claims()
        self._configs = Configs()

    def release_changed(self, key: Key, value: msgspec.Struct | None) -> set[str]:
        """A Release appeared, changed or went; return the configs whose users this changes."""
        named = value.spec.provider_config_ref.name if isinstance(value, Release) else None
        self._queue.add(key)
        return self._configs.put(key, named)

    def users(self, config: str) -> int:
        """Count the Releases that use a config."""
        return len(self._configs.users(config))

    def config_changed(self, config: str) -> None:
        """A ProviderConfig, or what it refers to, changed."""
        for key in self._configs.users(config):
            self._queue.add(key)

    def wake(self, keys: Iterable[Key]) -> None:
        """Something these Releases refer to changed."""
        for key in keys:
            self._queue.add(key)

    def helm_release_changed(self, target: str, release: ReleaseName) -> None:
        """Something about a Helm release changed on a cluster."""
        for key in self._claims.of_release(target, release):
            self._queue.add(key)

    def target_changed(self, target: str) -> None:
        """A whole cluster came into sight, or went out of it."""
        for key in self._claims.of_target(target):
            self._queue.add(key)

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop`, then let what is being applied finish."""
        async with asyncio.TaskGroup() as tasks:
            actions = Actions(
                tasks, self._settings.actions_at_once, self._settings.instance, self._queue.add
            )
            committer = Committer(self._writer, self._archive, self._queue, self._clock)
            reconciler = Reconciler(
                targets=self._targets,
                sources=self._sources,
                instances=self._instances,
                writer=self._writer,
                committer=committer,
                actions=actions,
                queue=self._queue,
                claims=self._claims,
                clock=self._clock,
            )
            passes = Passes(tasks, self._settings.patience)
            workers = [
                tasks.create_task(self._work(reconciler, passes), name=f"worker {number}")
                for number in range(self._settings.workers)
            ]
            await stop.wait()
            # New passes could start new actions, so the workers rest first. What an action under way
            # comes to is in Helm's storage: the next start concludes it.
            for worker in workers:
                worker.cancel()
            await asyncio.wait(workers)
            await passes.stop()
            await actions.drain(self._settings.grace.total_seconds())
            self._queue.close()

    async def _work(self, reconciler: Reconciler, passes: Passes) -> None:
        while True:
            key = await self._queue.get()
            await passes.run(self._pass(reconciler, key), f"pass {key}")

    async def _pass(self, reconciler: Reconciler, key: Key) -> None:
        try:
            await self._one(reconciler, key)
        finally:
            self._queue.done(key)

    async def _one(self, reconciler: Reconciler, key: Key) -> None:
        release = self._releases.get(key)
        if release is None:
            reconciler.forget(key)
            return
        try:
            await reconciler.run_pass(key, release)
        except Exception:
            # The one place that catches everything: a bug must cost one release its pass, not all.
            log.exception("pass failed", key=str(key))
            self._queue.add_after(key, self._settings.after_bug)
