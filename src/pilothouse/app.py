"""The composition root: opens the doors, hands each its ports, closes in reverse."""

import asyncio
import contextlib
import secrets
import socket
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import structlog

from pilothouse.api.kinds import PROVIDER_CONFIG, RELEASE
from pilothouse.api.meta import Key
from pilothouse.clusters import crds
from pilothouse.clusters.cache import Cache
from pilothouse.clusters.fleet import Fleet
from pilothouse.clusters.names import follow_secrets
from pilothouse.clusters.objects import Objects
from pilothouse.clusters.writer import ReleaseWriter
from pilothouse.engine.client import EngineClient
from pilothouse.engine.process import EngineProcess, locate
from pilothouse.errors import PilothouseError
from pilothouse.history.archive import SqliteArchive
from pilothouse.loop.controller import Controller
from pilothouse.ports import Credentials, LoopSettings
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
    instance = f"{socket.gethostname()[:30]}-{secrets.token_hex(4)}"
    process = EngineProcess(locate(), settings.cache / "engine")
    async with SqliteArchive(settings.archive) as archive, process.running():
        engine = EngineClient(process)
        await crds.install(engine, at)
        await _serve(settings, stop, engine, at, archive, instance)


async def _serve(
    settings: ControllerSettings,
    stop: asyncio.Event,
    engine: EngineClient,
    at: Credentials,
    archive: SqliteArchive,
    instance: str,
) -> None:
    releases, configs = Cache(RELEASE), Cache(PROVIDER_CONFIG)
    configs_known = asyncio.Event()
    fleet = Fleet(
        engine,
        at,
        configs,
        # The fleet wakes the controller and the controller reaches into the fleet: one of them comes first.
        wake=lambda target, release: controller.helm_release_changed(target, release),  # noqa: PLW0108
        wake_all=lambda target: controller.target_changed(target),  # noqa: PLW0108
    )
    controller = Controller(
        releases=releases,
        targets=fleet,
        writer=ReleaseWriter(Objects(engine, at), releases, instance),
        archive=archive,
        clock=SystemClock(),
        settings=LoopSettings(
            instance=instance,
            workers=settings.workers,
            actions_at_once=settings.actions_at_once,
        ),
    )

    def config_changed(key: Key, _value: msgspec.Struct | None) -> None:
        fleet.config_changed(key.name)
        controller.config_changed(key.name)

    def secret_changed(namespace: str, name: str) -> None:
        for config in fleet.configs_reading(namespace, name):
            fleet.config_changed(config)
            controller.config_changed(config)

    async def follow_releases() -> None:
        # A Release seen before its ProviderConfig would be refused for nothing.
        await configs_known.wait()
        await releases.follow(engine, at, controller.release_changed, synced=report)

    def report() -> None:
        log.info("watching", releases=len(releases), configs=len(configs), instance=instance)

    async with asyncio.TaskGroup() as tasks:
        doors = [
            tasks.create_task(fleet.run(), name="fleet"),
            tasks.create_task(
                configs.follow(engine, at, config_changed, synced=configs_known.set),
                name="watch configs",
            ),
            tasks.create_task(follow_releases(), name="watch releases"),
            tasks.create_task(follow_secrets(engine, at, secret_changed), name="watch secrets"),
        ]
        await controller.run(stop)
        log.info("stopping")
        for door in doors:
            door.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait(doors)


async def engine_versions() -> tuple[str, str]:
    """Start an engine, ask it for its and Helm's version, and stop it."""
    process = EngineProcess(locate(), cache_dir() / "engine")
    async with process.running():
        hello = await EngineClient(process).hello()
        return hello.version, hello.helm_version
