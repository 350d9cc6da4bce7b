"""Every cluster that releases go to: one client and one pair of eyes per distinct credentials."""

import asyncio
from collections import Counter
from collections.abc import Callable

import structlog

from pilothouse.api.kinds import PROVIDER_CONFIG
from pilothouse.api.meta import Key, ObjectMeta
from pilothouse.api.provider import ProviderConfig
from pilothouse.api.release import Release
from pilothouse.clusters.cache import Cache
from pilothouse.clusters.credentials import CredentialReader
from pilothouse.clusters.target import ClusterTarget, WakeRelease
from pilothouse.core.desired import ReleaseName
from pilothouse.engine.client import EngineClient
from pilothouse.errors import (
    ClusterForgotten,
    InvalidInput,
    Missing,
    PilothouseError,
)
from pilothouse.faults import FaultKind
from pilothouse.ports import Credentials

log = structlog.get_logger(__name__)


class Fleet:
    """Targets by ProviderConfig name; implements ports.Targets."""

    def __init__(
        self,
        engine: EngineClient,
        configs: Cache[ProviderConfig],
        *,
        credentials: CredentialReader,
        wake: WakeRelease,
        wake_all: Callable[[str], None],
    ) -> None:
        self._engine = engine
        self._configs = configs
        self._credentials = credentials
        self._wake = wake
        self._wake_all = wake_all
        self._targets: dict[str, tuple[ClusterTarget, asyncio.Task[None]]] = {}
        # Which credentials a config stands for, and whether they must be read anew.
        self._known: dict[str, Credentials] = {}
        self._stale: set[str] = set()
        self._management_used = False
        self._tasks: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Own the eyes' tasks until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            await asyncio.get_running_loop().create_future()

    async def reach(self, release: Release) -> ClusterTarget:
        """Return the cluster of a Release."""
        return await self.reach_config(self.config_of(release))

    def disregard(self, target: str, release: ReleaseName) -> None:
        """Nobody looks after that release any more."""
        held = self._targets.get(target)
        if held:
            held[0].disregard(release)

    def config_of(self, release: Release) -> str:
        """Name the ProviderConfig of a Release: the one it names, or the one it selects."""
        selector = release.spec.provider_selector
        if selector is None or not selector.match_controller_ref:
            return release.spec.provider_config_ref.name
        mine = _controller_uid(release.metadata)
        for key in self._configs:
            config = self._configs.get(key)
            if mine and config and _controller_uid(config.metadata) == mine:
                return key.name
        # Without a controller of its own it selects none, whatever there is: no ProviderConfig is known to be gone.
        gone = ClusterForgotten if mine else Missing
        raise gone(
            "spec.providerSelector.matchControllerRef: "
            "no ProviderConfig has the same controller as this Release",
            FaultKind.NOT_FOUND,
        )

    async def reach_config(self, config_name: str) -> ClusterTarget:
        """Return the cluster a ProviderConfig names; without a name, the one that Releases are on."""
        if not config_name:
            self._management_used = True
            return self._target(self._credentials.management)
        known = before = self._known.get(config_name)
        if self._credentials.rotated(config_name):
            self._stale.add(config_name)
        if known is None or config_name in self._stale:
            # First, so that a change during the reading is not lost.
            self._stale.discard(config_name)
            try:
                known = await self._credentials.read(config_name)
                # Refuse a bad kubeconfig here, by name, rather than in an endless watch.
                await self._connect(config_name, known)
            except PilothouseError:
                self._stale.add(config_name)  # what was known before does not hold any more
                raise
            self._known[config_name] = known
            target = self._target(known)
            self._close_unused()
            if before and before != known:
                # Whoever still went by what was known before goes over too.
                self._wake_all(before.fingerprint)
            return target
        return self._target(known)

    def config_changed(self, config_name: str) -> None:
        """Read the credentials anew on the next reach."""
        if self._configs.get(Key(PROVIDER_CONFIG.qualified, "", config_name)) is None:
            self._known.pop(config_name, None)
            self._credentials.forget(config_name)
            self._close_unused()
        self._stale.add(config_name)

    def watched(self) -> Counter[tuple[str, str]]:
        """Count the releases by ProviderConfig and how closely they are watched."""
        counted: Counter[tuple[str, str]] = Counter()
        for config, credentials in self._known.items():
            held = self._targets.get(credentials.fingerprint)
            for mode, count in held[0].watched().items() if held else ():
                counted[config, mode] = count
        return counted

    def _target(self, credentials: Credentials) -> ClusterTarget:
        held = self._targets.get(credentials.fingerprint)
        if held:
            return held[0]
        if self._tasks is None:
            msg = "the fleet is not running"
            raise PilothouseError(msg)
        target = ClusterTarget(self._engine, credentials, self._wake, self._wake_all)
        task = self._tasks.create_task(target.look(), name=f"eyes on {target.id}")
        self._targets[credentials.fingerprint] = (target, task)
        return target

    def _close_unused(self) -> None:
        used = {credentials.fingerprint for credentials in self._known.values()}
        if self._management_used:
            used.add(self._credentials.management.fingerprint)
        for fingerprint in [one for one in self._targets if one not in used]:
            _, task = self._targets.pop(fingerprint)
            task.cancel()

    async def _connect(self, config_name: str, credentials: Credentials) -> None:
        try:
            await self._engine.connect(credentials)
        except InvalidInput as error:
            msg = f'ProviderConfig "{config_name}": {error.message}'
            raise InvalidInput(msg, FaultKind.INVALID) from None


def _controller_uid(metadata: ObjectMeta) -> str:
    return next((one.uid for one in metadata.owner_references if one.controller), "")
