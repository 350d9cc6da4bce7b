"""Every cluster that releases go to: one client and one pair of eyes per distinct credentials."""

import asyncio
import base64
import os
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec
import structlog

from pilothouse.api.kinds import PROVIDER_CONFIG, SECRET
from pilothouse.api.meta import Key, ObjectMeta
from pilothouse.api.provider import Credentials as SourceOfCredentials
from pilothouse.api.provider import ProviderConfig, SecretKeyReference
from pilothouse.api.release import Release
from pilothouse.clusters.cache import Cache
from pilothouse.clusters.eyes import Eyes
from pilothouse.clusters.objects import Objects
from pilothouse.core.desired import ChartAsk, ReleaseName
from pilothouse.core.observed import Decoded, Record
from pilothouse.core.observed import Objects as ObservedObjects
from pilothouse.core.outcome import Outcome
from pilothouse.engine.client import EngineClient
from pilothouse.engine.failures import as_error
from pilothouse.errors import EngineLost, InvalidInput, Missing, PilothouseError
from pilothouse.faults import FaultKind
from pilothouse.ports import Credentials, Order, Progress, ResolvedChart

log = structlog.get_logger(__name__)

REOPEN_SECONDS = 1.0
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
        self._eyes = Eyes(
            lambda release: wake(self.id, release),
            lambda: wake_all(self.id),
        )

    @property
    def id(self) -> str:
        """Name the cluster, for the length of this process."""
        return self._at.fingerprint

    @property
    def objects(self) -> Objects:
        """Objects of the cluster."""
        return self._objects

    def sees(self) -> bool:
        """Whether every record is known; raises what keeps the eyes shut."""
        if self._eyes.fault:
            raise as_error(self._eyes.fault)
        return self._eyes.synced

    def record(self, release: ReleaseName) -> Record | None:
        """Return the newest revision."""
        return self._eyes.newest(release)

    def good_before(self, release: ReleaseName, revision: int) -> Record | None:
        """Return the newest revision before that one that was deployed."""
        return self._eyes.good_before(release, revision)

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

    async def look(self) -> None:
        """Keep the eyes open for ever, across engines."""
        while True:
            try:
                async with aclosing(self._engine.observe(self._at)) as sightings:
                    async for sighting in sightings:
                        self._eyes.take(sighting)
            except EngineLost:
                log.info("eyes re-open", cluster=self.id)
            except PilothouseError as error:
                log.warning("cannot observe", cluster=self.id, error=error.message)
                await asyncio.sleep(REOPEN_SECONDS)
            self._eyes.blind()


class Fleet:
    """Targets by ProviderConfig name; implements ports.Targets."""

    def __init__(
        self,
        engine: EngineClient,
        management: Credentials,
        configs: Cache[ProviderConfig],
        *,
        namespace: str,
        wake: WakeRelease,
        wake_all: Callable[[str], None],
    ) -> None:
        self._namespace = namespace
        self._engine = engine
        self._management = management
        self._secrets = Objects(engine, management)
        self._configs = configs
        self._wake = wake
        self._wake_all = wake_all
        self._targets: dict[str, tuple[ClusterTarget, asyncio.Task[None]]] = {}
        # Which credentials a config stands for, and whether they must be read anew.
        self._known: dict[str, Credentials] = {}
        self._stale: set[str] = set()
        self._readers: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._tasks: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Own the eyes' tasks until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            await asyncio.get_running_loop().create_future()

    async def reach(self, release: Release) -> ClusterTarget:
        """Return the cluster of a Release."""
        return await self.reach_config(self._config_name(release))

    def _config_name(self, release: Release) -> str:
        selector = release.spec.provider_selector
        if selector is None or not selector.match_controller_ref:
            return release.spec.provider_config_ref.name
        mine = _controller_uid(release.metadata)
        for key in self._configs:
            config = self._configs.get(key)
            if mine and config and _controller_uid(config.metadata) == mine:
                return key.name
        raise Missing(
            "spec.providerSelector.matchControllerRef: "
            "no ProviderConfig has the same controller as this Release",
            FaultKind.NOT_FOUND,
        )

    async def reach_config(self, config_name: str) -> ClusterTarget:
        """Return the cluster a ProviderConfig names."""
        known = self._known.get(config_name)
        if known is None or config_name in self._stale:
            self._stale.discard(config_name)
            known = await self._credentials(config_name)
            # Refuse a bad kubeconfig here, by name, rather than in an endless watch.
            await self._connect(config_name, known)
            self._known[config_name] = known
            target = self._target(known)
            self._close_unused()
            return target
        return self._target(known)

    def config_changed(self, config_name: str) -> None:
        """Read the credentials anew on the next reach."""
        if self._configs.get(Key(PROVIDER_CONFIG.qualified, "", config_name)) is None:
            self._known.pop(config_name, None)
            self._close_unused()
        self._stale.add(config_name)

    def configs_reading(self, namespace: str, name: str) -> set[str]:
        """Name the ProviderConfigs that read, or wanted to read, a Secret."""
        return self._readers.get((namespace, name), set())

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
        for fingerprint in [one for one in self._targets if one not in used]:
            _, task = self._targets.pop(fingerprint)
            task.cancel()

    async def _connect(self, config_name: str, credentials: Credentials) -> None:
        try:
            await self._engine.connect(credentials)
        except InvalidInput as error:
            msg = f'ProviderConfig "{config_name}": {error.message}'
            raise InvalidInput(msg, FaultKind.INVALID) from None

    async def _credentials(self, config_name: str) -> Credentials:
        config = self._configs.get(Key(PROVIDER_CONFIG.qualified, "", config_name))
        if config is None:
            msg = (
                f'ProviderConfig "{config_name}" not found: '
                "create it, or change spec.providerConfigRef.name"
            )
            raise Missing(msg, FaultKind.NOT_FOUND)
        return await self._read(config_name, config)

    async def _read(self, name: str, config: ProviderConfig) -> Credentials:
        spec = config.spec
        source = spec.credentials
        if source is None and spec.credentials_secret_ref is not None:
            loose = spec.credentials_secret_ref
            source = SourceOfCredentials(
                source="Secret",
                secret_ref=SecretKeyReference(
                    name=loose.name,
                    namespace=loose.namespace or self._namespace,
                    key=loose.key or "kubeconfig",
                ),
            )
        if source is None:
            raise InvalidInput(
                f'ProviderConfig "{name}": spec.credentials is missing', FaultKind.INVALID
            )
        identity, secret = "", b""
        if spec.identity:
            identity = spec.identity.type
            if spec.identity.source != "InjectedIdentity":
                secret = await self._bytes(name, "spec.identity", spec.identity)
        if source.source == "InjectedIdentity":
            return self._management
        kubeconfig = await self._bytes(name, "spec.credentials", source)
        return Credentials(kubeconfig=kubeconfig, identity=identity, identity_credentials=secret)

    async def _bytes(self, name: str, field: str, source: SourceOfCredentials) -> bytes:
        where = f'ProviderConfig "{name}": {field}'
        if source.source == "Secret" and source.secret_ref:
            return await self._secret(name, where, source.secret_ref)
        if source.source == "Environment" and source.env:
            return self._variable(where, source.env.name)
        if source.source == "Filesystem" and source.fs:
            return self._file(where, source.fs.path)
        needs = {"Secret": "secretRef", "Environment": "env", "Filesystem": "fs"}
        missing = needs.get(source.source)
        said = f"needs {missing}" if missing else "gives no credentials"
        raise InvalidInput(f"{where}: source {source.source} {said}", FaultKind.INVALID)

    def _variable(self, where: str, name: str) -> bytes:
        value = os.environ.get(name)
        if value is None:
            raise Missing(f"{where}: the environment has no variable {name}", FaultKind.NOT_FOUND)
        return value.encode()

    def _file(self, where: str, path: str) -> bytes:
        try:
            return Path(path).read_bytes()
        except OSError as error:
            raise Missing(f"{where}: {path}: {error.strerror}", FaultKind.NOT_FOUND) from None

    async def _secret(self, name: str, where: str, ref: SecretKeyReference) -> bytes:
        where = f"{where}: Secret {ref.namespace}/{ref.name}"
        self._readers[(ref.namespace, ref.name)].add(name)
        try:
            secret = await self._secrets.get(SECRET, ref.name, ref.namespace)
        except Missing:
            raise Missing(f"{where} not found", FaultKind.NOT_FOUND) from None
        data = secret.data or {}
        if ref.key not in data:
            raise InvalidInput(f'{where} has no key "{ref.key}"', FaultKind.INVALID)
        try:
            return base64.b64decode(data[ref.key], validate=True)
        except ValueError:
            raise InvalidInput(f'{where}, key "{ref.key}": not base64', FaultKind.INVALID) from None


def _controller_uid(metadata: ObjectMeta) -> str:
    return next((one.uid for one in metadata.owner_references if one.controller), "")
