"""Counting failures and waiting between them."""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

Wait = TypeVar("Wait", float, timedelta)

FIRST = timedelta(seconds=10)
LONGEST = timedelta(minutes=10)
JITTER = 0.1


@dataclass(frozen=True, slots=True)
class Attempts:
    """What was tried for one digest, and when the next try is due."""

    digest: str = ""
    failures: int = 0
    next_at: datetime | None = None
    error: str = ""
    # Failures that count against a rollback limit.
    rolled_back: int = 0
    # Somebody asked, by annotation, not to wait any longer.
    asked_for_now: bool = False
    # Nothing was tried: a reference or the cluster was missing, which holds up nothing once it is there.
    only_refused: bool = False

    def due(self, digest: str, now: datetime) -> bool:
        """Whether a try may start; a new digest is a new question, so old failures do not count."""
        if self.asked_for_now:
            return True
        return self.digest != digest or self.next_at is None or now >= self.next_at

    def failed_before(self, digest: str) -> bool:
        """Whether this very question has failed already."""
        return self.digest == digest and self.failures > 0

    def exhausted(self, digest: str, limit: int | None) -> bool:
        """Whether this question has failed as often as its limit allows.

        What failed before it made a revision (the chart's server was down) has nothing to go back from, so it
        counts for no limit, not even for 0.
        """
        if limit is None or not self.failed_before(digest):
            return False
        return self.rolled_back >= max(limit, 1)


def gave_up(attempts: Attempts, limit: int | None, left: str) -> str:
    """Say that a limit is reached and what that has left."""
    times = "once" if attempts.rolled_back == 1 else f"{attempts.rolled_back} times"
    return (
        f"failed {times}, and rollbackLimit {limit} allows no further try; {left}; "
        f"edit the spec to try again: {attempts.error}"
    )


def backoff(failures: int, seed: str) -> timedelta:
    """Return how long to wait after so many failures: doubling, capped, spread by `seed`.

    The spread is a hash and not chance, so that the same release waits the same time after a restart.
    """
    wait = doubled(FIRST, max(failures - 1, 0), LONGEST)
    spread = int.from_bytes(hashlib.sha256(f"{seed}/{failures}".encode()).digest()[:4]) / 2**32
    return wait * (1 + JITTER * (2 * spread - 1))


def doubled(first: Wait, times: int, most: Wait) -> Wait:
    """Return a wait that doubles every time, up to a longest; in whatever it is counted."""
    return min(first * (1 << min(times, 20)), most)
