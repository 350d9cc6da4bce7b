"""Choose the next step for one release: the only place that chooses.

Pure: the same arguments always give the same plan.
"""

from datetime import datetime
from typing import assert_never

from pilothouse.core import trust
from pilothouse.core.desired import Desired
from pilothouse.core.drift_words import said_of
from pilothouse.core.observed import DEPLOYED, Observed, Record
from pilothouse.core.plan import (
    CreateNamespace,
    Inspect,
    Install,
    Interrupt,
    LetGo,
    Plan,
    Repair,
    Rest,
    Rollback,
    Stop,
    Uninstall,
    Unlock,
    Upgrade,
    Wait,
)
from pilothouse.core.redact import redact
from pilothouse.core.retry import Attempts, gave_up
from pilothouse.core.spelling import DEFAULT_TIMEOUT
from pilothouse.core.state import State, StateName

GIVEN_UP = "RollbackLimitReached"
DELETION = "deletion"  # stands for a digest: failures to remove are counted apart


def asked_for(desired: Desired) -> str:
    """Return the digest, or the deletion."""
    return DELETION if desired.absent else desired.digest


def question(desired: Desired) -> str:
    """Return what attempts are counted for: the digest and what else may let the next try end otherwise.

    Whoever gives a chart that timed out more time has asked anew. The digest stays the first word.
    """
    if desired.absent:
        return DELETION
    terms = {
        "wait": desired.wait,
        f"{desired.timeout.total_seconds():g}s": desired.timeout != DEFAULT_TIMEOUT,
        "no-namespace": not desired.create_namespace,
    }
    return " ".join([trust.question(desired), *(term for term, given in terms.items() if given)])


def decide(
    desired: Desired, observed: Observed, state: State, attempts: Attempts, now: datetime
) -> Plan:
    """Return the one next step."""
    hands_off = _hands_off(desired, observed)
    if hands_off:
        return hands_off
    record = observed.record
    asked = question(desired)
    retried = attempts.failed_before(asked)
    match state.name:
        case StateName.GONE:
            return LetGo()
        case StateName.PENDING:
            return _while_pending(desired, observed, state)
        case StateName.IN_SYNC | StateName.UNREADY | StateName.DRIFTED:
            return _while_deployed(desired, observed, state, attempts, now)
        case StateName.UNMANAGED:
            return Inspect(record.revision if record else 0)
        case StateName.OUT_OF_SYNC if observed.unchecked and _only_pinned(desired, record):
            # It may be the pin of the very chart that is deployed.
            return trust.next_check(desired, attempts, now)
        case _ if not _allowed(desired, observed):
            return Stop("NotAllowed", f"{state.reason}, and managementPolicies do not allow more")
        case StateName.FAILED if desired.rollback_limit is not None and retried:
            return _go_back(observed, state)
        case StateName.ABSENT | StateName.OUT_OF_SYNC | StateName.FAILED if has_given_up(
            desired, attempts
        ):
            return _given_up(desired, observed, attempts)
        case _ if not attempts.only_refused and not attempts.due(asked, now):
            return Wait(attempts.error, until=attempts.next_at)
        case StateName.STALE if record and record.pending:
            return Unlock(record.revision, state.reason)
        case StateName.STALE | StateName.DELETING:
            return Uninstall(state.reason)
        case StateName.ABSENT if observed.namespace_missing and desired.create_namespace:
            return CreateNamespace(desired.release.namespace)
        case StateName.ABSENT:
            return Install(state.reason, preflight=retried)
        case StateName.OUT_OF_SYNC if not observed.made_from and not observed.decoded_record:
            # One look, so that the reason can be told.
            return Inspect(record.revision if record else 0)
        case StateName.OUT_OF_SYNC:
            return Upgrade(state.reason, preflight=retried)
        case StateName.FAILED:
            return Upgrade(f"retry: {state.reason}", preflight=True)
        case _:
            assert_never(state.name)


def has_given_up(desired: Desired, attempts: Attempts) -> bool:
    """Whether nothing more is tried for this spec: what runs then is to stay as it is."""
    return attempts.exhausted(question(desired), desired.rollback_limit)


def _given_up(desired: Desired, observed: Observed, attempts: Attempts) -> Plan:
    if observed.drift and observed.drift.correct:
        return Repair(
            observed.drift.correct, redact(said_of(observed.drift.correct), desired.secrets)
        )
    left = "it is not installed" if observed.record is None else "the last good revision runs"
    return Stop(GIVEN_UP, gave_up(attempts, desired.rollback_limit, left))


def _hands_off(desired: Desired, observed: Observed) -> Plan | None:
    """Return the plan when nothing may be done to the Helm release, whatever its state."""
    if desired.paused:
        return Rest("paused")
    if desired.absent and not desired.policies.delete:
        return LetGo()
    if desired.held_by:
        # Whoever put them there may still need what is deployed.
        others = ", ".join(desired.held_by)
        return Stop("OtherFinalizers", f"waits for the finalizers of others: {others}")
    if desired.absent and observed.holder:
        return LetGo()
    if observed.holder:
        said = (
            f'Release "{observed.holder}" is older and has the Helm release {desired.release}: '
            "give this one another crossplane.io/external-name, or delete one of the two"
        )
        return Stop("AlreadyClaimed", said)
    return None


def _while_deployed(
    desired: Desired, observed: Observed, state: State, attempts: Attempts, now: datetime
) -> Plan:
    record = observed.record
    if record and _version_unknown(observed, record):
        return Inspect(record.revision)
    if state.name is StateName.DRIFTED and observed.drift:
        return Repair(observed.drift.correct, state.reason)
    if observed.unchecked:
        return trust.next_check(desired, attempts, now)
    return Rest(state.reason)


def _only_pinned(desired: Desired, record: Record | None) -> bool:
    """Whether nothing but the chart's pin differs from what is deployed."""
    return record is not None and record.digest in desired.alike


def _version_unknown(observed: Observed, record: Record) -> bool:
    """Whether only a look inside tells what is deployed: after adoption, or when the status was lost."""
    told = observed.version_told or record.chart_version
    return not told and not observed.decoded_record


def _allowed(desired: Desired, observed: Observed) -> bool:
    policies, record = desired.policies, observed.record
    if desired.absent:
        return policies.delete
    # A first install of ours that failed or was interrupted is still being created.
    unborn = record and record.digest and record.status != DEPLOYED and not observed.good
    return policies.create if record is None or unborn else policies.update


def _go_back(observed: Observed, state: State) -> Plan:
    """After a failure with a rollback limit: to the last good revision, or to nothing at all."""
    good = observed.good
    if good is None:
        return Uninstall(f"there is no good revision to go back to: {state.reason}")
    return Rollback(good.revision, good.digest, state.reason, good.source)


def _while_pending(desired: Desired, observed: Observed, state: State) -> Plan:
    running = observed.running
    # Other keys are no reason to end what was checked with the ones before.
    newer = running is not None and running.digest.split()[0] != asked_for(desired)
    if running and newer and running.waiting and not running.stopping:
        return Interrupt("a newer spec is there")
    return Wait(state.reason, until=state.until)
