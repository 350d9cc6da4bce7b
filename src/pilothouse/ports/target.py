"""Clusters that releases go to: how they are reached, looked at and changed.

`clusters/` implements this.
"""

import hashlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pilothouse.api.kinds import Kind, T
from pilothouse.api.meta import Key
from pilothouse.api.release import Release
from pilothouse.core.attention import Attention
from pilothouse.core.desired import ChartAsk, Desired, ReleaseName
from pilothouse.core.drift_known import Correction, Difference
from pilothouse.core.observed import Decoded, HookResult, ObjectRef, Objects, Record, Suspect
from pilothouse.core.outcome import Outcome
from pilothouse.core.plan import Action


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
    scaled: bool = False
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where an action is; `waiting` means that cancelling would end it."""

    message: str
    waiting: bool = False
    hooks: tuple[HookResult, ...] = ()


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

    def before(self, release: ReleaseName, revision: int) -> Sequence[Record]:
        """Return the revisions before that one."""
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


class Targets(Protocol):
    """All clusters, by the ProviderConfig that names them."""

    def config_of(self, release: Release) -> str:
        """Name the ProviderConfig of a Release; raises Missing when it selects none, or none any more."""
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
