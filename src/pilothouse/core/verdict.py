"""What would be done for a Release, for those who first want to look."""

from dataclasses import dataclass

from pilothouse.api.release import Release
from pilothouse.core.conditions import READY, find
from pilothouse.core.outcome import Fault
from pilothouse.core.plan import (
    Check,
    CreateNamespace,
    Install,
    LetGo,
    Plan,
    Repair,
    Rest,
    Rollback,
    Stop,
    Uninstall,
    Unlock,
    Upgrade,
    Wait,
)
from pilothouse.core.state import State, StateName

STAYS = "stays as it is"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One answer: what would happen, why, and whether the Release would be Ready."""

    would: str
    why: str = ""
    ready_there: bool = False
    ready_here: bool = False

    def __str__(self) -> str:
        said = f"{self.would}: {self.why}" if self.why else self.would
        if self.ready_there and not self.ready_here and self.would == STAYS:
            return f"{self.would}; Ready there, would not be Ready here: {self.why}"
        return said


def verdict(release: Release, state: State, plan: Plan) -> Verdict:
    """Put a plan that is not carried out into words."""
    held = find(release.status.conditions, READY)
    there = held is not None and held.status == "True"
    match plan:
        case Rest() if state.name is StateName.UNREADY:
            return Verdict(STAYS, state.reason, ready_there=there)
        case Rest(reason=reason):
            paused = reason if reason == "paused" else ""
            return Verdict(STAYS, paused, ready_there=there, ready_here=state.name is _SYNCED)
        case Wait(reason=reason):
            return Verdict("would wait", reason, ready_there=there)
        case Stop(reason=reason):
            return Verdict("would not be touched", reason, ready_there=there)
        case LetGo():
            return Verdict("would be let go", state.reason, ready_there=there)
        case _:
            return Verdict(_would(plan), state.reason, ready_there=there)


def cannot_judge(release: Release, fault: Fault) -> Verdict:
    """Say why nothing can be said."""
    held = find(release.status.conditions, READY)
    there = held is not None and held.status == "True"
    return Verdict("would fail", fault.message, ready_there=there)


def summary(verdicts: list[Verdict]) -> str:
    """Count the answers, the most frequent first."""
    counts: dict[str, int] = {}
    for one in verdicts:
        would = "stay as they are" if one.would == STAYS else one.would
        counts[would] = counts.get(would, 0) + 1
    parts = [f"{count} {what}" for what, count in sorted(counts.items(), key=lambda kv: -kv[1])]
    lost = sum(one.ready_there and not one.ready_here for one in verdicts)
    ready = f"; {lost} Ready there would not be Ready here" if lost else ""
    return f"{len(verdicts)} Releases: {', '.join(parts)}{ready}"


_SYNCED = StateName.IN_SYNC
_WOULD: dict[type, str] = {
    Install: "would be installed",
    CreateNamespace: "would be installed",
    Upgrade: "would be upgraded",
    Rollback: "would be rolled back",
    Repair: "would be repaired",
    Uninstall: "would be uninstalled",
    Unlock: "would be recovered",
    Check: "would be checked",
}


def _would(plan: Plan) -> str:
    return _WOULD.get(type(plan), "would be looked at")
