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
    Rollback,
    Stop,
    Uninstall,
    Unlock,
    Upgrade,
    Wait,
)
from pilothouse.core.resting import conclude_quiet
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
    good: Record | None = None
    good_content: dict[str, int] = field(default_factory=dict)
    limit: int | None = None
    made_from: Desired | None = None

    def observed(self) -> Observed:
        ready = objects(self.storage.revision) if self.storage else None
        return Observed(
            record=self.storage,
            objects=ready,
            decoded=self.decoded,
            made_from=self.made_from,
            namespace_missing=self.namespace_missing,
            good=self.good if self.storage and self.storage.revision > 1 else None,
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
        plan = decide(wanted, observed, state, attempts_of(self.release), self.now)
        match plan:
            case Rest() | Wait() | Stop():
                status = conclude_quiet(self.release, wanted, observed, state, plan, self.now)
                self.write(status)
            case CreateNamespace():
                self.namespace, self.namespace_missing = True, False
            case Inspect(revision=revision):
                self.decoded = Decoded(revision, "tiny", "1.0.0", dict(self.content))
            case LetGo():
                self.let_go = True
            case Install() | Upgrade() | Rollback() | Uninstall() | Unlock():
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
            case Rollback(digest=digest):
                return record(number, "pending-rollback", digest, owner="us")
            case _:
                return self.storage

    def finish(self, wanted: Desired, plan: Plan, pending: Record | None) -> None:
        match plan:
            case Install() | Upgrade():
                assert pending
                self.storage = replace(pending, status="deployed")
                self.content = dict(wanted.values)
                self.good, self.good_content = self.storage, self.content
                self.deployments.append(wanted.digest)
            case Rollback():
                assert pending
                self.storage = replace(pending, status="deployed")
                self.content = dict(self.good_content)
            case Uninstall():
                self.storage = self.good = None
            case Unlock():
                assert self.storage
                assert self.storage.pending, "unlocked what was not locked"
                first = self.storage.status == "pending-install" and self.storage.revision == 1
                self.storage = None if first else replace(self.storage, status="failed")
                self.good = None if first else self.good

    def conclude(self, wanted: Desired, plan: Plan, outcome: Outcome) -> None:
        ended = Ended(wanted, plan, outcome)
        if outcome.fault is None and isinstance(plan, Install | Upgrade):
            self.made_from = wanted
        conclusion = conclude_action(
            self.release, desired(self.release), ended, self.observed(), self.now
        )
        self.write(conclusion.status)

    def write(self, status) -> None:
        self.release = msgspec.structs.replace(self.release, status=status)

    def crash(self) -> None:
        self.decoded, self.made_from, self.namespace_missing = None, None, False

    def edit(self, number: int, *, deleted: bool = False) -> None:
        generation = self.release.metadata.generation + 1
        self.release = release(
            {"n": number},
            generation=generation,
            status=self.release.status,
            deleted=deleted,
            rollback_limit=self.limit,
        )

    def happen(self, event: str, detail) -> None:
        match event:
            case "edit":
                self.edit(detail)
            case "helm by hand" if self.storage and not self.storage.pending:
                self.storage = record(self.storage.revision + 1, "deployed")
                self.content = {"n": detail}
                self.good, self.good_content = self.storage, self.content
            case "helm uninstall by hand":
                self.storage = self.good = None
            case "lose namespace":
                self.storage, self.namespace, self.good = None, False, None
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
            if isinstance(plan, Rest | LetGo | Stop):
                return plan
            self.now += timedelta(minutes=11)
        raise AssertionError(f"never settled: {plan}")


@given(st.lists(EVENTS, max_size=25))
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
    assert conditions == {"Synced": "True", "Ready": "True"}
    assert world.release.status.retries == 0


@given(st.lists(EVENTS, max_size=25))
@settings(max_examples=200)
def test_every_history_can_be_deleted(history):
    world = World()
    for event, detail in history:
        world.happen(event, detail)
    world.edit(0, deleted=True)
    world.settle()
    assert world.let_go
    assert world.storage is None


@given(st.lists(EVENTS, max_size=15))
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


@given(st.lists(EVENTS, max_size=25), st.integers(0, 3))
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
