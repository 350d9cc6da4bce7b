"""Turn drift into what is written: status, condition, Events, a line in the archive."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from pilothouse.api.release import Release
from pilothouse.api.status import DriftedObject, ReleaseStatus
from pilothouse.core.conditions import SYNCED, condition, find, merge
from pilothouse.core.decide import GIVEN_UP, asked_for
from pilothouse.core.desired import Desired
from pilothouse.core.drift import Drift, Standing, Stands
from pilothouse.core.drift_known import Correction, Place
from pilothouse.core.drift_words import changed, fought_over, manager_of, said_of, shortened
from pilothouse.core.observed import ObjectRef
from pilothouse.core.outcome import Entry, Errand, Notice
from pilothouse.core.redact import redact

DRIFTED = "Drifted"
LISTED_OBJECTS = 50
LISTED_PATHS = 20
LONGEST_MESSAGE = 300


@dataclass(frozen=True, slots=True)
class Mended:
    """A repair that has ended."""

    desired: Desired
    corrections: tuple[Correction, ...]
    revision: int
    started: datetime
    # Why some objects, or all, could not be put back.
    failed: dict[ObjectRef, str]
    errand: Errand = field(default_factory=Errand)


def is_final(status: ReleaseStatus) -> bool:
    """Whether what is deployed stays, so that what differs from it is worth telling."""
    synced = find(status.conditions, SYNCED)
    return synced is not None and (synced.status == "True" or synced.reason == GIVEN_UP)


def with_drift(
    release: Release, status: ReleaseStatus, drift: Drift, secrets: Iterable[str], now: datetime
) -> ReleaseStatus:
    """Return the status with what stands; a release that never drifted has no such condition.

    While not everything is known, what was said stays: "not looked at yet" is not "no drift".
    """
    stands = drift.stands
    if drift.unsettled:
        return status
    if not stands and not status.drift and find(status.conditions, DRIFTED) is None:
        return status
    said = shortened([_said(one) for one in stands])
    reason = _REASON[min((one.why for one in stands), key=_GRAVEST.index)] if stands else "NoDrift"
    drifted = condition(
        DRIFTED,
        true=bool(stands),
        reason=reason,
        message=redact(said, secrets),
        generation=release.metadata.generation,
        now=now,
    )
    return msgspec.structs.replace(
        status,
        drift=[_listed(one, secrets) for one in stands[:LISTED_OBJECTS]],
        conditions=merge(status.conditions, drifted),
    )


def news(
    release: Release, drift: Drift, secrets: Iterable[str], named: frozenset[Place]
) -> list[Notice]:
    """Return what has not been told yet, by the status that there is or as a fight that was named."""
    if drift.unsettled:
        return []  # what is told must be written too, or it would be told again
    told = {
        (one.kind, one.namespace, one.name, path, one.state)
        for one in release.status.drift
        for path in one.paths
    }
    notices = []
    for stands in drift.stands[:LISTED_OBJECTS]:
        ref = stands.ref
        fresh = tuple(
            one
            for one in stands.differences[:LISTED_PATHS]
            if (ref.kind, ref.namespace, ref.name, one.path, str(stands.why)) not in told
            and not (stands.why is Standing.FIGHT and (ref, one.path) in named)
        )
        if not fresh:
            continue
        if stands.why is Standing.FIGHT:
            notices += [
                Notice("DriftFight", redact(fought_over(ref, one), secrets), warning=True)
                for one in fresh
            ]
        elif stands.why is Standing.WARN:
            said = redact(changed(ref, fresh), secrets)
            notices.append(Notice("Drifted", said, warning=True))
    return notices


def conclude_repair(release: Release, mended: Mended, now: datetime) -> tuple[Entry, list[Notice]]:
    """Return the archive's line and the Events of a repair."""
    secrets = mended.desired.secrets
    done = [one for one in mended.corrections if one.ref not in mended.failed]
    errors = sorted({redact(error, secrets) for error in mended.failed.values()})
    entry = Entry(
        release=release.metadata.uid,
        cluster=mended.errand.cluster,
        helm_release=str(mended.desired.release),
        action="Repair",
        reason=redact(said_of(mended.corrections), secrets),
        digest=asked_for(mended.desired),
        revision=mended.revision,
        chart="",
        error=shortened(errors),
        started=mended.started,
        finished=now,
    )
    notices = []
    if done:
        notices.append(Notice("CorrectedDrift", redact(f"put back: {said_of(done)}", secrets)))
    told = {one.message for one in release.status.drift if one.state == Standing.FAILED}
    notices += [
        Notice("CannotCorrectDrift", error, warning=True)
        for error in errors
        if error[:LONGEST_MESSAGE] not in told
    ]
    return entry, notices


_GRAVEST = [Standing.FIGHT, Standing.FAILED, Standing.WARN]
_REASON = {
    Standing.FIGHT: "Fighting",
    Standing.FAILED: "CannotCorrect",
    Standing.WARN: "Changed",
}


def _said(stands: Stands) -> str:
    if stands.why is Standing.FIGHT:
        return shortened([fought_over(stands.ref, one) for one in stands.differences])
    if not stands.differences:
        return f"{stands.ref} cannot be compared: {stands.message}"
    said = changed(stands.ref, stands.differences)
    if not stands.message:
        return said
    what = "compared again" if stands.why is Standing.WARN else "put back"
    return f"{said}, and cannot be {what}: {stands.message}"


def _listed(stands: Stands, secrets: Iterable[str]) -> DriftedObject:
    ref = stands.ref
    return DriftedObject(
        api_version=ref.api_version,
        kind=ref.kind,
        namespace=ref.namespace,
        name=ref.name,
        paths=[one.path for one in stands.differences[:LISTED_PATHS]],
        manager=manager_of(stands.differences),
        state=str(stands.why),
        message=redact(stands.message, secrets)[:LONGEST_MESSAGE],
    )
