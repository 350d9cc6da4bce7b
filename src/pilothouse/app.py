"""The composition root: opens the doors, hands each its ports, closes in reverse."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import structlog

from pilothouse.api.kinds import CONFIG_MAP, PROVIDER_CONFIG, RELEASE, SECRET, Kind
from pilothouse.api.meta import Key, ObjectMeta
from pilothouse.api.release import Release
from pilothouse.clusters import crds
from pilothouse.clusters.cache import Cache
from pilothouse.clusters.credentials import CredentialReader
from pilothouse.clusters.fleet import Fleet
from pilothouse.clusters.instance import new_instance
from pilothouse.clusters.lease import InstanceLease
from pilothouse.clusters.names import NOT_HELM, follow_names
from pilothouse.clusters.objects import Objects
from pilothouse.clusters.other_writers import OtherWriters
from pilothouse.clusters.references import ReferenceCache
from pilothouse.clusters.start import Patience, Stopped, reach
from pilothouse.clusters.unserved import UnservedNotes, census
from pilothouse.clusters.usages import UsageKeeper
from pilothouse.clusters.writer import ReleaseWriter
from pilothouse.core.desired import Defaults
from pilothouse.engine.client import EngineClient
from pilothouse.engine.process import EngineProcess, locate
from pilothouse.errors import PilothouseError
from pilothouse.gobuild import default_cache_root
from pilothouse.history.archive import SqliteArchive
from pilothouse.loop.controller import Controller
from pilothouse.metrics.counts import Counts, Snapshot, by_condition
from pilothouse.metrics.endpoint import serving
from pilothouse.ports import Credentials, LoopSettings, Reference, Say
from pilothouse.settings import ControllerSettings

log = structlog.get_logger(__name__)


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the current moment."""
        return datetime.now(UTC)


def credentials_of(kubeconfig: Path | None, context: str) -> Credentials:
    """Return the credentials of the management cluster; no kubeconfig means in-cluster."""
    if kubeconfig is None:
        return Credentials(in_cluster=True)
    try:
        content = kubeconfig.read_bytes()
    except OSError as error:
        msg = f"the kubeconfig {kubeconfig} cannot be read: {error.strerror}"
        raise PilothouseError(msg) from None
    return Credentials(kubeconfig=content, trusted=True, context=context)


def prepare_controller(
    settings: ControllerSettings, say: Say
) -> Callable[[asyncio.Event], Awaitable[None]]:
    """Return what runs the controller until an event; `say` tells what it would do when it may not act.

    Finding the engine may mean to build it, for minutes, in which a loop would hear no signal.
    """
    at = credentials_of(settings.kubeconfig, settings.context)
    process = EngineProcess(locate(), settings.cache / "engine", settings.engine_flags())
    return partial(_run_controller, settings, at, process, say)


async def _run_controller(
    settings: ControllerSettings,
    at: Credentials,
    process: EngineProcess,
    say: Say,
    stop: asyncio.Event,
) -> None:
    archive = SqliteArchive(settings.archive)
    async with process.running(), AsyncExitStack() as doors:
        doors.enter_context(suppress(Stopped))
        engine = EngineClient(process)
        await engine.hello()  # an engine that never comes up is nothing to wait for
        patience = Patience(stop)
        hands_off = await patience.ask("answer", partial(_why_hands_off, settings, engine, at))
        if hands_off:
            say(f"changing nothing: {hands_off}")
        if hands_off or settings.take_over:
            unserved = await patience.ask("list Releases", partial(census, engine, at))
            if unserved:
                say(unserved)
        if not hands_off:
            # Who changes nothing has nothing to keep, so no file is made.
            await doors.enter_async_context(archive)
            install = partial(crds.install, engine, at, take_over=settings.take_over)
            await patience.ask("serve our CRDs", install)
        composition = Composition(settings, engine, at, archive, say, hands_off)
        if settings.metrics:
            await doors.enter_async_context(serving(settings.metrics, composition.measure))
        await composition.run(stop)


async def _why_hands_off(
    settings: ControllerSettings, engine: EngineClient, at: Credentials
) -> str:
    await reach(engine, at)
    if settings.observe_only:
        return "--observe-only"
    return "" if settings.take_over else await crds.why_not_ours(engine, at)


class Composition:
    """Every part of the controller, and what each hears from the others."""

    def __init__(
        self,
        settings: ControllerSettings,
        engine: EngineClient,
        at: Credentials,
        archive: SqliteArchive,
        say: Say,
        hands_off: str,
    ) -> None:
        self._engine, self._at = engine, at
        self._counts = Counts()
        self._hands_off = hands_off
        objects = Objects(engine, at)
        instance = new_instance()
        self._releases, self._configs = Cache(RELEASE), Cache(PROVIDER_CONFIG)
        self._references = ReferenceCache(objects, self._wake)
        self._lease = InstanceLease(objects, instance, settings.namespace)
        self._credentials = CredentialReader(
            self._references,
            at,
            self._configs,
            namespace=settings.namespace,
            trust=settings.trust_kubeconfigs,
        )
        self._fleet = Fleet(
            engine,
            self._configs,
            credentials=self._credentials,
            # Late: the fleet wakes the controller, which is made after it because it uses the fleet.
            wake=lambda *seen: self._controller.helm_release_changed(*seen),  # noqa: PLW0108
            wake_all=lambda target: self._controller.target_changed(target),  # noqa: PLW0108
        )
        self._controller = Controller(
            releases=self._releases,
            targets=self._fleet,
            references=self._references,
            composer=engine,
            finder=engine,
            instances=self._lease,
            writer=ReleaseWriter(objects, self._releases, instance),
            archive=archive,
            clock=SystemClock(),
            say=say,
            meter=self._counts,
            settings=LoopSettings(
                instance=instance,
                namespace=settings.namespace,
                workers=settings.workers,
                actions_at_once=settings.actions_at_once,
                abandon_after=settings.abandon_after,
                hands_off=hands_off,
                defaults=Defaults(readiness=settings.readiness, drift=settings.drift_mode),
            ),
        )
        self._usages = UsageKeeper(objects, self._configs, self._controller.users)
        self._unserved = UnservedNotes(objects)
        self._others = OtherWriters(objects, self._another_writes)
        self._take_over = settings.take_over
        self._writing: list[asyncio.Task[None]] = []

    def measure(self) -> Snapshot:
        """Gather what there is to read for those who measure."""
        found = (self._releases.get(key) for key in self._releases)
        return Snapshot(
            actions=self._counts.actions.copy(),
            repairs=self._counts.repairs.copy(),
            releases=by_condition(one for one in found if one),
            watched=self._fleet.watched(),
            queued=self._controller.queued(),
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Open every door, work until `stop`, close them."""
        configs_known = asyncio.Event()
        looking = {
            "fleet": self._fleet.run(),
            "watch configs": self._follow_configs(configs_known),
            "watch releases": self._follow_releases(configs_known),
            "references": self._references.run(),
            "kubeconfig files": self._credentials.follow_files(self._config_changed),
            "watch secrets": self._follow_names(SECRET, NOT_HELM),
            "watch config maps": self._follow_names(CONFIG_MAP, ""),
        }
        async with asyncio.TaskGroup() as tasks:
            doors = [tasks.create_task(work, name=name) for name, work in looking.items()]
            if not self._hands_off:
                self._writing = [
                    tasks.create_task(self._lease.beat(), name="lease"),
                    tasks.create_task(self._usages.run(), name="usages"),
                    tasks.create_task(self._others.run(), name="other writers"),
                    tasks.create_task(
                        self._unserved.follow(self._engine, self._at), name="unserved releases"
                    ),
                ]
            await self._controller.run(stop)
            log.info("stopping")
            for door in (*doors, *self._writing):
                door.cancel()
            await asyncio.wait([*doors, *self._writing])

    def _another_writes(self, manager: str) -> None:
        """Another controller is at work on Releases: leave them to it, unless told otherwise."""
        if self._take_over:
            log.error("another controller writes the status of Releases", manager=manager)
            return
        for task in self._writing:
            task.cancel()
        self._controller.hands_off(
            f"another controller ({manager}) writes the status of Releases: "
            "stop it and start again, or start with --take-over"
        )

    async def _follow_configs(self, known: asyncio.Event) -> None:
        def changed(key: Key, _value: msgspec.Struct | None) -> None:
            self._config_changed(key.name)

        await self._configs.follow(self._engine, self._at, changed, synced=known.set)

    async def _follow_releases(self, configs_known: asyncio.Event) -> None:
        def changed(key: Key, value: msgspec.Struct | None) -> None:
            for config in self._controller.release_changed(key, value):
                self._usages.changed(config)
            if isinstance(value, Release) and value.status.conditions and known:
                self._others.suspect(key)

        known: list[bool] = []

        def report() -> None:
            known.append(True)
            log.info("watching", releases=len(self._releases), configs=len(self._configs))
            self._controller.releases_known()

        # A Release seen before its ProviderConfig would be refused for nothing.
        await configs_known.wait()
        await self._releases.follow(self._engine, self._at, changed, synced=report)

    async def _follow_names(self, kind: Kind[Any], field_selector: str) -> None:
        def changed(metadata: ObjectMeta, gone: bool) -> None:  # noqa: FBT001 - a callback's shape
            reference = Reference(kind.kind, metadata.namespace, metadata.name)
            self._references.changed(reference, metadata.resource_version, gone=gone)
            if kind is SECRET:
                self._controller.secret_changed(metadata.namespace, metadata.name)

        await follow_names(
            self._engine,
            self._at,
            kind,
            changed,
            listed=partial(self._references.listed, kind.kind),
            field_selector=field_selector,
        )

    def _wake(self, keys: set[Key]) -> None:
        """Keys of a Secret or ConfigMap changed that these Releases or ProviderConfigs use."""
        for key in keys:
            if key.kind == PROVIDER_CONFIG.qualified:
                self._config_changed(key.name)
        self._controller.wake(key for key in keys if key.kind == RELEASE.qualified)

    def _config_changed(self, config: str) -> None:
        self._fleet.config_changed(config)
        for changed in self._controller.config_changed(config) | {config}:
            self._usages.changed(changed)


def engine_versions() -> tuple[str, str]:
    """Start an engine, ask it for its and Helm's version, and stop it."""
    process = EngineProcess(locate(), default_cache_root() / "engine")

    async def ask() -> tuple[str, str]:
        async with process.running():
            hello = await EngineClient(process).hello()
            return hello.version, hello.helm_version

    return asyncio.run(ask())
