"""The status tells which hooks ran in the newest action, and how they ended."""

from datetime import timedelta

import msgspec
import pytest
from make import NOW, record, release

from pilothouse.api.status import HookRun, ReleaseStatus
from pilothouse.core.conclude import announce, conclude_action, conclude_fault
from pilothouse.core.desired import Sources, desired
from pilothouse.core.hook_runs import LONGEST_KIND, LONGEST_NAME, MOST_HOOKS, hooks_of
from pilothouse.core.observed import HookResult, Observed, Running
from pilothouse.core.outcome import Ended, Fault, HookLog, Outcome
from pilothouse.core.plan import Action, Install, Rollback, Uninstall, Unlock, Upgrade, Wait
from pilothouse.core.progress import with_progress
from pilothouse.core.resting import conclude_quiet, paused
from pilothouse.core.state import classify
from pilothouse.faults import FaultKind

SECRETS = frozenset({"hunter2"})
FAULT = Fault(FaultKind.HOOK, "hook Job migrate: failed")
BEFORE = [HookRun(kind="Job", name="before", events=["pre-upgrade"], phase="Failed", log="no")]
INSTALL, UPGRADE = Install("not installed"), Upgrade("changed")
BACK = Rollback(1, "digest", "it failed")


def after(plan: Action, outcome: Outcome, told: list[HookRun] | None = None) -> ReleaseStatus:
    """Return the status after an action that was announced."""
    one = release(status=ReleaseStatus(hooks=told or []))
    wanted = desired(one, Sources(values={}, secrets=SECRETS))
    begun = msgspec.structs.replace(one, status=announce(one, wanted, plan, NOW))
    ended = Ended(wanted, plan, outcome)
    return conclude_action(begun, wanted, ended, Observed(), NOW).status


def hook(name: str, phase: str = "Succeeded", event: str = "pre-upgrade") -> HookResult:
    return HookResult(f"Job {name}", phase, NOW, NOW + timedelta(seconds=2), (event,))


def deployed(*hooks: HookResult) -> Outcome:
    return Outcome(record=record(2, "deployed"), hooks=hooks)


def failed(*hooks: HookResult, logs: tuple[HookLog, ...] = ()) -> Outcome:
    return Outcome(record(2, "failed"), FAULT, logs, hooks=hooks)


def test_success_names_what_ran() -> None:
    assert after(INSTALL, deployed(hook("db", event="pre-install"))).hooks == [
        HookRun(
            kind="Job",
            name="db",
            events=["pre-install"],
            phase="Succeeded",
            started="2026-11-15T12:00:00Z",
            finished="2026-11-15T12:00:02Z",
        )
    ]


def test_the_one_that_failed_comes_first_with_its_log_and_no_secret() -> None:
    logs = (HookLog("Job db", "went well"), HookLog("Job hunter2-up", "with hunter2\nno table"))
    status = after(UPGRADE, failed(hook("db"), hook("hunter2-up", "Failed"), logs=logs))
    assert [(one.name, one.phase, one.log) for one in status.hooks] == [
        ("***-up", "Failed", "with ***\nno table"),
        ("db", "Succeeded", ""),
    ]
    assert "hunter2" not in str(status)


def test_a_hook_that_could_not_be_followed_did_not_succeed() -> None:
    lost = HookResult("Job db", "Unknown", NOW, None, ("pre-upgrade",))
    (one,) = after(UPGRADE, failed(lost)).hooks
    assert (one.phase, one.finished, one.log) == ("Failed", None, "")


def test_many_and_long_ones_are_cut() -> None:
    many = [hook(f"job-{number:02}") for number in range(30)]
    told = after(UPGRADE, failed(*many, hook("last", "Failed"))).hooks
    assert [one.name for one in told] == ["last", *(f"job-{n:02}" for n in range(MOST_HOOKS - 1))]
    runs = HookResult("Job runs", "Unknown", NOW, None, ("pre-upgrade",))
    told = hooks_of(Running("Upgrade", "", hooks=(*many, runs, hook("bad", "Failed"))), SECRETS)
    assert [one.name for one in told[:3]] == ["bad", "runs", "job-00"]
    assert len(told) == MOST_HOOKS
    (one,) = after(UPGRADE, failed(HookResult("K" * 999 + " " + "n" * 999, "Failed"))).hooks
    assert (len(one.kind), len(one.name)) == (LONGEST_KIND, LONGEST_NAME)


@pytest.mark.parametrize("plan", [INSTALL, UPGRADE])
def test_a_chart_without_hooks_has_no_field(plan) -> None:
    for outcome in (deployed(), failed()):
        status = after(plan, outcome, BEFORE)
        assert b"hooks" not in msgspec.json.encode(status)


def test_what_is_begun_forgets_the_hooks_of_the_action_before() -> None:
    one = release(status=ReleaseStatus(hooks=BEFORE))
    wanted = desired(one)
    assert announce(one, wanted, UPGRADE, NOW).hooks == []
    assert announce(one, wanted, Unlock(2, "left over"), NOW).hooks == []
    assert announce(one, wanted, BACK, NOW).hooks == BEFORE
    assert announce(one, wanted, Uninstall("it failed"), NOW).hooks == BEFORE


def test_going_back_keeps_the_hook_that_is_the_reason_unless_hooks_ran_for_it() -> None:
    assert after(BACK, deployed(), BEFORE).hooks == BEFORE
    told = after(BACK, deployed(hook("undo", event="pre-rollback")), BEFORE).hooks
    assert [(one.name, one.events) for one in told] == [("undo", ["pre-rollback"])]


def test_what_came_to_nothing_tells_no_hooks() -> None:
    gone = Outcome(fault=Fault(FaultKind.CANCELLED, "ended"), hooks=(hook("db", "Failed"),))
    assert after(UPGRADE, gone, BEFORE).hooks == []


def test_while_an_action_waits_its_hooks_are_told_until_it_does_not() -> None:
    """Each pass tells the same of the same, and none leaves a hook running that nobody follows."""
    one = release()
    wanted = desired(one, Sources(values={}, secrets=SECRETS))
    begun = (hook("db"), HookResult("Job hunter2-up", "Unknown", NOW, None, ("pre-upgrade",)))
    running = Running("Upgrade", "", waiting=True, progress="hook Job hunter2-up", hooks=begun)
    seen = Observed(record=record(1, "pending-upgrade"), running=running)

    def looked(status: ReleaseStatus, observed: Observed) -> ReleaseStatus:
        now = release(status=status)
        state = classify(wanted, observed, NOW)
        quiet = conclude_quiet(now, wanted, observed, state, Wait("under way"), NOW)
        return with_progress(quiet, observed.running, wanted)

    first = looked(announce(one, wanted, UPGRADE, NOW), seen)
    assert [(each.name, each.phase) for each in first.hooks] == [
        ("***-up", "Running"),
        ("db", "Succeeded"),
    ]
    assert "hunter2" not in str(first)
    assert looked(first, seen) == first
    left = release(status=first)
    for status in (
        looked(first, Observed()),
        paused(left, NOW),
        announce(left, wanted, BACK, NOW),
        conclude_fault(left, "asked", FAULT, NOW).status,
    ):
        assert [each.name for each in status.hooks] == ["db"]
    assert announce(left, wanted, UPGRADE, NOW).hooks == []
