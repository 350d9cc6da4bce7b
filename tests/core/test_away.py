"""A cluster that goes away during an action: that is one failure, and none that is waited for once it is back."""

from collections.abc import Callable
from datetime import timedelta

import msgspec
import pytest
from make import NOW, release

from pilothouse.api.release import Release
from pilothouse.core.conclude import announce, attempts_of, conclude_action, conclude_fault
from pilothouse.core.decide import decide, question
from pilothouse.core.desired import desired
from pilothouse.core.observed import Observed
from pilothouse.core.outcome import Conclusion, Ended, Fault, Outcome
from pilothouse.core.plan import Install, Plan, Wait
from pilothouse.core.state import classify
from pilothouse.faults import FaultKind

AWAY = FaultKind.UNREACHABLE
WANTED = desired(release())


def after(one: Release, conclusion: Conclusion) -> Release:
    return msgspec.structs.replace(one, status=conclusion.status)


def begun() -> Release:
    one = release()
    return msgspec.structs.replace(one, status=announce(one, WANTED, Install("absent"), NOW))


def failed(kind: FaultKind) -> Callable[[Release], Release]:
    """An action comes to that end."""
    ended = Ended(WANTED, Install("absent"), Outcome(fault=Fault(kind, "no answer to a request")))
    return lambda one: after(one, conclude_action(one, WANTED, ended, Observed(), NOW))


def refused(kind: FaultKind, said: str = "no answer to a watch") -> Callable[[Release], Release]:
    """A pass cannot even decide."""
    return lambda one: after(one, conclude_fault(one, question(WANTED), Fault(kind, said), NOW))


def plan(one: Release) -> Plan:
    state = classify(WANTED, Observed(), NOW)
    return decide(WANTED, Observed(), state, attempts_of(one), NOW)


@pytest.mark.parametrize(
    ("events", "next_step"),
    [
        pytest.param([failed(AWAY), refused(AWAY)], Install, id="the action finds out first"),
        pytest.param([refused(AWAY), failed(AWAY)], Install, id="the eyes find out first"),
        pytest.param(
            [refused(AWAY), refused(AWAY, "another way"), failed(AWAY)], Install, id="told twice"
        ),
        pytest.param([failed(AWAY)], Wait, id="the eyes saw it all the time"),
        pytest.param(
            [failed(FaultKind.HOOK), refused(AWAY)], Wait, id="it had failed for another reason"
        ),
        pytest.param(
            [failed(AWAY), refused(FaultKind.NOT_FOUND)], Wait, id="refused for another reason"
        ),
    ],
)
def test_it_is_one_failure(
    events: list[Callable[[Release], Release]], next_step: type[Plan]
) -> None:
    one = begun()
    for event in events:
        one = event(one)
    assert one.status.retries == 1
    assert isinstance(plan(one), next_step)
    assert one.status.next_attempt, "should the cluster stay away"


def test_what_fails_for_another_reason_meanwhile_is_waited_for() -> None:
    one = failed(FaultKind.HOOK)(refused(AWAY, "another way")(refused(AWAY)(begun())))
    assert isinstance(plan(one), Wait)
    assert one.status.last_attempt.reason == "absent"


def test_a_refusal_counts_again_when_its_time_has_come() -> None:
    one = refused(AWAY)(failed(AWAY)(begun()))
    later = attempts_of(one).next_at
    assert later
    fault = Fault(AWAY, "still no answer")
    early = conclude_fault(one, question(WANTED), fault, later - timedelta(seconds=1))
    assert (early.status.retries, early.again_at) == (1, later), "other words are not another try"
    late = conclude_fault(one, question(WANTED), fault, later)
    assert late.status.retries == 2
    assert late.again_at
    assert late.again_at > later
