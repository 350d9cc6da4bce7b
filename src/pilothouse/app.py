"""The composition root: opens the doors, hands each its ports, closes in reverse."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import structlog

from pilothouse.api.kinds import CONFIG_MAP, PROVIDER_CONFIG, RELEASE, SECRET, Kind
from pilothouse.api.meta import Key, ObjectMeta
from pilothouse.clusters import crds
from pilothouse.clusters.cache import Cache
from pilothouse.clusters.fleet import Fleet
from pilothouse.clusters.lease import InstanceLease, new_instance
from pilothouse.clusters.names import NOT_HELM, follow_names
from pilothouse.clusters.objects import Objects
from pilothouse.clusters.references import ReferenceCache
from pilothouse.clusters.unserved import UnservedNotes
from pilothouse.clusters.usages import UsageKeeper
from pilothouse.clusters.writer import ReleaseWriter
from pilothouse.engine.client import EngineClient
from pilothouse.engine.process import EngineProcess, locate
from pilothouse.errors import PilothouseError
from pilothouse.history.archive import SqliteArchive
from pilothouse.loop.controller import Controller
from pilothouse.ports import Credentials, LoopSettings, Reference
from pilothouse.settings import ControllerSettings, cache_dir

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


async def run_controller(settings: ControllerSettings, stop: asyncio.Event) -> None:
    """Run the controller until `stop`."""
    at = credentials_of(settings.kubeconfig, settings.context)
    process = EngineProcess(locate(), settings.cache / "engine", settings.engine_flags())
    async with SqliteArchive(settings.archive) as archive, process.running():
        engine = EngineClient(process)
        await crds.install(engine, at)
        await Composition(settings, engine, at, archive).run(stop)


class Composition:
    """Every part of the controller, and what each hears from the others."""

    def __init__(
        self,
        settings: ControllerSettings,
        engine: EngineClient,
        at: Credentials,
        archive: SqliteArchive,
    ) -> None:
        self._engine, self._at = engine, at
        objects = Objects(engine, at)
        instance = new_instance()
        self._releases, self._configs = Cache(RELEASE), Cache(PROVIDER_CONFIG)
        self._references = ReferenceCache(objects)
        self._lease = InstanceLease(objects, instance, settings.namespace)
        self._fleet = Fleet(
            engine,
            at,
            self._configs,
            namespace=settings.namespace,
            # Late: the fleet wakes the controller, which is made after it because it uses the fleet.
            wake=lambda *seen: self._controller.helm_release_changed(*seen),  # noqa: PLW0108
            wake_all=lambda target: self._controller.target_changed(target),  # noqa: PLW0108
        )
        self._controller = Controller(
            releases=self._releases,
            targets=self._fleet,
            references=self._references,
            composer=engine,
            instances=self._lease,
            writer=ReleaseWriter(objects, self._releases, instance),
            archive=archive,
            clock=SystemClock(),
            settings=LoopSettings(
                instance=instance,
                namespace=settings.namespace,
                workers=settings.workers,
                actions_at_once=settings.actions_at_once,
            ),
        )
        self._usages = UsageKeeper(objects, self._configs, self._controller.users)
        self._unserved = UnservedNotes(objects)

    async def run(self, stop: asyncio.Event) -> None:
        """Open every door, work until `stop`, close them."""
        configs_known = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            doors = [
                tasks.create_task(work, name=name)
                for name, work in (
                    ("fleet", self._fleet.run()),
                    ("lease", self._lease.beat()),
                    ("usages", self._usages.run()),
                    ("watch configs", self._follow_configs(configs_known)),
                    ("watch releases", self._follow_releases(configs_known)),
                    ("watch secrets", self._follow_names(SECRET, NOT_HELM)),
                    ("watch config maps", self._follow_names(CONFIG_MAP, "")),
                    ("watch namespaced releases", self._unserved.follow(self._engine, self._at)),
                )
            ]
            await self._controller.run(stop)
            log.info("stopping")
            for door in doors:
                door.cancel()
            await asyncio.wait(doors)

    async def _follow_configs(self, known: asyncio.Event) -> None:
        def changed(key: Key, _value: msgspec.Struct | None) -> None:
            self._config_changed(key.name)

        await self._configs.follow(self._engine, self._at, changed, synced=known.set)

    async def _follow_releases(self, configs_known: asyncio.Event) -> None:
        def changed(key: Key, value: msgspec.Struct | None) -> None:
            for config in self._controller.release_changed(key, value):
                self._usages.changed(config)

        def report() -> None:
            log.info("watching", releases=len(self._releases), configs=len(self._configs))

        # A Release seen before its ProviderConfig would be refused for nothing.
        await configs_known.wait()
        await self._releases.follow(self._engine, self._at, changed, synced=report)

    async def _follow_names(self, kind: Kind[Any], field_selector: str) -> None:
        def changed(metadata: ObjectMeta, gone: bool) -> None:  # noqa: FBT001 - a callback's shape
            reference = Reference(kind.kind, metadata.namespace, metadata.name)
            version = metadata.resource_version
            self._controller.wake(self._references.changed(reference, version, gone=gone))
            if kind is SECRET:
                for config in self._fleet.configs_reading(metadata.namespace, metadata.name):
                    self._config_changed(config)

        await follow_names(self._engine, self._at, kind, changed, field_selector=field_selector)

    def _config_changed(self, config: str) -> None:
        self._fleet.config_changed(config)
        self._controller.config_changed(config)
        self._usages.changed(config)


async def engine_versions() -> tuple[str, str]:
    """Start an engine, ask it for its and Helm's version, and stop it."""
    process = EngineProcess(locate(), cache_dir() / "engine")
    async with process.running():
        hello = await EngineClient(process).hello()
        return hello.version, hello.helm_version
