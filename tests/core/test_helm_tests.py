"""When a chart's tests run, and what is said of them."""

import msgspec
import pytest
from make import NOW, objects, record, release

from pilothouse.api.release import TEST_REQUESTED
from pilothouse.api.status import ChartTests
from pilothouse.core import helm_tests
from pilothouse.core.desired import Sources, desired
from pilothouse.core.observed import Health, HookResult, Observed, Running
from pilothouse.core.outcome import Ended, Fault, HookLog, Outcome
from pilothouse.core.plan import Install, Repair, Rest, RunTests, Uninstall, Upgrade, Wait
from pilothouse.core.state import classify
from pilothouse.faults import FaultKind

TESTS = RunTests(2, "asked for by pilothouse.dev/test-requested-at: now")


def asked(test: ChartTests | None = None, value: str = "now"):
    one = release()
    metadata = msgspec.structs.replace(one.metadata, annotations={TEST_REQUESTED: value})
    status = msgspec.structs.replace(one.status, test=test or ChartTests())
    return msgspec.structs.replace(one, metadata=metadata, status=status)


def due(one, plan=Rest(), **observed):  # noqa: B008 - frozen
    wanted = desired(one)
    seen = Observed(record=record(2, "deployed", wanted.digest), **observed)
    return helm_tests.due(one, wanted, seen, classify(wanted, seen, NOW), plan)


@pytest.mark.parametrize(
    ("told", "runs"),
    [
        pytest.param(ChartTests(), True, id="never asked before"),
        pytest.param(ChartTests(requested_at="then", phase="Failed"), True, id="asked again"),
        pytest.param(ChartTests(requested_at="now", phase="Running"), True, id="interrupted"),
        pytest.param(ChartTests(requested_at="now", phase="Failed"), False, id="failed once"),
        pytest.param(ChartTests(requested_at="now", phase="Succeeded"), False, id="passed once"),
    ],
)
def test_each_request_has_one_result(told, runs) -> None:
    assert due(asked(told), objects=objects(2)) == (TESTS if runs else None)


def test_without_a_request_nothing_is_tested() -> None:
    assert due(asked(value=""), objects=objects(2)) is None


def test_tests_wait_until_the_release_is_ready() -> None:
    assert due(asked(), objects=objects(2, Health.IN_PROGRESS)) is None
    assert due(asked()) is None, "not looked at yet"
    assert due(asked(), plan=Upgrade("newer"), objects=objects(2)) is None
    assert due(asked(), plan=Wait("busy"), running=Running("Upgrade", "digest")) is None


@pytest.mark.parametrize("plan", [Install(""), Upgrade(""), Uninstall("")])
def test_what_changes_the_release_ends_its_tests(plan) -> None:
    assert helm_tests.in_the_way(plan)
    assert not helm_tests.may_wait(plan)


def test_drift_waits_for_tests_and_looking_does_not() -> None:
    assert helm_tests.may_wait(Repair((), ""))
    assert not helm_tests.in_the_way(Repair((), ""))
    assert not helm_tests.may_wait(Rest())
    assert not helm_tests.in_the_way(Rest())


def ended(outcome: Outcome) -> Ended:
    secrets = frozenset({"hunter2"})
    return Ended(desired(release(), Sources(values={}, secrets=secrets)), TESTS, outcome)


def test_a_failure_is_told_without_secrets_and_changes_nothing_else() -> None:
    before = asked(ChartTests(requested_at="now", phase="Running", revision=2))
    results = (
        HookResult("Pod ping", "Succeeded", NOW, NOW),
        HookResult("Pod smoke", "Unknown", NOW),
        HookResult("Pod load"),
    )
    fault = Fault(FaultKind.HOOK, "hook Pod smoke failed")
    logs = (HookLog("Pod smoke", "logging in with hunter2\nno such table"),)
    done = helm_tests.conclude(before, ended(Outcome(None, fault, logs, tests=results)), NOW)
    told = done.status.test
    assert (told.phase, told.revision, told.requested_at) == ("Failed", 2, "now")
    assert told.message.endswith("its log ends: logging in with *** ⏎ no such table")
    assert [one.phase for one in told.results] == ["Succeeded", "Failed", "NotRun"]
    assert msgspec.structs.replace(done.status, test=ChartTests()) == msgspec.structs.replace(
        before.status, test=ChartTests()
    )
    assert done.notice
    assert (done.notice.reason, done.notice.warning) == ("TestsFailed", True)
    assert done.entry
    assert done.entry.action == "RunTests"
    assert "hunter2" not in str(done)


@pytest.mark.parametrize(
    ("count", "said"), [(0, "the chart has no tests"), (1, "1 test passed"), (3, "3 tests passed")]
)
def test_success_is_counted(count, said) -> None:
    results = tuple(HookResult(f"Pod {n}", "Succeeded") for n in range(count))
    done = helm_tests.conclude(asked(), ended(Outcome(tests=results)), NOW)
    assert (done.status.test.phase, done.status.test.message) == ("Succeeded", said)


def again(kind: FaultKind, runs: int = 1) -> float | None:
    wait = helm_tests.run_again(ended(Outcome(fault=Fault(kind, "…"))), runs)
    return None if wait is None else wait.total_seconds()


def test_what_was_interrupted_has_no_result() -> None:
    for kind in (FaultKind.CANCELLED, FaultKind.ENGINE_LOST, FaultKind.BUSY):
        assert [again(kind, runs) for runs in (1, 2, 3, 9)] == [1, 2, 4, 60]
    assert again(FaultKind.TIMEOUT) is None
    assert helm_tests.run_again(ended(Outcome()), 1) is None


def test_a_conflict_that_meets_every_run_is_the_result() -> None:
    assert [again(FaultKind.CONFLICT, runs) for runs in (1, 2, 3)] == [1, 2, None]


def test_tests_that_may_not_run_are_refused_once() -> None:
    refused = helm_tests.refused(asked(), NOW).status
    assert "Update" in refused.test.message
    after = msgspec.structs.replace(asked(), status=refused)
    assert not helm_tests.unanswered(after)
