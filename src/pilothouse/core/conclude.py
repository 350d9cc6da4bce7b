"""Turn what happened into what is written: status, an Event, a line in the archive.

Pure, and stable: the same state of the world gives the same status, byte for byte, so that a pass that
changed nothing writes nothing.
"""

from dataclasses import replace
from datetime import datetime

import msgspec

from pilothouse.api.release import Release
from pilothouse.api.status import DeployedChart, LastAttempt, ReleaseStatus
from pilothouse.core.conditions import (
    RECONCILING,
    SYNCED,
    find,
    moment,
    ready,
    synced,
    timestamp,
    with_conditions,
)
from pilothouse.core.decide import question
from pilothouse.core.desired import Desired
from pilothouse.core.hook_runs import hooks_after, over
from pilothouse.core.masking import redacted
from pilothouse.core.observed import FAILED, Observed
from pilothouse.core.outcome import Conclusion, Ended, Entry, Fault, Notice
from pilothouse.core.plan import (
    Action,
    Install,
    Rest,
    Rollback,
    Uninstall,
    Unlock,
    Upgrade,
    name_of,
)
from pilothouse.core.redact import redact
from pilothouse.core.resting import as_deployed, at_provider_of, conclude_quiet, requested
from pilothouse.core.retry import Attempts, backoff
from pilothouse.core.state import classify
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
        asked_for_now=requested(release) != status.last_handled_reconcile_at,
        # An action that was begun says why; a refusal has nothing to say.
        only_refused=bool(status.last_attempt.error and not status.last_attempt.reason),
    )


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
            synced(release, now, true=False, reason=RECONCILING, message=message),
            ready(release, now, true=False, reason=ready_reason, message=message),
        ),
        observed_generation=release.metadata.generation,
        synced=False,
        retries=status.retries if same else 0,
        failed=status.failed if same else 0,
        next_attempt=status.next_attempt if same and going_back else None,
        hooks=over(status.hooks) if going_back else [],
        last_handled_reconcile_at=requested(release),
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
        release.status,
        at_provider=at_provider_of(release.status, outcome.record),
        hooks=hooks_after(release.status.hooks, ended),
    )
    entry = entry_of(release, ended, now)
    if fault:
        counted = isinstance(plan, Install | Upgrade) and desired.rollback_limit is not None
        if counted and outcome.record and outcome.record.status == FAILED:
            status = msgspec.structs.replace(status, failed=status.failed + 1)
        away = _told_away(release, fault)
        if status.last_attempt.digest == question(ended.desired):
            reason = "" if away else redact(plan.reason, ended.desired.secrets)
            attempt = msgspec.structs.replace(status.last_attempt, reason=reason)
            status = msgspec.structs.replace(status, last_attempt=attempt)
        return _failed(release, status, name, fault, entry, now, counted=not away)
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
        as_deployed(status, ended.desired, outcome.record, ended.desired.chart.digest)
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


def conclude_elsewhere(release: Release, ended: Ended, now: datetime) -> Conclusion:
    """Return what to write when an action has ended in a place that its Release has left: nothing but its record."""
    ended = redacted(ended)
    fault = ended.outcome.fault
    if fault and fault.kind in _NOT_COUNTED:
        entry = superseded(release, ended, Observed(), now)
    else:
        entry = entry_of(release, ended, now)
    return Conclusion(status=release.status, entry=entry, again_now=True)


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


def conclude_fault(
    release: Release, asked: str, fault: Fault, now: datetime, action: str = "Install"
) -> Conclusion:
    """Return what to write when a pass could not even decide or start: bad input, no cluster."""
    status, attempts = release.status, attempts_of(release)
    same = status.last_attempt.digest == asked
    counted = not attempts.failed_before(asked) or attempts.due(asked, now)
    status = msgspec.structs.replace(
        status,
        retries=status.retries if same else 0,
        failed=status.failed if same else 0,
        hooks=over(status.hooks),
        observed_generation=release.metadata.generation,
        last_handled_reconcile_at=requested(release),
        last_attempt=LastAttempt(
            action=status.last_attempt.action if same else action,
            digest=asked,
            reason=status.last_attempt.reason if same and not _told_away(release, fault) else "",
            started=status.last_attempt.started if same else timestamp(now),
            error=status.last_attempt.error if same else "",
        ),
    )
    return _failed(release, status, action, fault, None, now, counted=counted)


def _told_away(release: Release, fault: Fault) -> bool:
    """Whether a fault says what was told already, that the cluster is away.

    An action and the eyes find out at about the same time. That is one failure; and as with whatever was only
    refused, nothing is waited for once the cluster is in sight again.
    """
    told = find(release.status.conditions, SYNCED)
    away = str(FaultKind.UNREACHABLE)
    return str(fault.kind) == away and told is not None and told.reason == away


def _failed(
    release: Release,
    status: ReleaseStatus,
    action: str,
    fault: Fault,
    entry: Entry | None,
    now: datetime,
    *,
    counted: bool,
) -> Conclusion:
    """Tell a failure; one that is not counted belongs to the one before, and is waited for as long."""
    failures = status.retries + 1 if counted else status.retries
    waits_until = None if counted else moment(status.next_attempt)
    again = waits_until or now + backoff(failures, release.metadata.uid)
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
