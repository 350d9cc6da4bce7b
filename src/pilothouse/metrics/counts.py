"""What is counted while the controller works; implements ports.Meter."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from pilothouse.api.release import Release

SUCCEEDED, FAILED = "succeeded", "failed"
# What every Release has sooner or later; one that has not is unknown, not uncounted.
_ALWAYS = ("Synced", "Ready")


class Counts:
    """Counters since the start of this process."""

    def __init__(self) -> None:
        self.actions: Counter[tuple[str, str]] = Counter()
        self.repairs: Counter[str] = Counter()

    def acted(self, action: str, fault: str) -> None:
        """An action has ended; `fault` is its kind, empty when there was none."""
        self.actions[action, fault or SUCCEEDED] += 1

    def repaired(self, objects: int, failed: int) -> None:
        """That many objects were to be put back, and that many of them could not."""
        self.repairs[SUCCEEDED] += objects - failed
        self.repairs[FAILED] += failed


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What there is to read, at one moment; nothing in it changes any more."""

    actions: Counter[tuple[str, str]]
    repairs: Counter[str]
    # Releases by condition, its status and its reason.
    releases: Counter[tuple[str, str, str]]
    # Releases by ProviderConfig and how closely they are watched.
    watched: Counter[tuple[str, str]]
    queued: int


def by_condition(releases: Iterable[Release]) -> Counter[tuple[str, str, str]]:
    """Count Releases by what their conditions say; messages are for people and stay where they are."""
    counted: Counter[tuple[str, str, str]] = Counter()
    for release in releases:
        told = {one.type: (one.status, one.reason) for one in release.status.conditions}
        for kind in _ALWAYS:
            told.setdefault(kind, ("Unknown", ""))
        counted.update((kind, status, reason) for kind, (status, reason) in told.items())
    return counted
