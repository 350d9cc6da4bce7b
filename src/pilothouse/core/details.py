"""What a status says of single objects."""

from collections.abc import Iterable

import msgspec

from pilothouse.api.health import ResourceState
from pilothouse.api.status import ReleaseStatus
from pilothouse.core.observed import LISTED_MOST, Objects, ObjectState, Observed
from pilothouse.core.redact import redact

LONGEST_MESSAGE = 300


def objects_of(observed: Observed) -> Objects | None:
    """Return the objects of the newest revision, if they have been looked at."""
    record, objects = observed.record, observed.objects
    return objects if objects and record and objects.revision == record.revision else None


def with_objects(
    status: ReleaseStatus, observed: Observed, secrets: Iterable[str]
) -> ReleaseStatus:
    """Return the status with every object as it is now; what is not known yet stays as it was."""
    if observed.record is None:
        return msgspec.structs.replace(status, summary="", resources=[], external=[])
    objects = objects_of(observed)
    if objects is None:
        return status
    return msgspec.structs.replace(
        status,
        summary=objects.summary,
        resources=[_told(one, secrets) for one in objects.listed],
        external=[_told(one, secrets) for one in objects.external[:LISTED_MOST]],
        watch_mode=str(objects.watch),
    )


def _told(one: ObjectState, secrets: Iterable[str]) -> ResourceState:
    message = redact(one.message, secrets) if one.message else ""
    if len(message) > LONGEST_MESSAGE:
        message = message[: LONGEST_MESSAGE - 1] + "…"
    return ResourceState(
        api_version=one.ref.api_version,
        kind=one.ref.kind,
        namespace=one.ref.namespace,
        name=one.ref.name,
        state=str(one.health),
        message=message,
    )
