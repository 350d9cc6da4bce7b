"""Sights come twice, late and out of order; what is known never goes back in time."""

from hypothesis import given
from hypothesis import strategies as st
from make import record

from pilothouse.clusters.eyes import Eyes
from pilothouse.core.attention import Attention
from pilothouse.core.by_hand import stamps_of
from pilothouse.core.desired import ReleaseName
from pilothouse.core.observed import Health, ObjectRef, ObjectState
from pilothouse.core.outcome import Fault, Outcome
from pilothouse.faults import FaultKind
from pilothouse.ports import NamespaceSight, ObjectsChange, RecordChange, Sighting

SHOP = ReleaseName("web", "shop")


class Watched(Eyes):
    """Eyes that count whom they woke."""

    def __init__(self) -> None:
        self.woken: list[ReleaseName] = []
        self.all_woken = 0
        super().__init__(self.woken.append, self._all)

    def _all(self) -> None:
        self.all_woken += 1

    def see(self, *records, gone: bool = False) -> None:
        self.take(Sighting(records=tuple(RecordChange(SHOP, one, gone=gone) for one in records)))


def state(name: str, health: Health) -> ObjectState:
    return ObjectState(ObjectRef("v1", "Pod", "web", name), health)


def test_a_late_sight_of_a_pending_record_is_dropped() -> None:
    eyes = Watched()
    pending, done = record(1, "pending-install", "d"), record(1, "deployed", "d")
    eyes.learn(SHOP, Outcome(record=done), removed=False)
    eyes.see(pending)
    assert eyes.newest(SHOP) == done
    assert not eyes.woken


@given(st.permutations(["pending-install", "deployed", "superseded"]))
def test_the_order_of_sights_does_not_matter(order) -> None:
    eyes = Watched()
    for status in order:
        eyes.see(record(1, status, "d"))
    seen = eyes.newest(SHOP)
    assert seen
    assert seen.status == "superseded"


def test_a_removed_record_does_not_come_back() -> None:
    eyes = Watched()
    eyes.see(record(1, "deployed", "d"))
    eyes.learn(SHOP, Outcome(), removed=True)
    eyes.see(record(1, "uninstalling", "d"))
    assert eyes.newest(SHOP) is None


def test_a_new_record_under_an_old_number_counts() -> None:
    eyes = Watched()
    eyes.see(record(1, "deployed", "d", uid="first"))
    eyes.learn(SHOP, Outcome(), removed=True)
    eyes.see(record(1, "pending-install", "e", uid="second"))
    seen = eyes.newest(SHOP)
    assert seen
    assert seen.uid == "second"


def test_the_revisions_before_one_are_known_as_they_are_now() -> None:
    eyes = Watched()
    eyes.see(record(1, "superseded", "first"), record(2, "deployed", "second"))
    assert stamps_of(eyes.before(SHOP, 3)) == {1: "first", 2: "second"}
    # As another client's helm writes them: without our stamp.
    eyes.see(record(2, "superseded"), record(3, "deployed"))
    assert stamps_of(eyes.before(SHOP, 3)) == {1: "first"}
    assert eyes.before(SHOP, 1) == []


def test_objects_are_counted_by_change() -> None:
    eyes = Watched()
    everything = (state("a", Health.CURRENT), state("b", Health.IN_PROGRESS))
    eyes.take(Sighting(objects=(ObjectsChange(SHOP, 1, complete=True, states=everything),)))
    objects = eyes.objects_of(SHOP)
    assert objects
    assert objects.summary == "1/2"
    better = (state("b", Health.CURRENT),)
    eyes.take(Sighting(objects=(ObjectsChange(SHOP, 1, complete=False, states=better),)))
    objects = eyes.objects_of(SHOP)
    assert objects
    assert objects.ready
    stale = (state("a", Health.FAILED),)
    eyes.take(Sighting(objects=(ObjectsChange(SHOP, 2, complete=False, states=stale),)))
    assert eyes.objects_of(SHOP) == objects, (
        "a change of a revision nobody told of whole is not used"
    )


def test_the_worst_objects_come_first_and_at_most_a_hundred() -> None:
    eyes = Watched()
    many = tuple(state(f"pod-{number:03}", Health.CURRENT) for number in range(150))
    eyes.take(Sighting(objects=(ObjectsChange(SHOP, 1, complete=True, states=many),)))
    worse = (
        state("pod-149", Health.IN_PROGRESS),
        state("pod-120", Health.FAILED),
        state("pod-003", Health.IN_PROGRESS),
    )
    eyes.take(Sighting(objects=(ObjectsChange(SHOP, 1, complete=False, states=worse),)))
    seen = eyes.objects_of(SHOP)
    assert seen
    assert seen.summary == "147/150"
    names = [one.ref.name for one in seen.listed]
    assert names[:5] == ["pod-120", "pod-003", "pod-149", "pod-000", "pod-001"]
    assert len(names) == len(set(names)) == 100


def test_where_namespaces_are_seen_one_by_one_each_speaks_for_itself() -> None:
    eyes = Watched()
    other = ReleaseName("elsewhere", "shop")
    eyes.attend(Attention(SHOP))
    eyes.attend(Attention(other))
    assert not eyes.sees(SHOP)
    eyes.take(Sighting(namespaces=(NamespaceSight("web", synced=True),)))
    assert eyes.sees(SHOP)
    assert not eyes.sees(other)
    assert eyes.woken == [SHOP]
    refused = Fault(FaultKind.FORBIDDEN, "may not")
    eyes.take(Sighting(namespaces=(NamespaceSight("elsewhere", synced=False, fault=refused),)))
    assert eyes.fault_of(other) == refused
    assert eyes.fault_of(SHOP) is None
    eyes.take(Sighting(reset=True))
    assert not eyes.sees(SHOP)


def test_objects_that_were_looked_at_otherwise_do_not_count() -> None:
    eyes = Watched()
    asked = Attention(SHOP, external=(ObjectRef("v1", "Pod", "web", "other"),))
    seen = (state("a", Health.CURRENT),)
    eyes.attend(asked)
    eyes.take(Sighting(objects=(ObjectsChange(SHOP, 1, complete=True, states=seen),)))
    assert eyes.objects_of(SHOP) is None
    eyes.woken.clear()
    external = (state("other", Health.IN_PROGRESS),)
    change = ObjectsChange(
        SHOP, 1, complete=True, states=seen, external=external, token=asked.token
    )
    eyes.take(Sighting(objects=(change,)))
    objects = eyes.objects_of(SHOP)
    assert objects
    assert objects.summary == "1/1"
    assert not objects.ready, "objects of others count"
    assert objects.worst() == external[0]
    assert eyes.woken == [SHOP]
    eyes.disregard(SHOP)
    eyes.attend(Attention(SHOP))
    assert eyes.objects_of(SHOP) is None


def test_what_a_release_depends_on_is_not_counted_as_one() -> None:
    eyes = Watched()
    for one in (SHOP, ReleaseName("", "needs")):
        attention = Attention(one)
        eyes.attend(attention)
        change = ObjectsChange(one, 1, complete=True, states=(), token=attention.token)
        eyes.take(Sighting(objects=(change,)))
    assert eyes.objects_of(ReleaseName("", "needs")), "it is looked at"
    assert eyes.watched() == {"Cluster": 1}


def test_nothing_new_wakes_nobody() -> None:
    eyes = Watched()
    eyes.see(record(1, "deployed", "d"))
    eyes.see(record(1, "deployed", "d"))
    assert eyes.woken == [SHOP]


def test_a_fault_wakes_everyone_and_so_does_its_end() -> None:
    eyes = Watched()
    eyes.take(Sighting(fault=Fault(FaultKind.UNREACHABLE, "no route")))
    assert eyes.fault
    eyes.take(Sighting(recovered=True))
    assert eyes.fault is None
    assert eyes.all_woken == 2


def test_a_fault_does_not_outlive_the_engine_that_told_it() -> None:
    eyes = Watched()
    eyes.attend(Attention(SHOP))
    eyes.take(Sighting(fault=Fault(FaultKind.UNREACHABLE, "no route")))
    eyes.blind()
    assert eyes.fault_of(SHOP) is None, "it will be told again if it is still so"
    eyes.take(Sighting(fault=Fault(FaultKind.UNREACHABLE, "no route")))
    eyes.take(Sighting(reset=True))
    eyes.take(Sighting(namespaces=(NamespaceSight("web", synced=True),)))
    assert eyes.fault_of(SHOP) is None
    assert eyes.sees(SHOP)
    again = Fault(FaultKind.UNREACHABLE, "still no route")
    eyes.take(Sighting(reset=True, fault=again))
    assert eyes.fault_of(SHOP) == again
