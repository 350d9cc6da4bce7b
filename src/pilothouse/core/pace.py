"""How soon a change of the status has to be told.

An install or an upgrade is one story: begun, ended, its objects run. When all of it is over within a second,
the end is all that anybody reads, and what comes before it costs the API server as much as the release's own objects.
"""

from datetime import timedelta

import msgspec

from pilothouse.api.status import ReleaseStatus
from pilothouse.core.conditions import READY, RECONCILING, SYNCED, find

AT_ONCE = timedelta()
# Objects change one by one in a rollout.
DETAILS = timedelta(milliseconds=300)
# The objects of an action that has just ended are about to run.
ENDED = timedelta(milliseconds=500)
# What was told of the last spec must not stand for long.
AGAIN = timedelta(seconds=1)
# Where nothing was told yet, nobody takes silence for readiness: so long in the line, and so long once it is its turn.
IN_LINE = timedelta(seconds=5)
BEGUN = timedelta(seconds=2)
# Whatever comes in between.
LONGEST = timedelta(seconds=10)


def patience(told: ReleaseStatus, status: ReleaseStatus) -> timedelta:
    """Return how long `status` may wait for what comes next, when `told` is what everybody can read."""
    if _headline(told) == _headline(status):
        return DETAILS
    synced, ready = find(status.conditions, SYNCED), find(status.conditions, READY)
    if synced is None or ready is None or ready.status == "True":
        return AT_ONCE
    if synced.reason == RECONCILING:
        return AGAIN if told.conditions else IN_LINE
    return ENDED if synced.status == "True" and is_next_step(told, status) else AT_ONCE


def is_next_step(held: ReleaseStatus, status: ReleaseStatus) -> bool:
    """Whether an action has ended of which only the begin was to be told."""
    finished = status.last_attempt.finished
    return finished is not None and finished != held.last_attempt.finished


def _headline(status: ReleaseStatus) -> ReleaseStatus:
    """Return the status without what it says of single objects."""
    return msgspec.structs.replace(
        status,
        summary="",
        resources=[],
        external=[],
        dependencies=[],
        watch_mode="",
        conditions=[
            msgspec.structs.replace(one, message="") if one.type == READY else one
            for one in status.conditions
        ],
    )
