"""What is said of a release whose chart could not be checked: it is not as asked, and runs as well as before."""

from dataclasses import replace
from datetime import datetime

import msgspec

from pilothouse.api.release import Release
from pilothouse.api.status import ReleaseStatus
from pilothouse.core.conclude import conclude_fault
from pilothouse.core.conditions import SYNCED, find, merge
from pilothouse.core.desired import Desired
from pilothouse.core.observed import Observed
from pilothouse.core.outcome import Conclusion, Fault
from pilothouse.core.redact import redact
from pilothouse.core.resting import deployed_ready
from pilothouse.core.state import State, StateName
from pilothouse.core.trust import check_question


def conclude_check(
    release: Release,
    wanted: Desired,
    observed: Observed,
    state: State,
    fault: Fault,
    now: datetime,
) -> Conclusion:
    """Return what to write when a check came to no good."""
    said = Fault(fault.kind, redact(fault.message, wanted.secrets))
    conclusion = conclude_fault(release, check_question(wanted), said, now, "Verify")
    status = still_ready(release, wanted, observed, state, conclusion.status, now)
    return replace(conclusion, status=status)


def still_ready(
    release: Release,
    wanted: Desired,
    observed: Observed,
    state: State,
    status: ReleaseStatus,
    now: datetime,
) -> ReleaseStatus:
    """Return a status with what the objects say of Ready: a check does not make them run any worse."""
    if not observed.unchecked or state.name not in {StateName.IN_SYNC, StateName.UNREADY}:
        return status
    ready = deployed_ready(release, wanted, state, observed, now)
    synced = find(status.conditions, SYNCED)
    told = (synced, ready) if synced else (ready,)
    return msgspec.structs.replace(status, conditions=merge(release.status.conditions, *told))
