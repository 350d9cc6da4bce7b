"""What may wait to be told, and for how long."""

import msgspec
from make import NOW, objects, record, release

from pilothouse.api.release import Release
from pilothouse.api.status import ReleaseStatus
from pilothouse.core.conclude import announce, conclude_action
from pilothouse.core.desired import Desired, desired
from pilothouse.core.observed import Health, Observed
from pilothouse.core.outcome import Ended, Errand, Fault, Outcome
from pilothouse.core.pace import AGAIN, AT_ONCE, DETAILS, ENDED, IN_LINE, is_next_step, patience
from pilothouse.core.plan import Install, Rest, Upgrade
from pilothouse.core.resting import conclude_quiet
from pilothouse.core.state import classify
from pilothouse.faults import FaultKind

NOTHING = ReleaseStatus()


def with_status(status: ReleaseStatus, one: Release | None = None) -> Release:
    return msgspec.structs.replace(one or release(), status=status)


def begun(one: Release, plan: Install | Upgrade) -> ReleaseStatus:
    return announce(one, desired(one), plan, NOW)


def ended(one: Release, fault: Fault | None = None) -> ReleaseStatus:
    wanted = desired(one)
    outcome = Outcome(record=record(1, "deployed", wanted.digest), fault=fault)
    done = Ended(wanted, Install("not installed"), outcome, Errand("uid-shop"))
    return conclude_action(one, wanted, done, Observed(), NOW).status


def resting(one: Release, *troubled: Health) -> ReleaseStatus:
    wanted: Desired = desired(one)
    seen = Observed(record=record(1, "deployed", wanted.digest), objects=objects(1, *troubled))
    return conclude_quiet(one, wanted, seen, classify(wanted, seen, NOW), Rest(), NOW)


def test_an_install_waits_in_the_line_then_for_its_objects() -> None:
    installing = begun(release(), Install("not installed"))
    assert patience(NOTHING, installing) == IN_LINE
    installed = ended(with_status(installing))
    assert is_next_step(installing, installed)
    assert patience(NOTHING, installed) == ENDED
    assert patience(installing, installed) == ENDED
    runs = resting(with_status(installed))
    assert not is_next_step(installed, runs)
    for told in (NOTHING, installing, installed):
        assert patience(told, runs) == AT_ONCE, "what everybody waits for"


def test_what_stood_for_the_last_spec_stands_for_a_second_at_most() -> None:
    runs = resting(with_status(ended(with_status(begun(release(), Install("not installed"))))))
    edited = with_status(runs, release({"message": "new"}, generation=2))
    assert patience(runs, begun(edited, Upgrade("values changed: message"))) == AGAIN


def test_a_failure_is_told_at_once() -> None:
    installing = begun(release(), Install("not installed"))
    failed = ended(with_status(installing), Fault(FaultKind.HOOK, "it broke"))
    assert patience(installing, failed) == patience(NOTHING, failed) == AT_ONCE


def test_a_rollout_costs_a_few_writes_and_not_one_per_object() -> None:
    one, two, none = (
        resting(release(), *[Health.IN_PROGRESS] * troubled) for troubled in (1, 2, 0)
    )
    assert one != two
    assert patience(one, two) == DETAILS
    assert patience(one, none) == patience(none, one) == AT_ONCE, "Ready flips at once"
    assert patience(one, msgspec.structs.replace(one, retries=1)) == AT_ONCE
