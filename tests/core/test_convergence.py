"""Whatever happens (edits, failures, crashes, foreign changes), a release ends as it was asked.

A model of the world: the object, Helm's storage, and one process that may die at any step. The core decides
every step; the model only does what it says, or fails on cue.
"""

from dataclasses import dataclass, field, replace
from datetime import timedelta

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from make import NOW, objects, record, release

from pilothouse.api.release import Release
from pilothouse.core.conclude import (
    announce,
    attempts_of,
    conclude_action,
    conclude_fault,
    conclude_quiet,
)
from pilothouse.core.decide import decide, question
from pilothouse.core.desired import Desired, desired
from pilothouse.core.observed import Decoded, Observed, Record
from pilothouse.core.outcome import Ended, Fault, Outcome
from pilothouse.core.plan import (
    CreateNamespace,
    Inspect,
    Install,
    LetGo,
    Plan,
    Rest,
    Uninstall,
    Unlock,
    Upgrade,
    Wait,
)
from pilothouse.core.state import classify
from pilothouse.faults import FaultKind

FAULTS = st.sampled_from(list(FaultKind))
EVENTS = st.one_of(
    st.tuples(st.just("edit"), st.integers(0, 3)),
    st.tuples(st.just("fail before"), FAULTS),
    st.tuples(st.just("fail after"), FAULTS),
    st.tuples(st.just("refuse"), FAULTS),
    st.tuples(
        st.sampled_from(["crash before", "crash during", "crash after", "step", "sleep"]), st.none()
    ),
    st.tuples(st.just("helm by hand"), st.integers(0, 3)),
    st.tuples(st.sampled_from(["helm uninstall by hand", "lose namespace"]), st.none()),
)


@dataclass
class World:
    """The object, Helm's storage and a process with its memory."""

    release: Release = field(default_factory=lambda: release({"n": 0}))
    storage: Record | None = None
    content: dict[str, int] = field(default_factory=dict)
    namespace: bool = True
    now: object = NOW
    decoded: Decoded | None = None
    namespace_missing: bool = False
    let_go: bool = False
    deployments: list[str] = field(default_factory=list)

    def observed(self) -> Observed:
        ready = objects(self.storage.revision) if self.storage else None
        return Observed(
            record=self.storage,
            objects=ready,
            decoded=self.decoded,
            namespace_missing=self.namespace_missing,
        )

    def step(self, fate: str = "works", fault: FaultKind = FaultKind.UNKNOWN) -> Plan:
        """One pass; `fate` is what happens to the action it takes."""
        wanted = desired(self.release)
        if fate == "refuse":
            conclusion = conclude_fault(
                self.release, question(wanted), Fault(fault, "no"), self.now
            )
            self.write(conclusion.status)
            return Wait("refused")
        observed = self.observed()
        state = classify(wanted, observed, self.now)
        plan = decide(wanted, observed, state, attempts_of(self.release.status), self.now)
        match plan:
            case Rest() | Wait():
                status = conclude_quiet(self.release, wanted, observed, state, plan, self.now)
                self.write(status)
            case CreateNamespace():
                self.namespace, self.namespace_missing = True, False
            case Inspect(revision=revision):
                self.decoded = Decoded(revision, "tiny", "1.0.0", dict(self.content))
            case LetGo():
                self.let_go = True
            case Install() | Upgrade() | Uninstall() | Unlock():
                if fate == "crash before":
                    self.crash()
                    return plan
                self.write(announce(self.release, wanted, plan, self.now))
                self.act(wanted, plan, fate, fault)
        return plan

    def act(self, wanted: Desired, plan: Plan, fate: str, fault: FaultKind) -> None:
        if fate == "fail before":
            self.conclude(wanted, plan, Outcome(self.storage, Fault(fault, "it broke")))
            return
        if not self.namespace and isinstance(plan, Install):
            missing = Fault(FaultKind.NAMESPACE_MISSING, "no namespace")
            self.conclude(wanted, plan, Outcome(None, missing))
            self.namespace_missing = True
            return
        pending = self.begin(wanted, plan)
        if fate == "crash during":
            self.storage = pending
            self.crash()
        elif fate == "fail after":
            self.storage = replace(pending, status="failed") if pending else self.storage
            self.conclude(wanted, plan, Outcome(self.storage, Fault(fault, "it broke")))
        else:
            self.finish(wanted, plan, pending)
            if fate == "crash after":
                self.crash()
            else:
                self.conclude(wanted, plan, Outcome(self.storage))

    def begin(self, wanted: Desired, plan: Plan) -> Record | None:
        number = (self.storage.revision if self.storage else 0) + 1
        match plan:
            case Install():
                assert self.storage is None, "installed over something"
                return record(1, "pending-install", wanted.digest, uid=f"i{len(self.deployments)}")
            case Upgrade():
                assert self.storage is not None, "upgraded nothing"
                assert not self.storage.pending, "upgraded a locked release"
                return record(number, "pending-upgrade", wanted.digest)
            case Uninstall():
                return replace(self.storage, status="uninstalling") if self.storage else None
            case _:
                return self.storage

    def finish(self, wanted: Desired, plan: Plan, pending: Record | None) -> None:
        match plan:
            case Install() | Upgrade():
                assert pending
                self.storage = replace(pending, status="deployed")
                self.content = dict(wanted.values)
                self.deployments.append(wanted.digest)
            case Uninstall():
                self.storage = None
            case Unlock():
                assert self.storage
                assert self.storage.pending, "unlocked what was not locked"
                first = self.storage.status == "pending-install" and self.storage.revision == 1
                self.storage = None if first else replace(self.storage, status="failed")

    def conclude(self, wanted: Desired, plan: Plan, outcome: Outcome) -> None:
        ended = Ended(wanted, plan, outcome)
        conclusion = conclude_action(
            self.release, desired(self.release), ended, self.observed(), self.now
        )
        self.write(conclusion.status)

    def write(self, status) -> None:
        self.release = msgspec.structs.replace(self.release, status=status)

    def crash(self) -> None:
        self.decoded, self.namespace_missing = None, False

    def edit(self, number: int, *, deleted: bool = False) -> None:
        generation = self.release.metadata.generation + 1
        self.release = release(
            {"n": number}, generation=generation, status=self.release.status, deleted=deleted
        )

    def happen(self, event: str, detail) -> None:
        match event:
            case "edit":
                self.edit(detail)
            case "helm by hand" if self.storage and not self.storage.pending:
                self.storage = record(self.storage.revision + 1, "deployed")
                self.content = {"n": detail}
            case "helm uninstall by hand":
                self.storage = None
            case "lose namespace":
                self.storage, self.namespace = None, False
            case "sleep":
                self.now += timedelta(minutes=11)
            case "fail before" | "fail after" | "refuse":
                self.step(event, detail)
            case "step" | "crash before" | "crash during" | "crash after":
                self.step(event)
            case _:
                pass

    def settle(self) -> Plan:
        """Take steps without faults until nothing is left to do."""
        for _ in range(12):
            plan = self.step()
            if isinstance(plan, Rest | LetGo):
                return plan
            self.now += timedelta(minutes=11)
        raise AssertionError(f"never settled: {plan}")


@given(st.lists(EVENTS, max_size=25))
@settings(max_examples=400, deadline=None)
def test_every_history_ends_as_asked(history):
    world = World()
    for event, detail in history:
        world.happen(event, detail)
    world.settle()
    assert world.storage
    assert world.storage.status == "deployed"
    assert world.content == world.release.spec.for_provider.values
    conditions = {one.type: one.status for one in world.release.status.conditions}
    assert conditions == {"Synced": "True", "Ready": "True"}
    assert world.release.status.retries == 0


@given(st.lists(EVENTS, max_size=25))
@settings(max_examples=200, deadline=None)
def test_every_history_can_be_deleted(history):
    world = World()
    for event, detail in history:
        world.happen(event, detail)
    world.edit(0, deleted=True)
    world.settle()
    assert world.let_go
    assert world.storage is None


@given(st.lists(EVENTS, max_size=15))
@settings(max_examples=200, deadline=None)
def test_rest_writes_nothing(history):
    world = World()
    for event, detail in history:
        world.happen(event, detail)
    world.settle()
    before = world.release.status
    world.now += timedelta(hours=1)
    world.step()
    assert world.release.status == before


@given(st.sampled_from(["crash before", "crash during", "crash after"]), st.integers(1, 6))
def test_a_crash_never_deploys_the_same_thing_twice(moment, times):
    world = World()
    for _ in range(times):
        world.happen(moment, None)
    world.settle()
    assert world.deployments == [desired(world.release).digest]
    assert world.storage
    assert world.storage.revision == 1
