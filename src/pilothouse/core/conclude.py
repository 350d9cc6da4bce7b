"""Turn what happened into what is written: status, an Event, a line in the archive.

Pure, and stable: the same state of the world gives the same status, byte for byte, so that a pass that
changed nothing writes nothing.
"""

from dataclasses import replace
from datetime import datetime

import msgspec

from pilothouse.api.meta import Condition
from pilothouse.api.release import RECONCILE_REQUESTED, Release
from pilothouse.api.status import AtProvider, DeployedChart, LastAttempt, ReleaseStatus
from pilothouse.core.conditions import (
    READY,
    find,
    moment,
    ready,
    synced,
    timestamp,
    with_conditions,
)
from pilothouse.core.decide import question
from pilothouse.core.desired import Desired
from pilothouse.core.details import objects_of, with_objects
from pilothouse.core.hooks import with_tail, without_secrets
from pilothouse.core.observed import FAILED, Decoded, Observed, Record
from pilothouse.core.outcome import Conclusion, Ended, Entry, Fault, Notice
from pilothouse.core.plan import (
    Action,
    Install,
    Plan,
    Rest,
    Rollback,
    Stop,
    Uninstall,
    Unlock,
    Upgrade,
    name_of,
)
from pilothouse.core.redact import redact
from pilothouse.core.retry import Attempts, backoff
from pilothouse.core.state import State, StateName, classify
from pilothouse.core.telling import DONE, FAILED_TO, describe, entry_of, superseded
from pilothouse.core.trust import seal_of
from pilothouse.core.versions import deployed_chart
from pilothouse.faults import FaultKind

_DOING = {
    "Install": ("Creating", "installing"),
    "Upgrade": ("Unavailable", "upgrading"),
    "Uninstall": ("Deleting", "uninstalling"),
    "Unlock": ("Unavailable", "recovering"),
    "Rollback": ("Unavailable", "rolling back"),
}
# Not a failure of what was asked: the next pass looks and decides.
_NOT_COUNTED = frozenset(
    {
        FaultKind.ENGINE_LOST,
        FaultKind.CANCELLED,
        FaultKind.UNKNOWN_CHART,
        FaultKind.UNKNOWN_CLUSTER,
    }
)


def attempts_of(release: Release) -> Attempts:
    """Read back what was tried."""
    status = release.status
    return Attempts(
        digest=status.last_attempt.digest,
        failures=status.retries,
        next_at=moment(status.next_attempt),
        error=status.last_attempt.error,
        rolled_back=status.failed,
        asked_for_now=_request(release) != status.last_handled_reconcile_at,
        # An action that was begun says why; a refusal has nothing to say.
        only_refused=bool(status.last_attempt.error and not status.last_attempt.reason),
    )


def _request(release: Release) -> str:
    return release.metadata.annotations.get(RECONCILE_REQUESTED, "")


def announce(release: Release, desired: Desired, plan: Action, now: datetime) -> ReleaseStatus:
    """Return the status that says what is about to be done, and why."""
    name = name_of(plan)
    ready_reason, doing = _DOING[name]
    message = redact(f"{doing}: {plan.reason}", desired.secrets)
    asked = question(desired)
    status = release.status
    same = status.last_attempt.digest == asked
    going_back = isinstance(plan, Rollback) or (isinstance(plan, Uninstall) and not desired.absent)
    return msgspec.structs.replace(
        status,
        conditions=with_conditions(
            release,
            synced(release, now, true=False, reason="Reconciling", message=message),
            ready(release, now, true=False, reason=ready_reason, message=message),
        ),
        observed_generation=release.metadata.generation,
        synced=False,
        retries=status.retries if same else 0,
        failed=status.failed if same else 0,
        next_attempt=status.next_attempt if same and going_back else None,
        last_handled_reconcile_at=_request(release),
        last_attempt=LastAttempt(
            action=name,
            digest=asked,
            reason=redact(plan.reason, desired.secrets),
            started=timestamp(now),
            # What is being undone is still the reason why the spec is not deployed.
            error=status.last_attempt.error if going_back else "",
        ),
    )


def conclude_action(
    release: Release, desired: Desired, ended: Ended, observed: Observed, now: datetime
) -> Conclusion:
    """Return what to write when an action has ended; `desired` is what is asked by now."""
    ended = redacted(ended)
    plan, outcome = ended.plan, ended.outcome
    fault = outcome.fault
    if fault and (fault.kind in _NOT_COUNTED or _can_make_namespace(desired, fault)):
        entry = superseded(release, ended, observed, now)
        return Conclusion(status=release.status, entry=entry, again_now=True)
    name = name_of(plan)
    status = msgspec.structs.replace(
        release.status, at_provider=_at_provider(release.status, outcome.record)
    )
    entry = entry_of(release, ended, now)
    if fault:
        counted = isinstance(plan, Install | Upgrade) and desired.rollback_limit is not None
        if counted and outcome.record and outcome.record.status == FAILED:
            status = msgspec.structs.replace(status, failed=status.failed + 1)
        return _failed(release, status, name, fault, entry, now)
    status = _with_chart(status, ended)
    notice = Notice(DONE[name], describe(ended))
    if _went_back(ended):
        # The spec is still not what is deployed, and the failure is still the reason.
        status = msgspec.structs.replace(
            status,
            last_attempt=_finished(status.last_attempt, now, status.last_attempt.error),
        )
        return Conclusion(status=status, notice=notice, entry=entry, again_now=True)
    status = msgspec.structs.replace(
        _as_deployed(status, ended.desired, ended.desired.chart.digest)
        if isinstance(plan, Install | Upgrade)
        else status,
        retries=0,
        next_attempt=None,
        last_attempt=_finished(status.last_attempt, now, ""),
    )
    # What the next pass would find, so that one write tells it all.
    after = replace(observed, record=outcome.record, running=None)
    release = msgspec.structs.replace(release, status=status)
    state = classify(desired, after, now)
    status = conclude_quiet(release, desired, after, state, Rest(), now)
    return Conclusion(status=status, notice=notice, entry=entry, again_now=True)


def _as_deployed(status: ReleaseStatus, made_with: Desired, pin: str) -> ReleaseStatus:
    """Note what the newest revision was made with and its record does not tell."""
    return msgspec.structs.replace(
        status,
        patches_sha=made_with.patches_sha,
        at_provider=msgspec.structs.replace(
            status.at_provider,
            digest=pin,
            ownership_taken=made_with.take_ownership,
        ),
    )


def _with_chart(status: ReleaseStatus, ended: Ended) -> ReleaseStatus:
    """Note the package that was deployed, so that another one under the same version is noticed."""
    outcome = ended.outcome
    if isinstance(ended.plan, Rollback):
        return msgspec.structs.replace(status, chart=DeployedChart())
    if outcome.record is None or not outcome.chart_digest:
        return status
    version = outcome.record.chart_version
    chart = deployed_chart(
        ended.desired,
        version,
        outcome.chart_digest,
        outcome.republished,
        seal_of(ended.desired.chart),
    )
    return msgspec.structs.replace(status, chart=chart)


def _went_back(ended: Ended) -> bool:
    """Whether the action undid a failure rather than did what is asked."""
    undone = isinstance(ended.plan, Uninstall | Unlock) and not ended.desired.absent
    return undone or isinstance(ended.plan, Rollback)


def redacted(ended: Ended) -> Ended:
    """Take out of everything Helm said what came from a Secret."""
    secrets, outcome = ended.desired.secrets, ended.outcome
    record, fault = outcome.record, outcome.fault
    if record:
        record = replace(record, description=redact(record.description, secrets))
    if fault:
        fault = Fault(fault.kind, redact(fault.message, secrets))
    logs = without_secrets(outcome.logs, secrets)
    if fault:
        fault = with_tail(fault, logs)
    return replace(ended, outcome=replace(outcome, record=record, fault=fault, logs=logs))


def conclude_fault(
    release: Release, asked: str, fault: Fault, now: datetime, action: str = "Install"
) -> Conclusion:
    """Return what to write when a pass could not even decide or start: bad input, no cluster."""
    status = release.status
    same = status.last_attempt.digest == asked
    status = msgspec.structs.replace(
        status,
        retries=status.retries if same else 0,
        failed=status.failed if same else 0,
        observed_generation=release.metadata.generation,
        last_handled_reconcile_at=_request(release),
        last_attempt=LastAttempt(
            action=status.last_attempt.action if same else action,
            digest=asked,
            reason=status.last_attempt.reason if same else "",
            started=status.last_attempt.started if same else timestamp(now),
            error=status.last_attempt.error if same else "",
        ),
    )
    return _failed(release, status, action, fault, None, now)


def conclude_quiet(
    release: Release, desired: Desired, observed: Observed, state: State, plan: Plan, now: datetime
) -> ReleaseStatus:
    """Return the status when nothing is to be done."""
    status = release.status
    running = observed.running
    if running is None or running.waiting:
        # While objects are being written their states are yesterday's news, and a write each.
        status = with_objects(status, observed, desired.secrets)
    if isinstance(plan, Stop):
        said = redact(plan.reason, desired.secrets)
        reason = "Deleting" if desired.absent else "Unavailable"
        stopped = (
            synced(release, now, true=False, reason=plan.kind, message=said),
            ready(release, now, true=False, reason=reason, message=said),
        )
        return msgspec.structs.replace(
            status,
            synced=False,
            conditions=with_conditions(release, *stopped),
            observed_generation=release.metadata.generation,
            at_provider=_at_provider(status, observed.record),
            next_attempt=None,
            last_handled_reconcile_at=_request(release),
        )
    if not isinstance(plan, Rest):
        return status
    if desired.paused:
        return paused(release, now)
    deployed = state.name in {StateName.IN_SYNC, StateName.UNREADY}
    if not deployed:
        return status
    if observed.record and observed.record.digest == desired.digest:
        # Also after the status was lost: the digest tells that all of this is deployed.
        asked = status.at_provider.digest or desired.chart.digest
        status = _as_deployed(status, desired, asked)
    return msgspec.structs.replace(
        status,
        conditions=with_conditions(
            release,
            synced(release, now, true=True, reason="ReconcileSuccess", message=""),
            deployed_ready(release, desired, state, observed, now),
        ),
        observed_generation=release.metadata.generation,
        at_provider=_at_provider(status, observed.record, observed.decoded),
        synced=True,
        retries=0,
        failed=0,
        next_attempt=None,
        last_handled_reconcile_at=_request(release),
        last_attempt=_without_error(status.last_attempt),
    )


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
    told = synced(release, now, true=False, reason="ReconcilePaused", message=said)
    return msgspec.structs.replace(release.status, conditions=with_conditions(release, told))


def deployed_ready(
    release: Release, desired: Desired, state: State, observed: Observed, now: datetime
) -> Condition:
    """Say whether what is deployed runs."""
    generation = release.metadata.generation
    if desired.by_objects and objects_of(observed) is None:
        held = find(release.status.conditions, READY)
        # Not looked at yet (after a restart, say): what was true for this spec is still the best answer.
        if held and held.observed_generation == generation and held.reason == "Available":
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


def _failed(
    release: Release,
    status: ReleaseStatus,
    action: str,
    fault: Fault,
    entry: Entry | None,
    now: datetime,
) -> Conclusion:
    failures = status.retries + 1
    again = now + backoff(failures, release.metadata.uid)
    news = fault.message != release.status.last_attempt.error or not release.status.retries
    notice = Notice(FAILED_TO[action], fault.message, warning=True) if news else None
    deleting = release.metadata.deletion_timestamp is not None
    status = msgspec.structs.replace(
        status,
        conditions=with_conditions(
            release,
            synced(release, now, true=False, reason=str(fault.kind), message=fault.message),
            ready(
                release,
                now,
                true=False,
                reason="Deleting" if deleting else "Unavailable",
                message=fault.message,
            ),
        ),
        synced=False,
        retries=failures,
        next_attempt=timestamp(again),
        last_attempt=_finished(status.last_attempt, now, fault.message),
    )
    return Conclusion(status=status, notice=notice, entry=entry, again_at=again)


def _can_make_namespace(desired: Desired, fault: Fault) -> bool:
    return fault.kind is FaultKind.NAMESPACE_MISSING and desired.create_namespace


def _finished(attempt: LastAttempt, now: datetime, error: str) -> LastAttempt:
    return msgspec.structs.replace(attempt, finished=timestamp(now), error=error)


def _without_error(attempt: LastAttempt) -> LastAttempt:
    return msgspec.structs.replace(attempt, error="") if attempt.error else attempt


def _at_provider(
    status: ReleaseStatus, record: Record | None, decoded: Decoded | None = None
) -> AtProvider:
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
