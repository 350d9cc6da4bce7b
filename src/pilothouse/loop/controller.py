"""Keys in, passes out: the workers, and what wakes them."""

import asyncio
from collections.abc import Iterable

import msgspec
import structlog

from pilothouse.api.meta import Key
from pilothouse.api.release import Release
from pilothouse.core.desired import ReleaseName
from pilothouse.errors import Missing
from pilothouse.loop.actions import Actions
from pilothouse.loop.commit import Committer
from pilothouse.loop.dependencies import Dependencies
from pilothouse.loop.helm_tests import HelmTests
from pilothouse.loop.observing import Lookout
from pilothouse.loop.passes import Passes
from pilothouse.loop.queue import KeyedQueue
from pilothouse.loop.reconcile import Reconciler
from pilothouse.loop.repairs import Repairs
from pilothouse.loop.rivals import Rivals
from pilothouse.loop.safety_net import look_after_all
from pilothouse.loop.sources import SourceReader
from pilothouse.loop.statuses import Statuses
from pilothouse.loop.survey import Surveyor
from pilothouse.loop.triggers import Claims, Configs, Connections
from pilothouse.loop.upgrades import Upgrades
from pilothouse.ports import (
    Archive,
    Clock,
    Composer,
    Instances,
    LoopSettings,
    Meter,
    References,
    Releases,
    Say,
    Targets,
    VersionFinder,
    Writer,
)

log = structlog.get_logger(__name__)


class Controller:
    """Runs the loop for Releases."""

    def __init__(
        self,
        *,
        releases: Releases,
        targets: Targets,
        references: References,
        composer: Composer,
        finder: VersionFinder,
        instances: Instances,
        writer: Writer,
        archive: Archive,
        clock: Clock,
        say: Say,
        meter: Meter,
        settings: LoopSettings,
    ) -> None:
        self._releases = releases
        self._targets = targets
        self._sources = SourceReader(references, composer, settings.namespace)
        self._finder = finder
        self._instances = instances
        self._writer = writer
        self._archive = archive
        self._clock = clock
        self._say = say
        self._meter = meter
        self._settings = settings
        self._hands_off = settings.hands_off
        self._queue = KeyedQueue()
        self._claims = Claims()
        self._configs = Configs()
        self._rivals = Rivals()
        self._connections = Connections()
        # Releases that find their ProviderConfig by who made both: any config may be theirs.
        self._selecting: dict[Key, Release] = {}
        self._statuses = Statuses(releases, writer, self._queue, clock)
        self._dependencies = Dependencies(self._statuses, targets, self._queue)
        self._known = asyncio.Event()

    def release_changed(self, key: Key, value: msgspec.Struct | None) -> set[str]:
        """A Release appeared, changed or went; return the configs whose users this changes."""
        release = value if isinstance(value, Release) else None
        self._queue.add(key)
        self._connections.put(key, _connection_secret(release))
        if release and release.spec.provider_selector:
            self._selecting[key] = release
        else:
            self._selecting.pop(key, None)
        self.wake(self._rivals.put(key, release))
        known = self._statuses.known(key, release) if release else None
        self.wake(self._dependencies.put(key, known))
        if release and not release.metadata.deletion_timestamp:
            self._sources.note(key, release)
        return self._configs.put(key, self._config_of(release))

    def _config_of(self, release: Release | None) -> str | None:
        if release is None:
            return None
        try:
            return self._targets.config_of(release)
        except Missing:
            return None

    def secret_changed(self, namespace: str, name: str) -> None:
        """A Secret changed that may be a connection secret."""
        key = self._connections.changed(namespace, name)
        if key:
            self._queue.add(key)

    def releases_known(self) -> None:
        """Every Release has been seen: only now is it known which of two is the older."""
        self._known.set()

    def queued(self) -> int:
        """Count the Releases that want a pass and wait for a worker."""
        return len(self._queue)

    def hands_off(self, why: str) -> None:
        """Change nothing any more, and say why; what is under way is let finish."""
        self._hands_off = why
        self._statuses.forget_all()
        self._say(f"changing nothing: {why}")

    def users(self, config: str) -> int:
        """Count the Releases that use a config."""
        return len(self._configs.users(config))

    def config_changed(self, config: str) -> set[str]:
        """A ProviderConfig, or what it refers to, changed; return the configs whose users this changes."""
        changed: set[str] = set()
        for key, release in self._selecting.items():
            changed |= self._configs.put(key, self._config_of(release))
            self._queue.add(key)
        self.wake(self._configs.users(config) | self._dependencies.of_config(config))
        return changed

    def wake(self, keys: Iterable[Key]) -> None:
        """Something these Releases refer to changed."""
        for key in keys:
            self._queue.add(key)

    def helm_release_changed(self, target: str, release: ReleaseName) -> None:
        """Something about a Helm release changed on a cluster."""
        self.wake(self._claims.of_release(target, release))
        self.wake(self._dependencies.of_sight(target, release))

    def target_changed(self, target: str) -> None:
        """A whole cluster came into sight, or went out of it."""
        self.wake(self._claims.of_target(target) | self._dependencies.of_target(target))

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop`, then let what is being applied finish."""
        async with asyncio.TaskGroup() as tasks:
            statuses = self._statuses
            actions = self._actions(tasks)
            committer = Committer(self._writer, statuses, self._archive, self._queue, self._clock)
            upgrades = Upgrades(tasks, self._finder, self._queue)
            testing = self._actions(tasks)
            repairs = Repairs(
                tasks,
                self._queue,
                self._clock,
                self._writer,
                statuses,
                self._archive,
                self._meter,
            )
            surveyor = Surveyor(
                releases=self._releases,
                targets=self._targets,
                sources=self._sources,
                instances=self._instances,
                actions=actions,
                claims=self._claims,
                rivals=self._rivals,
                upgrades=upgrades,
                dependencies=self._dependencies,
                defaults=self._settings.defaults,
            )
            tests = HelmTests(
                testing, committer, statuses, self._queue, self._clock, surveyor.errand
            )
            reconciler = Reconciler(
                surveyor=surveyor,
                writer=self._writer,
                statuses=statuses,
                committer=committer,
                actions=actions,
                repairs=repairs,
                tests=tests,
                queue=self._queue,
                clock=self._clock,
                connections=self._connections,
                abandon_after=self._settings.abandon_after,
            )
            lookout = Lookout(surveyor, self._releases, self._queue, self._clock, self._say)
            passes = Passes(tasks, self._settings.patience)
            workers = [
                tasks.create_task(self._work(reconciler, lookout, passes), name=f"worker {number}")
                for number in range(self._settings.workers)
            ]
            net = look_after_all(self._releases, self._queue, self._settings.look_again)
            looking = tasks.create_task(net, name="safety net")
            await stop.wait()
            looking.cancel()
            # New passes could start new actions, so the workers rest first. What an action under way
            # comes to is in Helm's storage: the next start concludes it.
            for worker in workers:
                worker.cancel()
            await asyncio.wait(workers)
            await passes.stop()
            await statuses.tell_all()
            upgrades.close()
            await repairs.drain(self._settings.grace.total_seconds())
            await testing.drain(self._settings.grace.total_seconds())
            await actions.drain(self._settings.grace.total_seconds())
            self._queue.close()

    def _actions(self, tasks: asyncio.TaskGroup) -> Actions:
        at_once, owner = self._settings.actions_at_once, self._settings.instance
        return Actions(tasks, at_once, owner, self._queue.add, self._statuses.begun, self._meter)

    async def _work(self, reconciler: Reconciler, lookout: Lookout, passes: Passes) -> None:
        await self._known.wait()
        while True:
            key = await self._queue.get()
            one = lookout if self._hands_off else reconciler
            await passes.run(self._pass(one, key), f"pass {key}")

    async def _pass(self, one: Reconciler | Lookout, key: Key) -> None:
        try:
            await self._one(one, key)
        finally:
            self._queue.done(key)

    async def _one(self, one: Reconciler | Lookout, key: Key) -> None:
        release = self._releases.get(key)
        if release is None:
            one.forget(key)
            return
        try:
            await one.run_pass(key, release)
            # What was just concluded about it is what its dependants may be waiting for, told or not.
            self.wake(self._dependencies.put(key, self._statuses.get(key)))
        except Exception:
            # The one place that catches everything: a bug must cost one release its pass, not all.
            log.exception("pass failed", key=str(key))
            self._queue.add_after(key, self._settings.after_bug)


def _connection_secret(release: Release | None) -> tuple[str, str] | None:
    ref = release.spec.write_connection_secret_to_ref if release else None
    if release is None or ref is None:
        return None
    return ref.namespace or release.metadata.namespace, ref.name
