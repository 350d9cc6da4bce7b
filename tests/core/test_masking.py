"""What Helm said of a failed revision goes on: into states, plans, and what is written of them."""

from dataclasses import replace

import pytest
from make import NOW, objects, record, release

from pilothouse.api.release import Release
from pilothouse.api.status import LastAttempt, ReleaseStatus
from pilothouse.core.conclude import attempts_of, conclude_action
from pilothouse.core.decide import decide
from pilothouse.core.desired import Desired, Sources, desired
from pilothouse.core.masking import masked, redacted
from pilothouse.core.observed import Health, HookResult, Observed
from pilothouse.core.outcome import Ended, Fault, HookLog, Outcome
from pilothouse.core.plan import Action, Install, Rollback, RunTests, Uninstall, Unlock, Upgrade
from pilothouse.core.state import StateName, classify
from pilothouse.faults import FaultKind

SECRET = "sw0rdf1sh"  # noqa: S105 - it is to be hidden
SAID = f'Service "x" is invalid: spec.type: Unsupported value: "{SECRET}"'


def asked(limit: int | None = None, failures: int = 1) -> tuple[Release, Desired]:
    sources = Sources(values={"kind": SECRET}, secrets=frozenset({SECRET}))
    wanted = desired(release(rollback_limit=limit), sources)
    attempt = LastAttempt(digest=wanted.digest, error="***", reason="not installed")
    status = ReleaseStatus(retries=failures, last_attempt=attempt)
    return release(rollback_limit=limit, status=status), wanted


@pytest.mark.parametrize(
    ("limit", "good", "plan"),
    [(None, False, Upgrade), (1, True, Rollback), (1, False, Uninstall)],
)
def test_the_next_step_after_a_failure_tells_nothing(limit, good, plan) -> None:
    one, wanted = asked(limit)
    failed = record(2, "failed", wanted.digest, description=SAID)
    seen = Observed(record=failed, good=record(1, "superseded", "other") if good else None)
    state = classify(wanted, seen, NOW)
    assert state.name is StateName.FAILED
    assert "***" in state.reason
    step = decide(wanted, seen, state, attempts_of(one), NOW)
    assert isinstance(step, plan)
    assert SECRET not in str(step)


def test_an_object_that_quotes_a_secret_is_told_without_it() -> None:
    _, wanted = asked()
    found = objects(1, Health.FAILED)
    found = replace(found, listed=(replace(found.listed[0], message=SAID), *found.listed[1:]))
    seen = Observed(record=record(1, "deployed", wanted.digest), objects=found)
    state = classify(wanted, seen, NOW)
    assert state.name is StateName.UNREADY
    assert SECRET not in state.reason


@pytest.mark.parametrize(
    "plan",
    [
        *(kind(f"retry: {SAID}") for kind in (Install, Upgrade, Uninstall)),
        Rollback(1, "digest", SAID),
        Unlock(2, SAID),
        RunTests(2, SAID),
    ],
)
def test_why_something_was_done_is_told_without_secrets(plan: Action) -> None:
    one, wanted = asked()
    ended = Ended(wanted, plan, Outcome(record=record(3, "deployed", wanted.digest)))
    assert SECRET not in redacted(ended).plan.reason
    if isinstance(plan, RunTests):
        return
    conclusion = conclude_action(one, wanted, ended, Observed(), NOW)
    assert conclusion.entry
    assert "***" in conclusion.entry.reason
    assert SECRET not in str(conclusion)


def test_everything_of_an_outcome_is_masked() -> None:
    outcome = Outcome(
        record=record(1, "failed", description=SAID),
        fault=Fault(FaultKind.HOOK, SAID),
        logs=(HookLog(f"Job {SECRET}", SAID, missing=SAID),),
        warnings=(SAID,),
        hooks=(HookResult(f"Job {SECRET}", "Failed"),),
    )
    assert SECRET not in str(masked(outcome, {SECRET}))
    assert str(masked(outcome, {SECRET})).count("***") == 7
    assert masked(outcome, set()) == outcome
    assert masked(Outcome(), {SECRET}) == Outcome()
