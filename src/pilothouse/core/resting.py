"""Say how a release is while nothing is to be done about it.

Pure, and stable: the same state of the world gives the same status, byte for byte, so that a pass that
changed nothing writes nothing.
"""

from datetime import datetime

import msgspec

from pilothouse.api.meta import Condition
from pilothouse.api.release import RECONCILE_REQUESTED, Release
from pilothouse.api.status import AtProvider, LastAttempt, ReleaseStatus
from pilothouse.core.conditions import READY, find, ready, synced, with_conditions
from pilothouse.core.desired import Desired
from pilothouse.core.details import objects_of, with_objects
from pilothouse.core.hook_runs import without_running
from pilothouse.core.observed import Decoded, Observed, Record
from pilothouse.core.plan import Plan, Rest, Stop, Wait
from pilothouse.core.redact import redact
from pilothouse.core.state import State, StateName
from pilothouse.core.versions import deployed_chart
from pilothouse.faults import FaultKind

# How the digest of a package begins, on the record of the revision that was made with it.
PACKAGE = "sha256:"


def conclude_quiet(
    release: Release, desired: Desired, observed: Observed, state: State, plan: Plan, now: datetime
) -> ReleaseStatus:
    """Return the status when nothing is to be done."""
    release = without_running(release)
    status = release.status
    running = observed.running
    if running is None or running.waiting:
        # While objects are being written their states are yesterday's news, and a write each.
        status = with_objects(status, observed, desired.secrets)
    others = _is_others(observed, state)
    if isinstance(plan, Stop) or (others and isinstance(plan, Wait)):
        kind = plan.kind if isinstance(plan, Stop) else str(FaultKind.BUSY)
        said = redact(plan.reason, desired.secrets)
        reason = "Deleting" if desired.absent else "Unavailable"
        stopped = (
            synced(release, now, true=False, reason=kind, message=said),
            ready(release, now, true=False, reason=reason, message=said),
        )
        return msgspec.structs.replace(
            status,
            synced=False,
            conditions=with_conditions(release, *stopped),
            observed_generation=release.metadata.generation,
            at_provider=at_provider_of(status, observed.record),
            next_attempt=None if isinstance(plan, Stop) else status.next_attempt,
            last_handled_reconcile_at=requested(release),
        )
    if not isinstance(plan, Rest):
        return status
    if desired.paused:
        return paused(release, now)
    deployed = state.name in {StateName.IN_SYNC, StateName.UNREADY}
    if not deployed:
        return status
    if observed.record and observed.record.digest == desired.digest:
        status = _as_noted(status, desired, observed.record)
    return msgspec.structs.replace(
        status,
        conditions=with_conditions(
            release,
            synced(release, now, true=True, reason="ReconcileSuccess", message=""),
            deployed_ready(release, desired, state, observed, now),
        ),
        observed_generation=release.metadata.generation,
        at_provider=at_provider_of(status, observed.record, observed.decoded),
        synced=True,
        retries=0,
        failed=0,
        next_attempt=None,
        last_handled_reconcile_at=requested(release),
        last_attempt=_without_error(status.last_attempt),
    )


def _is_others(observed: Observed, state: State) -> bool:
    """Whether another Helm client is at work: another instance of ours tells of its own."""
    record = observed.record
    foreign = record is not None and not record.owner
    return state.name is StateName.PENDING and observed.running is None and foreign


def is_paused(release: Release) -> bool:
    """Whether nothing is to be done: by annotation, or because no policy allows anything."""
    return release.paused or not release.spec.management_policies


def paused(release: Release, now: datetime) -> ReleaseStatus:
    """Return the status of a Release that is left alone."""
    said = (
        "paused by the annotation crossplane.io/paused"
        if release.paused
        else "paused: managementPolicies is empty"
    )
    release = without_running(release)
    told = synced(release, now, true=False, reason="ReconcilePaused", message=said)
    return msgspec.structs.replace(release.status, conditions=with_conditions(release, told))


def deployed_ready(
    release: Release, desired: Desired, state: State, observed: Observed, now: datetime
) -> Condition:
    """Say whether what is deployed runs."""
    generation = release.metadata.generation
    if desired.by_objects and objects_of(observed) is None:
        held = find(release.status.conditions, READY)
        # Not looked at yet (after a restart, say): what was true for this revision is still the best answer.
        record = observed.record
        same = record is not None and record.revision == release.status.at_provider.revision
        if same and held and held.observed_generation == generation and held.reason == "Available":
            return held
        return ready(
            release,
            now,
            true=False,
            reason="Unavailable",
            message="deployed; looking at its objects",
        )
    if state.name is StateName.IN_SYNC:
        return ready(release, now, true=True, reason="Available", message="")
    said = redact(state.reason, desired.secrets)
    return ready(release, now, true=False, reason="Unavailable", message=said)


def _without_error(attempt: LastAttempt) -> LastAttempt:
    return msgspec.structs.replace(attempt, error="") if attempt.error else attempt


def requested(release: Release) -> str:
    """Return the newest wish, by annotation, to look again."""
    return release.metadata.annotations.get(RECONCILE_REQUESTED, "")


def _as_noted(status: ReleaseStatus, desired: Desired, record: Record) -> ReleaseStatus:
    """Return the status with what was noted of the newest revision, or would have been."""
    if status.at_provider.revision == record.revision:
        pin = status.at_provider.digest or desired.chart.digest
        return as_deployed(status, desired, record, pin)
    # What its action came to was never told: the digest tells that all of this is deployed, its stamp tells the package.
    if record.source.startswith(PACKAGE):
        version = record.chart_version or desired.chart.version
        chart = deployed_chart(desired, version, record.source, republished="")
        status = msgspec.structs.replace(status, chart=chart)
    return as_deployed(status, desired, record, desired.chart.digest)


def as_deployed(
    status: ReleaseStatus, made_with: Desired, record: Record | None, pin: str
) -> ReleaseStatus:
    """Note what the newest revision was made with and its record does not tell, or not for ever."""
    uid, stamp = (record.uid, record.digest) if record else ("", "")
    return msgspec.structs.replace(
        status,
        chart=msgspec.structs.replace(status.chart, record=uid, stamp=stamp),
        patches_sha=made_with.patches_sha,
        at_provider=msgspec.structs.replace(
            status.at_provider,
            digest=pin,
            ownership_taken=made_with.take_ownership,
        ),
    )


def at_provider_of(
    status: ReleaseStatus, record: Record | None, decoded: Decoded | None = None
) -> AtProvider:
    """Return how Helm has the release; what its records do not tell stays as it was."""
    held = status.at_provider
    if record is None:
        return AtProvider(version=held.version)
    same = held.revision == record.revision
    inside = decoded if decoded and decoded.revision == record.revision else None
    return AtProvider(
        state=record.status,
        revision=record.revision,
        # Metadata tells neither version nor description; a decoded record does.
        version=record.chart_version or (inside.chart_version if inside else held.version),
        release_description=record.description or (held.release_description if same else ""),
        digest=held.digest,
        ownership_taken=held.ownership_taken,
    )
