"""What a comparison said of one object, as it is remembered."""

from collections.abc import Iterable
from datetime import datetime

from pilothouse.core.drift_known import Finding
from pilothouse.core.observed import Suspect
from pilothouse.ports import Comparison


def finding_of(suspect: Suspect, told: Comparison | None, now: datetime) -> Finding:
    """Return what was found of a suspect; of what nothing was told, nothing is wrong."""
    if told is None:
        return Finding(suspect, now)
    return Finding(
        suspect,
        now,
        differences=told.differences,
        missing=told.missing,
        expires=told.expires,
        scaled=told.scaled,
        fault=told.fault,
    )


def wrong_among(told: Iterable[Comparison], now: datetime) -> list[Finding]:
    """Return what a search certainly found to be wrong, whether the eyes suspect it or not."""
    return [
        finding_of(Suspect(one.ref), one, now)
        for one in told
        if (one.differences or one.missing) and not one.fault
    ]
