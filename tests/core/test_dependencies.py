"""Who waits for whom: readiness, cycles, and the order of going."""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from make import NOW, release

from pilothouse.api.meta import Condition
from pilothouse.api.relations import ConfigName, DependsOn
from pilothouse.api.release import Release
from pilothouse.api.status import AtProvider, ReleaseStatus
from pilothouse.core.conditions import find, timestamp
from pilothouse.core.dependencies import (
    DELETION_GRACE,
    DEPENDENCIES_READY,
    NOTHING_NEEDED,
    Dependants,
    Dependency,
    Needs,
    Standing,
    cycle_through,
    dependencies_of,
    excuses,
    gate,
    in_order,
    judge,
    with_dependencies,
)
from pilothouse.core.desired import desired
from pilothouse.core.observed import Health, ObjectRef
from pilothouse.core.plan import (
    CreateNamespace,
    Inspect,
    Install,
    LetGo,
    Rest,
    Rollback,
    Stop,
    Uninstall,
    Unlock,
    Upgrade,
    Wait,
)
from pilothouse.faults import FaultKind

names = st.sampled_from("abcdef")
graphs = st.dictionaries(names, st.frozensets(names, max_size=3))


def depending(*on: DependsOn) -> Release:
    one = release()
    return msgspec.structs.replace(one, spec=msgspec.structs.replace(one.spec, depends_on=list(on)))


def standing(health: Health, message: str = "") -> Standing:
    return Standing(
        Dependency("spec.dependsOn[0]", ObjectRef("v1", "Pod", "web", "db")), health, message
    )


@given(graphs, names)
def test_a_cycle_is_a_way_back_and_none_is_missed(graph, start) -> None:
    def after(name: str) -> frozenset[str]:
        return graph.get(name, frozenset())

    reached: set[str] = set()
    ahead = [start]
    while ahead:
        new = after(ahead.pop()) - reached
        reached |= new
        ahead += new
    way = cycle_through(start, after)
    assert bool(way) == (start in reached)
    if way:
        assert way[0] == way[-1] == start
        assert all(there in after(here) for here, there in pairwise(way))
        assert len(set(way[1:])) == len(way) - 1, "the shortest way meets nobody twice"


@given(graphs, names)
def test_everyone_in_a_cycle_sees_it(graph, start) -> None:
    way = cycle_through(start, lambda name: graph.get(name, frozenset()))
    for other in way:
        assert cycle_through(other, lambda name: graph.get(name, frozenset()))


def test_what_is_left_out_means_a_release() -> None:
    (one,) = dependencies_of(depending(DependsOn(name="db", namespace="ignored")))
    assert (one.release, one.ref.namespace, str(one)) == ("db", "", 'Release "db"')
    older = DependsOn(name="db", api_version="helm.crossplane.io/v1alpha1", kind="Release")
    assert dependencies_of(depending(older))[0].release == "db"


def test_other_objects_are_named_with_their_place() -> None:
    far = DependsOn(
        name="db",
        api_version="apps/v1",
        kind="Deployment",
        provider_config_ref=ConfigName(name="eu"),
    )
    near = DependsOn(name="db", api_version="apps/v1", kind="Deployment", namespace="data")
    one, other = dependencies_of(depending(far, near))
    assert str(one) == 'Deployment "web/db" on ProviderConfig "eu"'
    assert str(other) == 'Deployment "data/db"'
    assert not one.release
    assert not other.release
    elsewhere = DependsOn(name="db", provider_config_ref=ConfigName(name="eu"))
    assert not dependencies_of(depending(elsewhere))[0].release, (
        "not one of ours: another cluster's"
    )
    with pytest.raises(ValueError, match=r"spec.dependsOn\[0\]: give apiVersion and kind"):
        dependencies_of(depending(DependsOn(name="x", kind="Pod")))


def test_the_same_question_is_asked_once() -> None:
    one = Dependency("spec.dependsOn[0]", ObjectRef("v1", "Pod", "web", "db"), ready="true")
    assert one.attention() == replace(one, origin="spec.dependsOn[7]").attention()
    assert one.attention().release != replace(one, ready="false").attention().release
    assert one.in_its_words("dependsOn.current is false") == "spec.dependsOn[0].ready is false"


def in_state(
    status: str, *, observed: int = 1, generation: int = 1, deleted: bool = False
) -> Release:
    ready = Condition(
        type="Ready",
        status=status,
        reason="Available" if status == "True" else "Unavailable",
        last_transition_time=timestamp(NOW),
        observed_generation=observed,
    )
    return release(generation=generation, deleted=deleted, status=ReleaseStatus(conditions=[ready]))


@pytest.mark.parametrize(
    ("one", "health", "said"),
    [
        (None, Health.NOT_FOUND, ""),
        (release(), Health.IN_PROGRESS, "newest spec"),
        (in_state("True"), Health.CURRENT, ""),
        (in_state("True", generation=2), Health.IN_PROGRESS, "newest spec"),
        (in_state("False"), Health.IN_PROGRESS, "Unavailable"),
        (in_state("True", deleted=True), Health.TERMINATING, "deleted"),
    ],
)
def test_a_release_is_ready_for_its_newest_spec_only(one, health, said) -> None:
    found, message = judge(one)
    assert found is health
    assert said in message


HELD_BACK = (Install("x"), Upgrade("x"), CreateNamespace("web"))
LET_THROUGH = (
    Rest(),
    Wait("x"),
    Stop("NotAllowed", "x"),
    Inspect(1),
    Unlock(1, "x"),
    Rollback(1, "d", "x"),
    Uninstall("x"),
    LetGo(),
)


@given(st.sampled_from(HELD_BACK + LET_THROUGH), st.lists(st.sampled_from(Health)), st.booleans())
def test_only_installs_and_upgrades_wait_and_only_for_what_is_missing(
    plan, healths, circular
) -> None:
    needs = Needs(tuple(standing(one) for one in healths), ("a", "b", "a") if circular else ())
    missing = circular or any(one is not Health.CURRENT for one in healths)
    assert needs.ready != missing
    held = gate(plan, needs, NOW)
    if plan in LET_THROUGH or not missing:
        assert held == plan
    else:
        assert isinstance(held, Stop)
        assert held.kind == ("DependencyCycle" if circular else "DependencyNotReady")


def test_the_first_missing_one_is_named() -> None:
    needs = Needs((standing(Health.CURRENT), standing(Health.FAILED), standing(Health.UNKNOWN)))
    assert needs.why() == (
        "DependencyNotReady",
        'waiting for Pod "web/db", which is Failed, and 1 more',
    )
    assert "a → b → a" in Needs(cycle=("a", "b", "a")).why()[1]


def test_a_dependency_about_to_be_looked_at_is_waited_for() -> None:
    held = gate(Upgrade("x"), Needs((standing(Health.CURRENT),), unsettled=True), NOW)
    assert isinstance(held, Wait)
    assert held.until
    assert held.until > NOW


def test_dependants_go_first() -> None:
    gone = msgspec.structs.replace(
        release(deleted=True),
        metadata=msgspec.structs.replace(
            release(deleted=True).metadata, deletion_timestamp=timestamp(NOW)
        ),
    )
    wanted = desired(gone)
    go = Uninstall("the Release was deleted")
    held = in_order(go, wanted, gone, Dependants(leaving=("b", "c")), NOW + DELETION_GRACE * 100)
    assert held == Stop(
        "DependedOn", 'to be removed after Release "b" and 1 more, which depends on it'
    )
    held = in_order(go, wanted, gone, Dependants(staying=("b",)), NOW + timedelta(seconds=1))
    assert isinstance(held, Stop)
    assert held.until == NOW + DELETION_GRACE
    held = in_order(go, wanted, gone, Dependants(staying=("b",)), NOW + DELETION_GRACE)
    assert held == Uninstall('the Release was deleted, though Release "b" depends on it')
    assert in_order(go, wanted, gone, Dependants(), NOW) == go
    # Going back after a failed install is no deletion.
    assert in_order(go, desired(release()), release(), Dependants(leaving=("b",)), NOW) == go


def test_a_status_tells_and_forgets_them() -> None:
    one = depending(DependsOn(name="db"))
    needs = Needs((standing(Health.IN_PROGRESS, "m" * 400),))
    told = with_dependencies(one, one.status, needs, NOW)
    assert [state.state for state in told.dependencies] == ["InProgress"]
    assert len(told.dependencies[0].message) == 300
    held = find(told.conditions, DEPENDENCIES_READY)
    assert held
    assert held.status == "False"
    assert with_dependencies(one, told, needs, NOW) == told, "the same again writes nothing"
    assert with_dependencies(one, told, NOTHING_NEEDED, NOW) == one.status


def test_what_a_dependency_may_bring_is_no_failure_of_a_first_install() -> None:
    waiting, there = Needs((standing(Health.NOT_FOUND),)), Needs((standing(Health.CURRENT),))
    assert excuses(release(), waiting, FaultKind.NOT_FOUND)
    assert not excuses(release(), waiting, FaultKind.INVALID)
    assert not excuses(release(), there, FaultKind.NOT_FOUND)
    installed = release(status=ReleaseStatus(at_provider=AtProvider(revision=1)))
    assert not excuses(installed, waiting, FaultKind.UNREACHABLE)
    assert not excuses(release(deleted=True), waiting, FaultKind.UNREACHABLE)
