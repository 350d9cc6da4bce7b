"""Whether the chart that is deployed is one that may be: pinned by its digest, signed with one of the keys.

An action checks what it deploys. A pin or keys that come later are checked at once, against the chart that is
deployed: a good answer makes no revision, and a bad one is told and changes nothing.
"""

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime

import msgspec

from pilothouse.api.release import Release
from pilothouse.api.status import ReleaseStatus
from pilothouse.core.desired import ChartAsk, Desired
from pilothouse.core.observed import DEPLOYED, Observed, Record
from pilothouse.core.outcome import Fault
from pilothouse.core.plan import Check, Wait
from pilothouse.core.retry import Attempts
from pilothouse.core.versions import source_of
from pilothouse.faults import FaultKind


@dataclass(frozen=True, slots=True)
class Checked:
    """A check that was passed."""

    revision: int
    seal: str
    # A pin may name another chart than the one that is deployed: then that one is to be deployed.
    deployed: bool = True


def seal_of(chart: ChartAsk) -> str:
    """Return a digest of what a chart is checked for; empty: for nothing."""
    keyrings, public_keys = chart.access.keyrings, chart.access.public_keys
    if not (chart.digest or keyrings or public_keys):
        return ""
    asked = [chart.digest, _each(keyrings), _each(public_keys)]
    return hashlib.sha256(msgspec.json.encode(asked)).hexdigest()[:40]


def _each(keys: tuple[bytes, ...]) -> list[str]:
    return [hashlib.sha256(key).hexdigest() for key in keys]


def question(wanted: Desired) -> str:
    """Return what failed attempts are counted for: with other keys to check with, nothing has failed yet."""
    access = wanted.chart.access
    signed = access.keyrings or access.public_keys
    return f"{wanted.digest} {seal_of(wanted.chart)}" if signed else wanted.digest


def check_question(wanted: Desired) -> str:
    """Return what failed checks are counted for."""
    return f"check {wanted.digest} {seal_of(wanted.chart)}"


def settled(
    release: Release, wanted: Desired, record: Record | None, checked: Checked | None
) -> Desired:
    """Return what is wanted as the newest revision has it, if only the pin differs and that chart meets it."""
    if record is None or record.status != DEPLOYED or record.digest not in wanted.alike:
        return wanted
    held, seal = release.status.chart, seal_of(wanted.chart)
    met = wanted.chart.digest in {"", held.digest} or held.checked == seal
    if met or checked == Checked(record.revision, seal):
        return replace(wanted, digest=record.digest, alike=frozenset())
    return wanted


def unchecked(
    release: Release, wanted: Desired, record: Record | None, checked: Checked | None
) -> bool:
    """Whether what is deployed has yet to be checked; whatever is to be deployed is checked anyway."""
    if record is None or record.status != DEPLOYED or not wanted.policies.update:
        return False
    access, seal = wanted.chart.access, seal_of(wanted.chart)
    keys = access.keyrings or access.public_keys
    # The stamp of a revision is a digest of its pin too: without it, as after adoption, nobody has checked the pin.
    pin = wanted.chart.digest and record.digest != wanted.digest
    if not (keys or pin):
        return False
    here = checked is not None and (checked.revision, checked.seal) == (record.revision, seal)
    return not here and release.status.chart.checked != seal


def next_check(wanted: Desired, attempts: Attempts, now: datetime) -> Check | Wait:
    """Return the check, unless it has just failed."""
    if attempts.due(check_question(wanted), now):
        return Check("what it is checked for has changed")
    return Wait(attempts.error, until=attempts.next_at)


def passed(release: Release, wanted: Desired, record: Record, found_digest: str) -> Checked | Fault:
    """Judge a chart that was found to be good: it should be the one that is deployed."""
    held, seal = release.status.chart, seal_of(wanted.chart)
    if held.digest == found_digest:
        return Checked(record.revision, seal)
    if record.digest in wanted.alike:
        return Checked(record.revision, seal, deployed=False)
    if not held.digest or held.source != source_of(wanted.chart):
        return Checked(record.revision, seal)  # adopted: what is at its source is all that is known
    said = (
        f"the chart that is deployed, {held.digest}, cannot be checked: "
        f"{held.source} has {found_digest} now"
    )
    return Fault(FaultKind.CHART_NOT_VERIFIED, said)


def noted(status: ReleaseStatus, wanted: Desired, observed: Observed) -> ReleaseStatus:
    """Return the status of a release at rest with what its chart was checked for."""
    seal = seal_of(wanted.chart)
    if wanted.paused or observed.unchecked or not wanted.policies.update:
        return status
    if status.chart.checked == seal:
        return status
    chart = msgspec.structs.replace(status.chart, checked=seal)
    return msgspec.structs.replace(status, chart=chart)
