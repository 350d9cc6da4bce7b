"""How far an action is, in the status: the hook or the objects that it waits for."""

import msgspec

from pilothouse.api.status import ReleaseStatus
from pilothouse.core.conditions import READY, RECONCILING, SYNCED, find
from pilothouse.core.desired import Desired
from pilothouse.core.hook_runs import hooks_of
from pilothouse.core.observed import Running
from pilothouse.core.redact import redact

_WAITING = "; waiting for "


def with_progress(
    status: ReleaseStatus, running: Running | None, desired: Desired
) -> ReleaseStatus:
    """Return the status that was announced with what the action waits for by now, and the hooks it has begun."""
    told = find(status.conditions, SYNCED)
    if running is None or told is None or told.reason != RECONCILING:
        return status
    said = told.message.partition(_WAITING)[0]
    if running.progress:
        said = f"{said}{_WAITING}{redact(running.progress, desired.secrets)}"
    return msgspec.structs.replace(
        status,
        hooks=hooks_of(running, desired.secrets) or status.hooks,
        conditions=[
            msgspec.structs.replace(one, message=said)
            if one.type in {SYNCED, READY} and one.message == told.message
            else one
            for one in status.conditions
        ],
    )
