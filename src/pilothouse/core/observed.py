"""What the engine saw of one Helm release."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pilothouse.api.status import DeployedChart
from pilothouse.core.desired import Desired

if TYPE_CHECKING:
    from pilothouse.core.drift import Drift

PENDING = frozenset({"pending-install", "pending-upgrade", "pending-rollback"})
DEPLOYED = "deployed"
# What is, or was, deployed.
GOOD = frozenset({DEPLOYED, "superseded"})
FAILED = "failed"
# A revision only ever moves down this list, so an older sight of it is recognised and dropped.
_ORDER = {
    "pending-install": 0,
    "pending-upgrade": 0,
    "pending-rollback": 0,
    "deployed": 1,
    "failed": 1,
    "superseded": 2,
    "uninstalling": 3,
    "uninstalled": 4,
}


@dataclass(frozen=True, slots=True)
class Record:
    """One revision in Helm's storage, as its metadata tells it."""

    revision: int
    status: str
    digest: str = ""
    owner: str = ""
    # The commit that a chart from git came to; see core/git.py.
    source: str = ""
    created: datetime | None = None
    uid: str = ""
    chart_name: str = ""
    chart_version: str = ""
    description: str = ""
    # When this status was first seen; Helm's own times of it cannot be trusted.
    seen: datetime | None = field(default=None, compare=False)

    @property
    def pending(self) -> bool:
        """Whether an operation holds, or held, this revision."""
        return self.status in PENDING

    def overtakes(self, held: "Record") -> bool:
        """Whether this is a later sight than `held`; sights may arrive out of order."""
        if self.revision != held.revision or self.uid != held.uid:
            return True
        return _ORDER.get(self.status, 0) >= _ORDER.get(held.status, 0)


class Health(StrEnum):
    """How one object is."""

    UNKNOWN = "Unknown"
    CURRENT = "Current"
    IN_PROGRESS = "InProgress"
    FAILED = "Failed"
    TERMINATING = "Terminating"
    NOT_FOUND = "NotFound"


class WatchMode(StrEnum):
    """How closely the credentials let the eyes look."""

    CLUSTER = "Cluster"
    NAMESPACE = "Namespace"
    POLL = "Poll"


# How many objects a status names; the rest is only counted.
LISTED_MOST = 100
# Worst first: the order in which a person wants to hear of them.
_WORST_FIRST = {
    Health.FAILED: 0,
    Health.NOT_FOUND: 1,
    Health.TERMINATING: 2,
    Health.IN_PROGRESS: 3,
    Health.UNKNOWN: 4,
    Health.CURRENT: 5,
}


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """Names one deployed object."""

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class ObjectState:
    """One deployed object and how it is."""

    ref: ObjectRef
    health: Health
    message: str = ""
    # Not 0: another may have changed what the release set. See Suspect.
    altered: int = 0
    sight: int = 0
    scaled: bool = False


@dataclass(frozen=True, slots=True)
class Suspect:
    """An object that may not be as it was applied."""

    ref: ObjectRef
    # Changes with whose its fields are; 0: the object is gone.
    altered: int = 0
    # Changes with every write, except by scaling what an autoscaler scales.
    sight: int = 0
    # An autoscaler has its replicas.
    scaled: bool = False


def worst_first(state: ObjectState) -> tuple[int, str, str, str]:
    """Return what sorts objects in the order in which a person wants to hear of them."""
    ref = state.ref
    return (_WORST_FIRST[state.health], ref.kind, ref.namespace, ref.name)


@dataclass(frozen=True, slots=True)
class Objects:
    """The objects of one revision, counted; at most LISTED_MOST are named, the worst first."""

    revision: int
    total: int
    current: int
    listed: tuple[ObjectState, ...] = ()
    # Objects of other controllers that are part of the release's state.
    external: tuple[ObjectState, ...] = ()
    watch: WatchMode = WatchMode.CLUSTER
    # Those that may not be as they were applied.
    suspects: tuple[Suspect, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether every object is current, those of others included."""
        return self.current == self.total and all(
            one.health is Health.CURRENT for one in self.external
        )

    @property
    def summary(self) -> str:
        """How many are ready: "3/4"."""
        return f"{self.current}/{self.total}"

    def worst(self) -> ObjectState | None:
        """Return the object a person wants to hear of first, if one is not current."""
        troubled = [
            one for one in (*self.listed, *self.external) if one.health is not Health.CURRENT
        ]
        return min(troubled, key=worst_first, default=None)


@dataclass(frozen=True, slots=True)
class Decoded:
    """A revision Pilothouse did not write, read once."""

    revision: int
    chart_name: str
    chart_version: str
    values: dict[str, Any]
    # What Helm says of it: a rollback names the revision it copied.
    description: str = ""


@dataclass(frozen=True, slots=True)
class HookResult:
    """What one hook or test of a chart came to; no phase: a test that was not run this time."""

    hook: str
    phase: str = ""
    started: datetime | None = None
    finished: datetime | None = None
    # What a hook ran for; not of tests.
    events: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Running:
    """An action of this process that has not ended yet."""

    action: str
    digest: str
    waiting: bool = False
    stopping: bool = False
    # What it waits for, in the engine's words. It names objects, and a name may be made of a secret: mask it.
    progress: str = ""
    # Those that it has begun when it said so; one without an end runs.
    hooks: tuple[HookResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything known of one Helm release."""

    record: Record | None = None
    objects: Objects | None = None
    decoded: Decoded | None = None
    running: Running | None = None
    # What the newest revision was made from, if this process made it: tells what changed since.
    made_from: Desired | None = None
    namespace_missing: bool = False
    # The newest revision before this one that was deployed: where a rollback goes.
    good: Record | None = None
    # Whether the instance that left a pending record still lives; None when there is none.
    owner_alive: bool | None = None
    # Another, older Release that stands for the same Helm release; empty when there is none.
    holder: str = ""
    # The patches a release of another controller was made with, as its status tells.
    patches_sha: str = ""
    # What revisions before a foreign one were made from, by number, those that still tell.
    stamps: dict[int, str] = field(default_factory=dict)
    # The chart that Pilothouse deployed last, as the status tells.
    noted: DeployedChart = field(default_factory=DeployedChart)
    # What others changed of what the release set; None: not looked for.
    drift: "Drift | None" = None
    # Whether the status tells which chart version is deployed; a watch of records does not.
    version_told: bool = True
    # What it is checked for has changed since it was; see core/trust.py.
    unchecked: bool = False

    @property
    def decoded_record(self) -> Decoded | None:
        """What the newest revision was made from, if its record has been read."""
        record, decoded = self.record, self.decoded
        return decoded if record and decoded and decoded.revision == record.revision else None
