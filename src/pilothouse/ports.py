"""The doors as the loop sees them: Protocols and the values that pass through them."""

import hashlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from pilothouse.api.kinds import Kind, T
from pilothouse.api.meta import Key
from pilothouse.api.release import Release
from pilothouse.api.status import ReleaseStatus
from pilothouse.core.attention import Attention
from pilothouse.core.desired import NO_DEFAULTS, ChartAsk, Defaults, Desired, ReleaseName
from pilothouse.core.drift_known import Correction, Difference
from pilothouse.core.observed import (
    Decoded,
    ObjectRef,
    Objects,
    ObjectState,
    Record,
    Suspect,
    WatchMode,
)
from pilothouse.core.outcome import Entry, Fault, Notice, Outcome
from pilothouse.core.plan import Action
from pilothouse.core.versions import Found, Query


@dataclass(frozen=True, slots=True)
class Credentials:
    """How to reach one API server; equal credentials share one client."""

    kubeconfig: bytes = field(default=b"", repr=False)
    in_cluster: bool = False
    # Given by the operator, so exec plugins and file paths in it are allowed.
    trusted: bool = False
    context: str = ""
    identity: str = ""
    identity_credentials: bytes = field(default=b"", repr=False)
    # A name for these credentials that gives nothing away; computed once, since every call asks for it.
    fingerprint: str = field(init=False, default="")

    def __post_init__(self) -> None:
        flags = f"{self.in_cluster}/{self.trusted}/{self.context}/{self.identity}".encode()
        parts = (flags, self.identity_credentials, self.kubeconfig)
        lengths = ",".join(str(len(part)) for part in parts).encode()
        digest = hashlib.sha256(lengths + b"".join(parts)).hexdigest()[:16]
        object.__setattr__(self, "fingerprint", digest)


@dataclass(frozen=True, slots=True)
class HttpAsk:
    """One request to an address that a user gave; the egress guard stands before it."""

    url: str = field(repr=False)
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: bytes = field(default=b"", repr=False)
    timeout: timedelta = timedelta(seconds=10)
    # More of the answer is not read.
    reply_bytes: int = 1024 * 1024
    redirects: int = 0
    ca_bundle: bytes = b""
    insecure_skip_tls_verify: bool = False
    client_certificate: bytes = field(default=b"", repr=False)
    client_key: bytes = field(default=b"", repr=False)
    tls_server_name: str = ""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What a server said, whatever its status; names of headers are in lower case."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class WatchBatch:
    """Some changes; the snapshot comes first and `synced` ends it."""

    changes: tuple[tuple[bytes, bool], ...] = ()
    reset: bool = False
    synced: bool = False
    fault: Fault | None = None
    recovered: bool = False


@dataclass(frozen=True, slots=True)
class RecordChange:
    """A revision appeared, changed or is gone."""

    release: ReleaseName
    record: Record
    gone: bool = False


@dataclass(frozen=True, slots=True)
class ObjectsChange:
    """How the objects of a revision are: all of them when `complete`, else those that changed."""

    release: ReleaseName
    revision: int
    complete: bool
    states: tuple[ObjectState, ...]
    # These three only when complete.
    external: tuple[ObjectState, ...] = ()
    watch: WatchMode = WatchMode.CLUSTER
    token: str = ""


@dataclass(frozen=True, slots=True)
class NamespaceSight:
    """How the records of a namespace are seen, where those of all namespaces cannot be."""

    namespace: str
    synced: bool
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class Sighting:
    """What the eyes on one cluster saw."""

    records: tuple[RecordChange, ...] = ()
    objects: tuple[ObjectsChange, ...] = ()
    reset: bool = False
    records_synced: bool = False
    fault: Fault | None = None
    recovered: bool = False
    namespaces: tuple[NamespaceSight, ...] = ()


@dataclass(frozen=True, slots=True)
class ResolvedChart:
    """A chart that is in the engine's cache."""

    name: str
    version: str
    digest: str
    # The source has this digest now, not the expected one.
    republished: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Order:
    """An action, with everything the engine needs to do it."""

    desired: Desired
    plan: Action
    chart_digest: str = ""
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What applying one object again would change."""

    ref: ObjectRef
    differences: tuple[Difference, ...] = ()
    missing: bool = False
    expires: bool = False
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where an action is; `waiting` means that cancelling would end it."""

    message: str
    waiting: bool = False


Say = Callable[[str], None]


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> datetime:
        """Return the current moment, aware, in UTC."""
        ...


class ObjectStore(Protocol):
    """Objects of one cluster."""

    async def get(self, kind: Kind[T], name: str, namespace: str = "") -> T:
        """Read one object; raises Missing."""
        ...

    async def create(self, kind: Kind[T], manifest: Mapping[str, Any], namespace: str = "") -> T:
        """Create one object; raises AlreadyExists."""
        ...

    async def merge(
        self,
        kind: Kind[T],
        key: Key,
        patch: Mapping[str, Any],
        *,
        subresource: str = "",
    ) -> T:
        """Merge-patch one object and return it as it is now."""
        ...


class Target(Protocol):
    """One cluster that releases go to."""

    @property
    def id(self) -> str:
        """Name the cluster, for the length of this process."""
        ...

    @property
    def objects(self) -> ObjectStore:
        """Objects of the cluster."""
        ...

    async def identity(self) -> str:
        """Name the cluster itself: the same whatever credentials lead to it."""
        ...

    async def attend(self, attention: Attention) -> None:
        """Look after a release from now on, this way; raises InvalidInput for a bad expression."""
        ...

    def sees(self, release: ReleaseName) -> bool:
        """Whether every record of the release is known; raises what keeps the eyes shut."""
        ...

    def record(self, release: ReleaseName) -> Record | None:
        """Return the newest revision."""
        ...

    def good_before(self, release: ReleaseName, revision: int) -> Record | None:
        """Return the newest revision before that one that was deployed."""
        ...

    def objects_of(self, release: ReleaseName) -> Objects | None:
        """Return how the release's objects are; None while they have not been looked at."""
        ...

    def learn(self, release: ReleaseName, outcome: Outcome, *, removed: bool) -> None:
        """Take in what an action came to, ahead of the watch."""
        ...

    async def read(self, api_version: str, kind: str, name: str, namespace: str) -> dict[str, Any]:
        """Read any object whole; raises Missing."""
        ...

    async def resolve_chart(self, chart: ChartAsk) -> ResolvedChart:
        """Find the chart and bring it into the engine's cache."""
        ...

    def run(self, order: Order) -> AsyncGenerator[Progress | Outcome, None]:
        """Do an action: progress, then exactly one Outcome."""
        ...

    async def decode(self, release: ReleaseName, revision: int) -> Decoded:
        """Read a revision whole."""
        ...

    async def compare(
        self, release: ReleaseName, revision: int, suspects: Sequence[Suspect]
    ) -> list[Comparison]:
        """Ask what applying these objects again would change, or all of them if none is named; changes nothing."""
        ...

    async def repair(
        self, release: ReleaseName, revision: int, corrections: Sequence[Correction]
    ) -> dict[ObjectRef, str]:
        """Apply objects of the deployed revision again; return why some could not be."""
        ...


class Releases(Protocol):
    """Where the loop finds the latest sight of a Release."""

    def get(self, key: Key) -> Release | None:
        """Return the latest sight of one Release."""
        ...

    def __len__(self) -> int:
        """Count them."""
        ...


class Targets(Protocol):
    """All clusters, by the ProviderConfig that names them."""

    def config_of(self, release: Release) -> str:
        """Name the ProviderConfig of a Release; raises Missing when it selects none."""
        ...

    async def reach(self, release: Release) -> Target:
        """Return the cluster; raises a PilothouseError that says what is missing."""
        ...

    async def reach_config(self, config_name: str) -> Target:
        """Return the cluster a ProviderConfig names; without a name, the one that Releases are on."""
        ...

    def disregard(self, target: str, release: ReleaseName) -> None:
        """Nobody looks after that release any more."""
        ...


@dataclass(frozen=True, slots=True)
class Reference:
    """A ConfigMap or Secret that a Release refers to."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


# Stands for every key of an object.
WHOLE = ""


@dataclass(frozen=True, slots=True)
class Use:
    """One key of a ConfigMap or Secret that somebody refers to, or all of them."""

    reference: Reference
    key: str

    def __str__(self) -> str:
        return f"{self.reference}, key {self.key}" if self.key else str(self.reference)


@dataclass(frozen=True, slots=True)
class Referred:
    """What was found there."""

    uid: str
    resource_version: str
    # None when the object has no such key.
    value: bytes | None = field(repr=False)
    # Every key, for who uses them all.
    whole: Mapping[str, bytes] = field(default_factory=dict, repr=False)


class References(Protocol):
    """Reads what is referred to, and remembers who uses which key."""

    async def read(self, use: Use) -> Referred | None:
        """Return the value of a key; None when there is no such object."""
        ...

    def used_by(self, key: Key, uses: frozenset[Use]) -> None:
        """Note which keys somebody uses now, so that a change of one of them wakes it."""
        ...


@dataclass(frozen=True, slots=True)
class Document:
    """A piece of YAML; `origin` is what a fault calls it."""

    origin: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Assignment:
    """One `--set name=value`."""

    origin: str
    name: str
    value: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Composed:
    """Values and patches, put together."""

    values: dict[str, Any] = field(repr=False)
    patches_sha: str = ""
    patches: tuple[bytes, ...] = field(default=(), repr=False)


class Composer(Protocol):
    """Puts values together the way Helm does."""

    async def compose(
        self,
        documents: Sequence[Document],
        assignments: Sequence[Assignment],
        patches: Sequence[Document],
    ) -> Composed:
        """Merge documents, then assignments; check the patches."""
        ...


class VersionFinder(Protocol):
    """Asks chart repositories what they have."""

    async def find_versions(
        self, chart: ChartAsk, queries: Sequence[Query], max_age: timedelta
    ) -> list[Found]:
        """Ask one repository, once; what is known of it may be as old as `max_age`."""
        ...


class Instances(Protocol):
    """Other instances of the controller."""

    async def alive(self, owner: str) -> bool:
        """Whether the instance that stamped a record still lives."""
        ...


class Writer(Protocol):
    """What the loop writes about a Release."""

    async def claim(self, release: Release, config: str) -> Release:
        """Put the finalizer and the external name on it, and say that it uses that config."""
        ...

    async def status(self, release: Release, status: ReleaseStatus) -> Release:
        """Write the fields of the status that differ; nothing when none does."""
        ...

    async def late_initialize(self, release: Release, name: str, version: str) -> Release:
        """Fill in what was found where the user left it open."""
        ...

    async def connect_secret(self, release: Release, data: Mapping[str, str]) -> None:
        """Write the connection secret; values are in base64."""
        ...

    async def let_go(self, release: Release) -> None:
        """Take the finalizer off."""
        ...

    async def tell(self, release: Release, notice: Notice) -> None:
        """Post a Kubernetes Event."""
        ...


class Archive(Protocol):
    """What outlives the cluster."""

    async def append(self, entry: Entry) -> None:
        """Keep one line, once: the same entry again changes nothing."""
        ...


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """How the loop is dimensioned."""

    instance: str
    namespace: str = "default"
    workers: int = 16
    actions_at_once: int = 20
    defaults: Defaults = NO_DEFAULTS
    grace: timedelta = timedelta(seconds=20)
    # How long a cluster must be certainly gone before a deletion lets go; None: for ever.
    abandon_after: timedelta | None = timedelta(minutes=10)
    # Why nothing may be written; empty: everything may.
    hands_off: str = ""
    # How long a pass may hold up the next one; then it goes on beside it.
    patience: timedelta = timedelta(milliseconds=500)
    after_bug: timedelta = timedelta(seconds=10)
