"""Name the state a release is in, with a reason a person understands."""

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from pilothouse.core import by_hand
from pilothouse.core.desired import ChartAsk, Desired
from pilothouse.core.drift_words import said_of
from pilothouse.core.observed import DEPLOYED, FAILED, Decoded, Observed, Record
from pilothouse.core.redact import redact
from pilothouse.core.spelling import changes, plain_version, spelled

# A foreign `helm` that has been pending for longer than this, and than the Release's timeout, is not coming back.
FOREIGN_PATIENCE = timedelta(minutes=15)
# A foreign uninstall that takes longer than this has died.
UNINSTALL_PATIENCE = timedelta(minutes=5)
# How soon to look again whether another instance still lives.
OTHER_INSTANCE_LOOK = timedelta(seconds=5)


# Not a range: the newest version inside one is nobody's difference.
_EXACT = re.compile(r"v?\d+(\.\d+)*([-+].*)?")


class StateName(StrEnum):
    """Every state there is."""

    ABSENT = "Absent"
    PENDING = "Pending"
    STALE = "Stale"
    UNMANAGED = "Unmanaged"
    FAILED = "Failed"
    OUT_OF_SYNC = "OutOfSync"
    DRIFTED = "Drifted"
    UNREADY = "Unready"
    IN_SYNC = "InSync"
    DELETING = "Deleting"
    GONE = "Gone"


@dataclass(frozen=True, slots=True)
class State:
    """One of the names, and why."""

    name: StateName
    reason: str
    until: datetime | None = None


def classify(desired: Desired, observed: Observed, now: datetime) -> State:
    """Return the state of a release; its reason becomes that of a plan, so nothing of a Secret is in it."""
    state = _classify(desired, observed, now)
    return replace(state, reason=redact(state.reason, desired.secrets))


def _classify(desired: Desired, observed: Observed, now: datetime) -> State:
    """Name the state; the first rule that fits wins."""
    record = observed.record
    if observed.running:
        return State(StateName.PENDING, f"{observed.running.action.lower()} in progress")
    if record is None:
        if desired.absent:
            return State(StateName.GONE, "uninstalled")
        return State(StateName.ABSENT, "not installed")
    if record.pending:
        return _pending(desired, record, observed, now)
    if record.status == "uninstalling" and not record.owner and record.seen:
        until = record.seen + UNINSTALL_PATIENCE
        if now < until:
            return State(StateName.PENDING, "another Helm client is uninstalling it", until=until)
    if desired.absent:
        return State(StateName.DELETING, "the Release was deleted")
    if record.status in {"uninstalling", "uninstalled"}:
        return State(StateName.STALE, f"an uninstall left revision {record.revision} behind")
    if not desired.policies.update and record.status == DEPLOYED:
        return _same_digest(desired, record, observed)
    if not record.digest:
        return _unmanaged(desired, record, observed)
    if record.digest != desired.digest:
        return State(StateName.OUT_OF_SYNC, _why(desired, record, observed))
    return _same_digest(desired, record, observed)


def _pending(desired: Desired, record: Record, observed: Observed, now: datetime) -> State:
    """No action of ours runs (that was ruled out before), so the owner decides."""
    if record.owner and observed.owner_alive:
        return State(
            StateName.PENDING,
            f"another instance of Pilothouse is busy with revision {record.revision}",
            until=now + OTHER_INSTANCE_LOOK,
        )
    if record.owner:
        return State(
            StateName.STALE, f"revision {record.revision} was interrupted ({record.status})"
        )
    patience = max(FOREIGN_PATIENCE, desired.timeout)
    if record.created and now - record.created < patience:
        return State(
            StateName.PENDING,
            f"another Helm client is busy with revision {record.revision} ({record.status})",
            until=record.created + patience,
        )
    return State(
        StateName.STALE,
        f"revision {record.revision} has been {record.status} since {record.created}",
    )


def _unmanaged(desired: Desired, record: Record, observed: Observed) -> State:
    """Someone else wrote this revision: equal content is adopted as it is."""
    decoded = observed.decoded_record
    if decoded is None:
        return State(StateName.UNMANAGED, f"revision {record.revision} was made by another client")
    difference = _foreign_difference(desired, decoded, observed)
    if difference:
        return State(StateName.OUT_OF_SYNC, difference)
    return _same_digest(desired, record, observed)


def _foreign_difference(desired: Desired, decoded: Decoded, observed: Observed) -> str:
    if by_hand.is_ours_still(observed) or not by_hand.was_ours(observed):
        return _difference(desired, decoded, observed)
    if by_hand.is_back_at_spec(desired, decoded, observed):
        return ""
    # The patches that the status tells are ours, and no other client knows them.
    theirs = replace(observed, patches_sha="")
    return (
        by_hand.another_chart(desired, decoded, observed)
        or _difference(desired, decoded, theirs)
        or by_hand.went_back(desired, decoded, observed)
    )


def _why(desired: Desired, record: Record, observed: Observed) -> str:
    made_from = observed.made_from
    if desired.offer.because:
        return desired.offer.because
    if made_from is None:
        # An earlier process made it: its record tells what from, once it has been read.
        decoded = observed.decoded_record
        known = _difference(desired, decoded, observed) if decoded else ""
        return known or f"revision {record.revision} was made from another spec"
    another = _another_chart(made_from.chart, desired.chart)
    if another and str(made_from.chart) == str(desired.chart):
        what = "digest" if made_from.chart.digest != desired.chart.digest else "source"
        return f"{what} of chart {desired.chart} changed"
    if another:
        return f"chart {made_from.chart} → {desired.chart}"
    if spelled(made_from.values) != spelled(desired.values):
        return f"values changed: {changes(made_from.values, desired.values)}"
    if made_from.patches_sha != desired.patches_sha:
        return "patches changed"
    if made_from.kustomization != desired.kustomization:
        return "kustomize changed"
    return "apply options changed"


def _another_chart(made: ChartAsk, asked: ChartAsk) -> bool:
    if asked.url:
        # Name and version are whatever is found there, and may be filled in afterwards.
        made = replace(made, name=asked.name, version=asked.version)
    if asked.digest and asked.digest == made.digest and not made.version:
        # Whatever version the pin led to.
        made = replace(made, version=asked.version)
    return made != asked


def _difference(desired: Desired, decoded: Decoded, observed: Observed) -> str:
    chart = desired.chart
    if not chart.url and chart.name and chart.name != decoded.chart_name:
        return f"chart {decoded.chart_name} → {chart.name}"
    exact = not chart.url and _EXACT.fullmatch(chart.version)
    if exact and plain_version(chart.version) != plain_version(decoded.chart_version):
        return desired.offer.because or f"chart {decoded.chart_version} → {chart.version}"
    if spelled(desired.values) != spelled(decoded.values):
        return f"values changed: {changes(decoded.values, desired.values)}"
    if desired.patches_sha != observed.patches_sha:
        return "patches changed"
    # No other client knows a kustomization.
    return "kustomize added" if desired.kustomization else ""


def _same_digest(desired: Desired, record: Record, observed: Observed) -> State:
    if record.status == FAILED:
        return State(StateName.FAILED, record.description or f"revision {record.revision} failed")
    if record.status != DEPLOYED:
        return State(StateName.OUT_OF_SYNC, f"revision {record.revision} is {record.status}")
    if observed.drift and observed.drift.correct:
        return State(StateName.DRIFTED, said_of(observed.drift.correct))
    objects = observed.objects
    if objects is None or objects.revision != record.revision or not desired.by_objects:
        return State(StateName.IN_SYNC, "deployed")
    worst = objects.worst()
    if objects.ready or worst is None:
        return State(StateName.IN_SYNC, f"{objects.summary} objects ready")
    said = f": {worst.message}" if worst.message else ""
    return State(
        StateName.UNREADY,
        f"{objects.summary} objects ready; {worst.ref} is {worst.health}{said}",
    )
