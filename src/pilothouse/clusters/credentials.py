"""Read what a ProviderConfig says about how to reach its cluster."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pilothouse.api.kinds import PROVIDER_CONFIG
from pilothouse.api.meta import Key
from pilothouse.api.provider import Credentials as SourceOfCredentials
from pilothouse.api.provider import ProviderConfig, SecretKeyReference
from pilothouse.clusters.cache import Cache
from pilothouse.errors import ClusterForgotten, InvalidInput, Missing
from pilothouse.faults import FaultKind
from pilothouse.ports import Credentials, Reference, References, Use

# Nobody tells of files, and to look at one costs microseconds.
BETWEEN_LOOKS_SECONDS = 2
FileSight = tuple[int, int, int, int] | None


class CredentialReader:
    """Turns ProviderConfigs into credentials; a changed key of a Secret wakes the config that names it."""

    def __init__(
        self,
        references: References,
        management: Credentials,
        configs: Cache[ProviderConfig],
        *,
        namespace: str,
        trust: bool = False,
    ) -> None:
        self._references = references
        self._management = management
        self._configs = configs
        # A reference without a namespace means the controller's own.
        self._namespace = namespace
        # The files that configs were read from, as they were then.
        self._files: dict[str, dict[Path, FileSight]] = {}
        # The last change of them that was told.
        self._told: dict[str, dict[Path, FileSight]] = {}
        # The operator lets kubeconfigs run programs and read files, as provider-helm does.
        self._trust = trust

    @property
    def management(self) -> Credentials:
        """The credentials of the cluster that Releases are on."""
        return self._management

    async def read(self, config_name: str) -> Credentials:
        """Return the credentials a ProviderConfig stands for; raises what is missing, by its field."""
        config = self._configs.get(config_key(config_name))
        if config is None:
            msg = (
                f'ProviderConfig "{config_name}" not found: '
                "create it, or change spec.providerConfigRef.name"
            )
            raise ClusterForgotten(msg, FaultKind.NOT_FOUND)
        return await self._read_config(config_name, config)

    def rotated(self, config_name: str) -> bool:
        """Whether a file that a config was read from is no longer what it was."""
        files = self._files.get(config_name, {})
        return any(_sight_of(path) != seen for path, seen in files.items())

    async def follow_files(
        self, changed: Callable[[str], None], *, every: float = BETWEEN_LOOKS_SECONDS
    ) -> None:
        """Tell the configs whose files are written again, each change once, until cancelled."""
        while True:
            await asyncio.sleep(every)
            for name, files in list(self._files.items()):
                now = {path: _sight_of(path) for path in files}
                news = now not in (files, self._told.get(name))
                self._told[name] = now
                if news:
                    changed(name)

    def forget(self, config_name: str) -> None:
        """The ProviderConfig is gone."""
        self._files.pop(config_name, None)
        self._told.pop(config_name, None)
        self._references.used_by(config_key(config_name), frozenset())

    async def _read_config(self, name: str, config: ProviderConfig) -> Credentials:
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
        self._note(name, source, spec.identity)
        self._files.pop(name, None)
        identity, secret = "", b""
        if spec.identity:
            identity = spec.identity.type
            if spec.identity.source != "InjectedIdentity":
                secret = await self._bytes(name, "spec.identity", spec.identity)
        if source.source == "InjectedIdentity":
            return replace(self._management, identity=identity, identity_credentials=secret)
        return Credentials(
            kubeconfig=await self._bytes(name, "spec.credentials", source),
            trusted=self._trust,
            identity=identity,
            identity_credentials=secret,
        )

    def _note(self, name: str, *sources: SourceOfCredentials | None) -> None:
        used = (one.secret_ref for one in sources if one and one.source == "Secret")
        uses = frozenset(_use(ref) for ref in used if ref)
        self._references.used_by(config_key(name), uses)

    async def _bytes(self, name: str, field: str, source: SourceOfCredentials) -> bytes:
        where = f'ProviderConfig "{name}": {field}'
        if source.source == "Secret" and source.secret_ref:
            return await self._secret(where, source.secret_ref)
        if source.source == "Environment" and source.env:
            return self._variable(where, source.env.name)
        if source.source == "Filesystem" and source.fs:
            path = Path(source.fs.path)
            # Before the reading, so that a change meanwhile is noticed.
            self._files.setdefault(name, {})[path] = _sight_of(path)
            return self._file(where, path)
        needs = {"Secret": "secretRef", "Environment": "env", "Filesystem": "fs"}
        missing = needs.get(source.source)
        said = f"needs {missing}" if missing else "gives no credentials"
        raise InvalidInput(f"{where}: source {source.source} {said}", FaultKind.INVALID)

    def _variable(self, where: str, name: str) -> bytes:
        value = os.environ.get(name)
        if value is None:
            raise Missing(f"{where}: the environment has no variable {name}", FaultKind.NOT_FOUND)
        return value.encode()

    def _file(self, where: str, path: Path) -> bytes:
        try:
            return path.read_bytes()
        except OSError as error:
            raise Missing(f"{where}: {path}: {error.strerror}", FaultKind.NOT_FOUND) from None

    async def _secret(self, where: str, ref: SecretKeyReference) -> bytes:
        where = f"{where}: Secret {ref.namespace}/{ref.name}"
        found = await self._references.read(_use(ref))
        if found is None:
            raise ClusterForgotten(f"{where} not found", FaultKind.NOT_FOUND)
        if found.value is None:
            raise InvalidInput(f'{where} has no key "{ref.key}"', FaultKind.INVALID)
        return found.value


def _sight_of(path: Path) -> FileSight:
    """Tell one state of a file from another, also where a link is turned to another file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def config_key(name: str) -> Key:
    """Return the key under which a ProviderConfig refers to Secrets."""
    return Key(PROVIDER_CONFIG.qualified, "", name)


def _use(ref: SecretKeyReference) -> Use:
    return Use(Reference("Secret", ref.namespace, ref.name), ref.key)
