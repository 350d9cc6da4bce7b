"""The chart's tests, run once for each time they are asked for: when, and what is said of them."""

from dataclasses import replace
from datetime import datetime, timedelta

import msgspec

from pilothouse.api.release import TEST_REQUESTED, Release
from pilothouse.api.status import ChartTests, ReleaseStatus, TestedHook
from pilothouse.core.conditions import LONGEST_MESSAGE, moment, timestamp
from pilothouse.core.desired import Desired
from pilothouse.core.details import objects_of
from pilothouse.core.masking import redacted
from pilothouse.core.observed import HookResult, Observed
from pilothouse.core.outcome import Conclusion, Ended, Notice
from pilothouse.core.plan import (
    Install,
    Plan,
    Repair,
    Rest,
    Rollback,
    RunTests,
    Uninstall,
    Unlock,
    Upgrade,
)
from pilothouse.core.redact import redact
from pilothouse.core.retry import doubled
from pilothouse.core.state import State, StateName
from pilothouse.core.telling import entry_of
from pilothouse.faults import FaultKind

RUNNING, SUCCEEDED, FAILED, NOT_RUN = "Running", "Succeeded", "Failed", "NotRun"
MOST_RESULTS = 50
LONGEST_REQUEST = 256
# A conflict may be somebody's upgrade meanwhile; one that meets every run is what the tests come to.
MOST_CONFLICTS = 3
FIRST_WAIT, LONGEST_WAIT = timedelta(seconds=1), timedelta(minutes=1)
# They came to nothing, which says nothing of the release: they are run again.
_NO_ANSWER = frozenset(
    {
        FaultKind.ENGINE_LOST,
        FaultKind.CANCELLED,
        FaultKind.UNKNOWN_CLUSTER,
        FaultKind.BUSY,
        FaultKind.CONFLICT,
    }
)


def due(
    release: Release, desired: Desired, observed: Observed, state: State, plan: Plan
) -> RunTests | None:
    """Return the step when tests were asked for and the release is as asked and ready for them."""
    at_rest = isinstance(plan, Rest) and state.name is StateName.IN_SYNC
    if not unanswered(release) or not at_rest or desired.paused or observed.record is None:
        return None
    if desired.by_objects and objects_of(observed) is None:
        return None  # not looked at yet, so not known to be ready
    return RunTests(observed.record.revision, f"asked for by {TEST_REQUESTED}: {_asked(release)}")


def unanswered(release: Release) -> bool:
    """Whether tests were asked for and have not come to a result."""
    asked, told = _asked(release), release.status.test
    return bool(asked) and (told.requested_at != asked or told.phase == RUNNING)


def in_the_way(plan: Plan) -> bool:
    """Whether tests must end before this is done: it changes what they test."""
    return isinstance(plan, Install | Upgrade | Rollback | Uninstall | Unlock)


def may_wait(plan: Plan) -> bool:
    """Whether this waits for tests to end by themselves."""
    return isinstance(plan, Repair)


def run_again(ended: Ended, runs: int) -> timedelta | None:
    """Return when to run tests again that came to nothing through nobody's fault; None: that is their result.

    They were interrupted, or something else was under way; `runs` counts those that came to nothing, with this one.
    """
    fault = ended.outcome.fault
    if fault is None or fault.kind not in _NO_ANSWER:
        return None
    if fault.kind is FaultKind.CONFLICT and runs >= MOST_CONFLICTS:
        return None
    return doubled(FIRST_WAIT, runs - 1, LONGEST_WAIT)


def announced(release: Release, plan: RunTests, now: datetime) -> ReleaseStatus:
    """Return the status that says that tests run."""
    running = ChartTests(
        requested_at=_asked(release),
        phase=RUNNING,
        revision=plan.revision,
        started=timestamp(now),
    )
    return msgspec.structs.replace(release.status, test=running)


def refused(release: Release, now: datetime) -> Conclusion:
    """Return what to write when tests may not be run."""
    said = "managementPolicies do not allow Update, which tests need"
    told = ChartTests(
        requested_at=_asked(release), phase=FAILED, message=said, finished=timestamp(now)
    )
    status = msgspec.structs.replace(release.status, test=told)
    return Conclusion(status=status, notice=Notice("TestsFailed", said, warning=True))


def conclude(release: Release, ended: Ended, now: datetime) -> Conclusion:
    """Return what to write when tests have come to a result."""
    ended = redacted(ended)
    outcome, running = ended.outcome, release.status.test
    passed = outcome.fault is None
    message = outcome.fault.message if outcome.fault else _passed(len(outcome.tests))
    told = ChartTests(
        requested_at=running.requested_at,
        phase=SUCCEEDED if passed else FAILED,
        revision=running.revision,
        started=running.started,
        finished=timestamp(now),
        message=_cut(message),
        results=[_result(one, ended.desired) for one in outcome.tests[:MOST_RESULTS]],
    )
    entry = replace(entry_of(release, ended, now), started=moment(running.started) or now)
    reason = "TestsSucceeded" if passed else "TestsFailed"
    return Conclusion(
        status=msgspec.structs.replace(release.status, test=told),
        notice=Notice(reason, f"revision {told.revision}: {message}", warning=not passed),
        entry=entry,
    )


def _asked(release: Release) -> str:
    return release.metadata.annotations.get(TEST_REQUESTED, "")[:LONGEST_REQUEST]


def _passed(count: int) -> str:
    if not count:
        return "the chart has no tests"
    return "1 test passed" if count == 1 else f"{count} tests passed"


def _result(one: HookResult, desired: Desired) -> TestedHook:
    return TestedHook(
        name=redact(one.hook, desired.secrets),
        # Helm does not know how a test ended that it could not follow to its end: it did not pass.
        phase={"": NOT_RUN, SUCCEEDED: SUCCEEDED}.get(one.phase, FAILED),
        started=timestamp(one.started) if one.started else None,
        finished=timestamp(one.finished) if one.finished else None,
    )


def _cut(message: str) -> str:
    return message if len(message) <= LONGEST_MESSAGE else message[: LONGEST_MESSAGE - 1] + "…"
