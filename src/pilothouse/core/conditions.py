"""Build and merge conditions: a transition time changes only with the status."""

from datetime import UTC, datetime

from pilothouse.api.meta import Condition
from pilothouse.api.release import Release

SYNCED = "Synced"
READY = "Ready"
# The reason while an action is under way.
RECONCILING = "Reconciling"
LONGEST_MESSAGE = 1024


def timestamp(moment: datetime) -> str:
    """Spell a moment the way Kubernetes does."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(text: str | None) -> datetime | None:
    """Read a Kubernetes timestamp."""
    return datetime.fromisoformat(text) if text else None


def find(conditions: list[Condition], kind: str) -> Condition | None:
    """Return the condition of a type, if it is there."""
    return next((one for one in conditions if one.type == kind), None)


def merge(conditions: list[Condition], *new: Condition) -> list[Condition]:
    """Return the conditions with the new ones in their places."""
    by_type = {one.type: one for one in conditions}
    for one in new:
        held = by_type.get(one.type)
        if held and held.status == one.status:
            one = _since(one, held.last_transition_time)  # noqa: PLW2901 - the point of the loop
        by_type[one.type] = one
    return list(by_type.values())


def _since(one: Condition, transition: str) -> Condition:
    return Condition(
        type=one.type,
        status=one.status,
        reason=one.reason,
        message=one.message,
        observed_generation=one.observed_generation,
        last_transition_time=transition,
    )


def condition(
    kind: str, *, true: bool, reason: str, message: str, generation: int, now: datetime
) -> Condition:
    """Make a condition; an overlong message is cut, with a mark."""
    if len(message) > LONGEST_MESSAGE:
        message = message[: LONGEST_MESSAGE - 1] + "…"
    return Condition(
        type=kind,
        status="True" if true else "False",
        reason=reason,
        message=message,
        observed_generation=generation,
        last_transition_time=timestamp(now),
    )


def with_conditions(release: Release, *new: Condition) -> list[Condition]:
    """Return a Release's conditions with the new ones in their places."""
    return merge(release.status.conditions, *new)


def synced(release: Release, now: datetime, *, true: bool, reason: str, message: str) -> Condition:
    """Say whether the spec has been carried out."""
    return condition(
        SYNCED,
        true=true,
        reason=reason,
        message=message,
        generation=release.metadata.generation,
        now=now,
    )


def ready(release: Release, now: datetime, *, true: bool, reason: str, message: str) -> Condition:
    """Say whether it runs."""
    return condition(
        READY,
        true=true,
        reason=reason,
        message=message,
        generation=release.metadata.generation,
        now=now,
    )
