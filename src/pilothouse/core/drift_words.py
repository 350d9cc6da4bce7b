"""Drift in words: paths and managers, never values."""

from collections.abc import Iterable

from pilothouse.core.drift_known import GONE, Correction, Difference
from pilothouse.core.observed import ObjectRef

SAID_MOST = 5


def said_of(corrections: Iterable[Correction]) -> str:
    """Say what was changed, and by whom."""
    return shortened([changed(one.ref, one.differences) for one in corrections])


def changed(ref: ObjectRef, differences: tuple[Difference, ...]) -> str:
    """Say what of one object was changed, and by whom: "/spec/replicas of Deployment web by kubectl-edit"."""
    if any(one.path == GONE for one in differences):
        return f"{ref} was deleted"
    paths = shortened([one.path for one in differences], ", ")
    return f"{paths} of {ref} {_were(differences)} changed{_by(differences)}"


def fought_over(ref: ObjectRef, difference: Difference) -> str:
    """Name a fight and the other party."""
    if difference.path == GONE:
        return f"{ref} is deleted again and again"
    by = f" by {difference.manager}" if difference.manager else ""
    return f"{difference.path} of {ref} is set{by} again and again"


def manager_of(differences: Iterable[Difference]) -> str:
    """Name who changed it; empty where nobody says so."""
    return ", ".join(sorted({one.manager for one in differences if one.manager}))


def shortened(parts: list[str], between: str = "; ") -> str:
    """Join at most SAID_MOST of them and count the rest."""
    shown = between.join(parts[:SAID_MOST])
    return f"{shown} and {len(parts) - SAID_MOST} more" if len(parts) > SAID_MOST else shown


def _were(differences: tuple[Difference, ...]) -> str:
    return "was" if len(differences) == 1 else "were"


def _by(differences: tuple[Difference, ...]) -> str:
    by = manager_of(differences)
    return f" by {by}" if by else ""
