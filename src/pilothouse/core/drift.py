"""Judge what others changed: what must be looked at, what is put back, what stands and is told.

Pure: the loop compares and repairs, and hands in what it remembers.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from pilothouse.core.drift_known import (
    FAILURE_FIRST_WAIT,
    FAILURE_LONGEST_WAIT,
    GONE,
    Correction,
    Difference,
    Finding,
    Known,
)
from pilothouse.core.drift_rules import DriftMode, DriftRules, Exemption
from pilothouse.core.observed import DEPLOYED, ObjectRef, Observed, Record, Suspect
from pilothouse.core.policy import Policies
from pilothouse.core.retry import doubled

# How soon an object is compared again whose last comparisons all said the same.
LOOK_FIRST_WAIT = timedelta(seconds=2)
LOOK_LONGEST_WAIT = timedelta(minutes=5)
COMPARED_AT_ONCE = 50
# A comparison that fails so often is told of: the first times, the cluster may only be busy.
TOLERATED_FAULTS = 2
# Webhooks' and aggregated APIs' certificates are filled in by others: cert-manager, operators, hooks.
_CERTIFIED = frozenset(
    {
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
        "APIService",
        "CustomResourceDefinition",
    }
)
_BUNDLES = (
    "/webhooks/*/clientConfig/caBundle",
    "/spec/caBundle",
    "/spec/conversion/webhook/clientConfig/caBundle",
)
AT_ONCE = datetime.min.replace(tzinfo=UTC)


class Standing(StrEnum):
    """Why a difference is not put back."""

    WARN = "Warn"
    FIGHT = "Fight"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class Stands:
    """One object that differs and is not put back."""

    ref: ObjectRef
    differences: tuple[Difference, ...]
    why: Standing
    message: str = ""


@dataclass(frozen=True, slots=True)
class Drift:
    """What is to be done about what others changed."""

    compare: tuple[Suspect, ...] = ()
    correct: tuple[Correction, ...] = ()
    stands: tuple[Stands, ...] = ()
    # When to judge again, if nothing else happens.
    until: datetime | None = None
    # Not everything is known yet: what was said of it before holds until it is.
    unsettled: bool = False


CALM = Drift()
UNSEEN = Drift(unsettled=True)


def mode_for(rules: DriftRules, policies: Policies, record: Record) -> DriftMode:
    """Return the mode in force: what another client deployed, or what may not be changed, is only told."""
    if rules.mode is not DriftMode.CORRECT:
        return rules.mode
    foreign = not record.digest and not rules.explicit
    return DriftMode.WARN if foreign or not policies.update else DriftMode.CORRECT


def worth_searching(rules: DriftRules, record: Record) -> bool:
    """Whether anything would come of comparing every object."""
    return record.status == DEPLOYED and rules.mode is not DriftMode.IGNORE


def judge(
    rules: DriftRules, policies: Policies, observed: Observed, known: Known, now: datetime
) -> Drift:
    """Return what is to be done."""
    record, objects = observed.record, observed.objects
    if record is None or record.status != DEPLOYED or observed.running:
        return CALM
    mode = mode_for(rules, policies, record)
    if mode is DriftMode.IGNORE:
        return CALM
    if objects is None or objects.revision != record.revision:
        return UNSEEN
    findings = known.findings if known.revision == record.revision else {}
    looks = {one: _due(findings.get(one.ref), one) for one in objects.suspects}
    compare = [one for one, due in looks.items() if due is not None and due <= now]
    moments = [due for due in looks.values() if due is not None and due > now]
    correct, stands, unsettled = [], [], False
    for suspect in objects.suspects:
        finding = findings.get(suspect.ref)
        if finding is None or _unsure(finding):
            unsettled = True
            continue
        correction, rest, until = _judge_one(finding, suspect, rules, mode, known, now)
        stands += rest
        if until:
            moments.append(until)
        # Put back, and not seen since: it is as it should be, or already not so again.
        unseen = finding.mended and finding.suspect == suspect
        unsettled = unsettled or (not rest and (unseen or suspect in compare))
        if correction and suspect not in compare:
            correct.append(correction)
    return Drift(
        compare=tuple(compare[:COMPARED_AT_ONCE]),
        correct=tuple(correct),
        stands=tuple(stands),
        until=min(moments, default=None),
        unsettled=unsettled,
    )


def _unsure(finding: Finding) -> bool:
    """Whether a comparison failed that may well work the next time."""
    return bool(finding.fault) and finding.repeated < TOLERATED_FAULTS


def _judge_one(
    finding: Finding,
    suspect: Suspect,
    rules: DriftRules,
    mode: DriftMode,
    known: Known,
    now: datetime,
) -> tuple[Correction | None, list[Stands], datetime | None]:
    """Return what to put back in one object, what stands, and when that may change."""
    open_ones, left = _sort_out(finding, suspect, rules)
    warned = mode is DriftMode.WARN and open_ones
    if finding.fault:
        why = Standing.WARN if warned else Standing.FAILED
        return None, [Stands(suspect.ref, open_ones, why, finding.fault)], None
    if not open_ones:
        return None, [], None
    if warned:
        return None, [Stands(suspect.ref, open_ones, Standing.WARN)], None
    return _correction(suspect.ref, open_ones, left, known, now)


def _due(finding: Finding | None, suspect: Suspect) -> datetime | None:
    """Return when an object must be compared; None: what is known of it holds."""
    if finding is None:
        return AT_ONCE
    if finding.fault:
        return finding.at + doubled(FAILURE_FIRST_WAIT, finding.repeated, FAILURE_LONGEST_WAIT)
    seen = finding.suspect
    if finding.mended and seen == suspect:
        return finding.at + LOOK_FIRST_WAIT
    if seen.altered != suspect.altered or seen.scaled != suspect.scaled:
        return AT_ONCE
    if seen.sight == suspect.sight:
        return None
    # Somebody wrote who has fields of it already: what may be theirs, or again what may not.
    if not finding.repeated:
        return finding.at
    return finding.at + doubled(LOOK_FIRST_WAIT, finding.repeated - 1, LOOK_LONGEST_WAIT)


def _sort_out(
    finding: Finding, suspect: Suspect, rules: DriftRules
) -> tuple[tuple[Difference, ...], tuple[str, ...]]:
    """Return what counts as drift, and the paths of what does not."""
    if finding.missing and finding.expires:
        return (), (GONE,)
    found = (Difference(GONE),) if finding.missing else finding.differences
    open_ones, left = [], []
    for one in found:
        if _rightly_owned(finding, suspect, one.path) or _exempt(rules, suspect.ref, one.path):
            left.append(one.path)
        else:
            open_ones.append(one)
    return tuple(open_ones), tuple(left)


def left_to_others(rules: DriftRules) -> tuple[Exemption, ...]:
    """Return what an action leaves as others have it: what the Release says, and injected certificates."""
    return (*rules.exemptions, *(Exemption(_BUNDLES, kind=kind) for kind in sorted(_CERTIFIED)))


def _rightly_owned(finding: Finding, suspect: Suspect, path: str) -> bool:
    if (suspect.scaled or finding.scaled) and path == "/spec/replicas":
        return True
    return suspect.ref.kind in _CERTIFIED and path.endswith("/caBundle")


def _exempt(rules: DriftRules, ref: ObjectRef, path: str) -> bool:
    return any(
        one.covers(ref.api_version, ref.kind, ref.namespace, ref.name, path)
        for one in rules.exemptions
    )


def _correction(
    ref: ObjectRef,
    open_ones: tuple[Difference, ...],
    left: tuple[str, ...],
    known: Known,
    now: datetime,
) -> tuple[Correction | None, list[Stands], datetime | None]:
    """Return what to put back in one object, what stands, and when that may change."""
    failure = known.failures.get(ref)
    if failure and now < failure.until:
        return None, [Stands(ref, open_ones, Standing.FAILED, failure.message)], failure.until
    fought = {
        one: dispute.until
        for one in open_ones
        if (dispute := known.disputes.get((ref, one.path))) and dispute.until and dispute.holds(now)
    }
    rest = [Stands(ref, tuple(fought), Standing.FIGHT)] if fought else []
    free = tuple(one for one in open_ones if one not in fought)
    until = min(fought.values(), default=None)
    if not free:
        return None, rest, until
    return Correction(ref, free, (*left, *(one.path for one in fought))), rest, until
