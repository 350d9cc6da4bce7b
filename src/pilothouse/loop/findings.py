"""What a comparison said of one object, as it is remembered."""

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
