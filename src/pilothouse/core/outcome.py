"""What an action came to, and what is written about it."""

from dataclasses import dataclass
from datetime import datetime

from pilothouse.api.status import ReleaseStatus
from pilothouse.core.desired import Desired
from pilothouse.core.observed import HookResult, Record
from pilothouse.core.plan import Action
from pilothouse.faults import FaultKind


@dataclass(frozen=True, slots=True)
class Fault:
    """Why something failed: a kind to reason with, a sentence for people."""

    kind: FaultKind
    message: str


@dataclass(frozen=True, slots=True)
class HookLog:
    """The end of what a failed hook said, or why it is not known."""

    hook: str
    text: str
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What storage really holds after an action, and the fault if it failed."""

    record: Record | None = None
    fault: Fault | None = None
    logs: tuple[HookLog, ...] = ()
    # The chart it was done with, if it took one: its digest, and what the source has now instead.
    chart_digest: str = ""
    republished: str = ""
    warnings: tuple[str, ...] = ()
    tests: tuple[HookResult, ...] = ()
    # In the order in which they began.
    hooks: tuple[HookResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Errand:
    """For which Release something is done, and where: another may have its name, or it another cluster, by then."""

    uid: str = ""
    # The ProviderConfig that it names or selects.
    cluster: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """An action that has ended, with what it was asked."""

    desired: Desired
    plan: Action
    outcome: Outcome
    errand: Errand = Errand()


@dataclass(frozen=True, slots=True)
class Notice:
    """A Kubernetes Event to be."""

    reason: str
    message: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the archive: who did what to which release, why, and how it ended."""

    release: str
    cluster: str
    helm_release: str
    action: str
    reason: str
    digest: str
    revision: int
    chart: str
    error: str
    started: datetime
    finished: datetime
    # What failed hooks said.
    logs: str = ""
    # What was left behind, one object a line; only when nobody could look any more.
    inventory: str = ""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What to write after a pass, and when to look again."""

    status: ReleaseStatus
    notice: Notice | None = None
    entry: Entry | None = None
    again_at: datetime | None = None
    again_now: bool = False
