"""The steps a pass can choose from: one is taken, then the release is looked at again."""

from dataclasses import dataclass
from datetime import datetime

from pilothouse.core.drift_known import Correction


@dataclass(frozen=True, slots=True)
class Install:
    """Make the release."""

    reason: str
    preflight: bool = False


@dataclass(frozen=True, slots=True)
class Upgrade:
    """Make a new revision."""

    reason: str
    preflight: bool = False


@dataclass(frozen=True, slots=True)
class Uninstall:
    """Remove the release and its objects."""

    reason: str


@dataclass(frozen=True, slots=True)
class Rollback:
    """Go back to a revision that was good; it keeps the digest and the commit it was made from."""

    revision: int
    digest: str
    reason: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Unlock:
    """Clear a pending record whose owner is gone."""

    revision: int
    reason: str


@dataclass(frozen=True, slots=True)
class RunTests:
    """Run the chart's tests on the deployed revision; makes no revision."""

    revision: int
    reason: str


@dataclass(frozen=True, slots=True)
class Repair:
    """Put back what others changed; makes no revision."""

    corrections: tuple[Correction, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class CreateNamespace:
    """Make the namespace that the release is to live in."""

    name: str


@dataclass(frozen=True, slots=True)
class Inspect:
    """Decode a revision that someone else made, to compare it."""

    revision: int


@dataclass(frozen=True, slots=True)
class Check:
    """Find and verify the chart that is deployed; nothing is deployed for it."""

    reason: str


@dataclass(frozen=True, slots=True)
class Interrupt:
    """End the wait under way: a newer spec is there."""

    reason: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing until something changes, or `until`."""

    reason: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """Nothing more will be tried until something changes, or `until`; `kind` is the condition's reason."""

    kind: str
    reason: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Rest:
    """Everything is as asked."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class LetGo:
    """The release is gone: let the object go too."""


Action = Install | Upgrade | Rollback | Uninstall | Unlock | RunTests
Plan = Action | Repair | CreateNamespace | Inspect | Check | Interrupt | Wait | Stop | Rest | LetGo


def name_of(plan: Plan) -> str:
    """Return a plan's name, for logs and records."""
    return type(plan).__name__
