"""What is remembered of one release's drift between passes: comparisons, corrections, failures."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from pilothouse.core.observed import ObjectRef, Suspect
from pilothouse.core.retry import doubled

# The same path put back so often within so long is a fight.
FIGHT_CORRECTIONS = 5
FIGHT_WINDOW = timedelta(minutes=5)
FIGHT_FIRST_WAIT = timedelta(minutes=10)
FIGHT_LONGEST_WAIT = timedelta(days=1)
# How soon a repair or a comparison that failed is tried again.
FAILURE_FIRST_WAIT = timedelta(seconds=5)
FAILURE_LONGEST_WAIT = timedelta(minutes=10)
GONE = ""  # the path of a difference that is the whole object


@dataclass(frozen=True, slots=True)
class Difference:
    """One place in which an object is not as applied, and the field manager that has it."""

    path: str
    manager: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a comparison of one object said."""

    suspect: Suspect
    at: datetime
    differences: tuple[Difference, ...] = ()
    missing: bool = False
    # It is meant to go by itself.
    expires: bool = False
    # An autoscaler has its replicas, as far as that could be asked.
    scaled: bool = False
    # Why it could not be compared; the rest is then what the last comparison before had said.
    fault: str = ""
    # How many comparisons before said the same, or failed too.
    repeated: int = 0
    # It has been put back since, as far as it may be, and the eyes have not said so yet.
    mended: bool = False


@dataclass(frozen=True, slots=True)
class Dispute:
    """What was put back at one place, and when it may be next."""

    corrections: tuple[datetime, ...] = ()
    waits: int = 0
    until: datetime | None = None

    def corrected(self, now: datetime) -> "Dispute":
        """Return the dispute after one more correction."""
        if self.until:
            waits = self.waits + 1
            if now - self.until > doubled(FIGHT_FIRST_WAIT, self.waits, FIGHT_LONGEST_WAIT):
                return Dispute((now,))  # it had been quiet for long: not a fight any more
            return Dispute(
                (now,), waits, now + doubled(FIGHT_FIRST_WAIT, waits, FIGHT_LONGEST_WAIT)
            )
        recent = tuple(one for one in self.corrections if now - one < FIGHT_WINDOW)
        recent = (*recent, now)[-FIGHT_CORRECTIONS:]
        if len(recent) < FIGHT_CORRECTIONS:
            return Dispute(recent)
        return Dispute(recent, 0, now + FIGHT_FIRST_WAIT)

    def holds(self, now: datetime) -> bool:
        """Whether the place must not be put back yet."""
        return self.until is not None and now < self.until


@dataclass(frozen=True, slots=True)
class Failure:
    """A repair that failed."""

    message: str
    until: datetime
    times: int = 1


Place = tuple[ObjectRef, str]


@dataclass(frozen=True, slots=True)
class Known:
    """What the loop remembers of one release's drift; losing it costs a look."""

    revision: int = 0
    findings: Mapping[ObjectRef, Finding] = field(default_factory=dict)
    disputes: Mapping[Place, Dispute] = field(default_factory=dict)
    failures: Mapping[ObjectRef, Failure] = field(default_factory=dict)
    # Fights that have been told of.
    named: frozenset[Place] = frozenset()


@dataclass(frozen=True, slots=True)
class Correction:
    """One object to apply again, and what of it stays as it is."""

    ref: ObjectRef
    differences: tuple[Difference, ...]
    leave: tuple[str, ...] = ()


def found(known: Known, revision: int, findings: list[Finding]) -> Known:
    """Take in what a comparison said."""
    held = dict(known.findings) if known.revision == revision else {}
    for one in findings:
        held[one.suspect.ref] = _following(one, held.get(one.suspect.ref))
    return replace(known, revision=revision, findings=held)


def _following(finding: Finding, before: Finding | None) -> Finding:
    """Return a finding with what the one before adds to it."""
    if before is None:
        return finding
    if finding.fault:
        return replace(
            before,
            suspect=finding.suspect,
            at=finding.at,
            fault=finding.fault,
            repeated=before.repeated + 1 if before.fault else 0,
            mended=False,
        )
    said = (finding.differences, finding.missing)
    same = not before.fault and said == (before.differences, before.missing)
    return replace(finding, repeated=before.repeated + 1 if same else 0)


def repaired(
    known: Known, done: tuple[Correction, ...], failed: Mapping[ObjectRef, str], now: datetime
) -> Known:
    """Take in what a repair came to."""
    findings, disputes = dict(known.findings), dict(known.disputes)
    failures = dict(known.failures)
    for one in done:
        if one.ref in failed:
            times = failures[one.ref].times + 1 if one.ref in failures else 1
            until = now + doubled(FAILURE_FIRST_WAIT, times - 1, FAILURE_LONGEST_WAIT)
            failures[one.ref] = Failure(failed[one.ref], until, times)
            continue
        failures.pop(one.ref, None)
        if one.ref in findings:
            findings[one.ref] = _mended(findings[one.ref], one, now)
        for difference in one.differences:
            place = (one.ref, difference.path)
            disputes[place] = disputes.get(place, Dispute()).corrected(now)
    return replace(known, findings=findings, disputes=disputes, failures=failures)


def _mended(finding: Finding, done: Correction, now: datetime) -> Finding:
    """Return what is left of a finding: what was not put back still differs."""
    paths = {one.path for one in done.differences}
    left = tuple(one for one in finding.differences if one.path not in paths)
    return Finding(finding.suspect, now, left, scaled=finding.scaled, mended=True)


def swept(known: Known, suspects: tuple[Suspect, ...] | None, now: datetime) -> Known:
    """Forget what is over; without a sight of the objects (None), nothing of them is."""
    refs = {*known.findings, *known.failures} if suspects is None else {one.ref for one in suspects}
    return replace(
        known,
        # What was forgiven since is told of again when it is fought over again.
        named=known.named & {place for place, one in known.disputes.items() if one.until},
        findings={ref: one for ref, one in known.findings.items() if ref in refs},
        failures={ref: one for ref, one in known.failures.items() if ref in refs},
        disputes={
            place: one
            for place, one in known.disputes.items()
            if one.until or now - one.corrections[-1] < FIGHT_WINDOW
        },
    )
