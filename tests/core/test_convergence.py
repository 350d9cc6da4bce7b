"""Whatever happens (edits, failures, crashes, foreign changes, drift), a release ends as it was asked."""

from datetime import timedelta

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from world import DURING_DELETION, EVERYTHING, FAULTS, HAND_EDITS, World

from pilothouse.core.conditions import moment
from pilothouse.core.desired import desired
from pilothouse.core.drift_known import GONE
from pilothouse.core.plan import Install, LetGo, Rollback, Stop, Uninstall, Upgrade, Wait
from pilothouse.faults import FaultKind

UNINSTALLED = ["fail before", "fail after", "crash before", "crash during", "crash after"]
STEPS = ["step", "sleep", "crash before", "crash after", "lose sight", "cannot compare"]


@given(st.lists(EVERYTHING, max_size=25))
@settings(max_examples=400)
def test_every_history_ends_as_asked(history):
    world = World()
    for event, detail in history:
        world.happen(event, detail)
    world.settle()
    assert world.storage
    assert world.storage.status == "deployed"
    assert world.content == world.release.spec.for_provider.values
    conditions = {one.type: one.status for one in world.release.status.conditions}
    assert conditions["Synced"] == "True"
    assert world.release.status.retries == 0
    if world.storage.digest:
        assert not world.drifted
    # What another client deployed is not put back, and told.
    assert conditions.get("Drifted", "False") == str(bool(world.drifted))
    assert {one.name for one in world.release.status.drift} == {one.name for one in world.drifted}
    gone = any(GONE in paths for paths in world.drifted.values())
    assert conditions["Ready"] == str(not gone)


@given(st.lists(st.one_of(HAND_EDITS, st.tuples(st.sampled_from(STEPS), st.none())), max_size=40))
@example(
    # Deleted again before anybody has seen that it was put back.
    [
        ("fought over", ((0, "/spec/replicas"), 6)),
        ("deleted by hand", 0),
        ("step", None),
        ("step", None),
        ("deleted by hand", 0),
    ]
)
@settings(max_examples=300)
def test_what_others_change_is_put_back_without_a_revision(history):
    world = World()
    world.settle()
    for event, detail in history:
        world.happen(event, detail)
    world.settle()
    assert not world.drifted
    assert world.release.status.drift == []
    assert world.deployments == [desired(world.release).digest]
    assert world.storage
    assert world.storage.revision == 1


@given(
    st.lists(EVERYTHING, max_size=25),
    st.lists(DURING_DELETION, max_size=15),
    st.sampled_from([None, 0, 2]),
)
@settings(max_examples=400)
def test_every_history_can_be_deleted_whatever_happens_meanwhile(history, meanwhile, limit):
    world = World(limit=limit)
    world.edit(0)
    for event, detail in history:
        world.happen(event, detail)
    world.edit(0, deleted=True)
    deployed = list(world.deployments)
    for event, detail in meanwhile:
        world.happen(event, detail)
    world.settle()
    assert world.let_go
    assert world.storage is None
    assert world.deployments == deployed


@given(
    st.booleans(), st.lists(st.tuples(st.sampled_from(UNINSTALLED), FAULTS), min_size=1, max_size=8)
)
def test_an_uninstall_that_came_to_nothing_is_done_again(by_hand, fates):
    world = World()
    world.settle()
    if by_hand:
        world.happen("helm by hand", 1)
    world.edit(0, deleted=True)
    for fate, fault in fates:
        # Nobody waits after a crash, and after a failure only until the next try is due.
        plan = world.step(fate, fault)
        assert isinstance(plan, Uninstall)
        if fate == "crash after":
            break
        if fate.startswith("fail") and world.release.status.next_attempt:
            assert isinstance(world.step(), Wait)
            world.now = moment(world.release.status.next_attempt)
    last = world.settle()
    assert isinstance(last, LetGo)
    assert world.storage is None


@given(st.lists(EVERYTHING, max_size=15))
@settings(max_examples=200)
def test_rest_writes_nothing(history):
    world = World()
    for event, detail in history:
        world.happen(event, detail)
    world.settle()
    before = world.release.status
    world.now += timedelta(hours=1)
    world.step()
    assert world.release.status == before


@given(st.lists(EVERYTHING, max_size=25), st.integers(0, 3))
@settings(max_examples=400)
def test_with_a_rollback_limit_it_ends_as_asked_or_says_why_not(history, limit):
    world = World(limit=limit)
    world.edit(0)
    for event, detail in history:
        world.happen(event, detail)
    plan = world.settle()
    if isinstance(plan, Stop):
        assert plan.kind == "RollbackLimitReached"
        assert world.release.status.failed >= limit
        assert world.storage is None or not world.storage.pending
        if world.storage and world.storage.status == "deployed" and world.storage.digest:
            assert not world.drifted, "what runs is kept as it was deployed"
        world.edit(9)  # a new question is tried at once
        world.settle()
    assert world.storage
    assert world.content == world.release.spec.for_provider.values


def test_a_failed_upgrade_goes_back_to_what_was_good():
    world = World(limit=1)
    world.edit(1)
    world.settle()
    world.edit(2)
    world.step("fail after", FaultKind.HOOK)
    plan = world.step()
    assert isinstance(plan, Rollback)
    assert world.content == {"n": 1}
    stopped = world.settle()
    assert isinstance(stopped, Stop)
    synced = next(one for one in world.release.status.conditions if one.type == "Synced")
    assert (synced.status, synced.reason) == ("False", "RollbackLimitReached")
    assert synced.message == (
        "failed once, and rollbackLimit 1 allows no further try; the last good revision runs; "
        "edit the spec to try again: it broke"
    )
    deployments, revision = list(world.deployments), world.storage
    world.happen("edited by hand", (0, "/data/colour"))
    assert isinstance(world.settle(), Stop)
    assert not world.drifted
    assert (world.deployments, world.storage) == (deployments, revision)
    assert synced in world.release.status.conditions


@pytest.mark.parametrize(
    "change", [{"wait_timeout": "20m"}, {"wait": True}, {"skip_create_namespace": True}]
)
@pytest.mark.parametrize("limit", [None, 1])
def test_more_patience_is_tried_at_once(limit, change):
    world = World(limit=limit)
    world.edit(1)
    world.step("fail after", FaultKind.TIMEOUT)
    world.step()  # with a limit, what failed is removed
    assert isinstance(world.step(), Wait | Stop)
    wanted = msgspec.structs.replace(world.release.spec.for_provider, **change)
    spec = msgspec.structs.replace(world.release.spec, for_provider=wanted)
    world.release = msgspec.structs.replace(world.release, spec=spec)
    assert isinstance(world.step(), Install | Upgrade)
    assert world.release.status.synced
    assert world.release.status.failed == 0


def test_a_limit_of_nothing_undoes_one_failure_and_counts_what_there_was():
    world = World(limit=0)
    world.edit(1)
    # The first try leaves nothing to undo, so it is no reason to give up.
    world.step("fail before", FaultKind.TIMEOUT)
    assert isinstance(world.step(), Wait)
    world.now += timedelta(minutes=11)
    world.step("fail after", FaultKind.HOOK)
    assert isinstance(world.step(), Uninstall)
    stopped = world.settle()
    assert isinstance(stopped, Stop)
    assert stopped.reason.startswith(
        "failed once, and rollbackLimit 0 allows no further try; it is not installed; edit the spec"
    )


def test_a_failed_first_install_with_a_limit_is_removed_and_tried_again():
    world = World(limit=2)
    world.edit(1)
    world.step("fail after", FaultKind.TIMEOUT)
    assert isinstance(world.step(), Uninstall)
    assert world.storage is None
    assert isinstance(world.step(), Wait)
    world.settle()
    assert world.content == {"n": 1}
    assert world.release.status.failed == 0


@given(st.sampled_from(["crash before", "crash during", "crash after"]), st.integers(1, 6))
def test_a_crash_never_deploys_the_same_thing_twice(moment, times):
    world = World()
    for _ in range(times):
        world.happen(moment, None)
    world.settle()
    assert world.deployments == [desired(world.release).digest]
    assert world.storage
    assert world.storage.revision == 1
