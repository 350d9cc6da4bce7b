"""A model of the world: the object, Helm's storage, the cluster, and one process that may die at any step.

The core decides every step; the model only does what it says, or fails on cue.
"""

from dataclasses import dataclass, field, replace
from datetime import timedelta

import msgspec
from hypothesis import strategies as st
from make import NOW, objects, record, release

from pilothouse.api.release import Release
from pilothouse.api.status import ReleaseStatus
from pilothouse.core.conclude import (
    announce,
    attempts_of,
    conclude_action,
    conclude_fault,
)
from pilothouse.core.conditions import find
from pilothouse.core.decide import decide, has_given_up, question
from pilothouse.core.desired import Desired, desired
from pilothouse.core.drift import CALM, Drift, judge
from pilothouse.core.drift_known import (
    GONE,
    Correction,
    Difference,
    Finding,
    Known,
    found,
    repaired,
    swept,
)
from pilothouse.core.drift_report import DRIFTED, is_final, with_drift
from pilothouse.core.observed import Decoded, Health, ObjectRef, Objects, Observed, Record, Suspect
from pilothouse.core.outcome import Ended, Fault, Outcome
from pilothouse.core.plan import (
    CreateNamespace,
    Inspect,
    Install,
    LetGo,
    Plan,
    Repair,
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
# What may happen to whatever is under way.
TROUBLE = st.one_of(
    st.tuples(st.just("fail before"), FAULTS),
    st.tuples(st.just("fail after"), FAULTS),
    st.tuples(st.just("refuse"), FAULTS),
    st.tuples(
        st.sampled_from(["crash before", "crash during", "crash after", "step", "sleep"]), st.none()
    ),
    st.tuples(st.sampled_from(["helm uninstall by hand", "lose namespace"]), st.none()),
    st.tuples(st.sampled_from(["lose sight", "cannot compare"]), st.none()),
)
EVENTS = st.one_of(
    TROUBLE,
    st.tuples(st.sampled_from(["edit", "helm by hand"]), st.integers(0, 3)),
    st.tuples(st.just("helm rollback by hand"), st.none()),
)
PLACES = st.tuples(st.integers(0, 1), st.sampled_from(["/spec/replicas", "/data/colour"]))
HAND_EDITS = st.one_of(
    st.tuples(st.just("edited by hand"), PLACES),
    st.tuples(st.just("deleted by hand"), st.integers(0, 1)),
    st.tuples(st.just("fought over"), st.tuples(PLACES, st.integers(2, 7))),
)
EVERYTHING = st.one_of(EVENTS, HAND_EDITS)
# Nobody edits what they have deleted, or deploys by hand what is on its way out.
DURING_DELETION = st.one_of(TROUBLE, HAND_EDITS)
EDITOR = "kubectl-edit"


def broken(pending: Record | None, plan: Plan) -> Record | None:
    """Return what Helm leaves of a revision whose action failed."""
    if pending is None or isinstance(plan, Uninstall | Unlock):
        return pending
    return replace(pending, status="failed")


def thing(number: int) -> ObjectRef:
    return ObjectRef("v1", "ConfigMap", "web", f"thing-{number}")


def drifted(status: ReleaseStatus) -> bool:
    said = find(status.conditions, DRIFTED)
    return said is not None and said.status == "True"


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
    # What each revision holds, and what those of ours were made from: Helm takes the stamp of the one it follows.
    contents: dict[int, dict[str, int]] = field(default_factory=dict)
    stamps: dict[int, str] = field(default_factory=dict)
    description: str = ""
    # Where each object is not as applied; the empty path is the whole object.
    drifted: dict[ObjectRef, frozenset[str]] = field(default_factory=dict)
    sights: int = 0
    drift: Drift = CALM
    known: Known = field(default_factory=Known)
    # What the next pass meets: objects that are not seen, a comparison that fails.
    unseen: bool = False
    incomparable: bool = False

    def objects(self, revision: int) -> Objects:
        gone = [ref for ref, paths in self.drifted.items() if GONE in paths]
        # What the eyes see of a hand edit: that fields are not ours any more, and which write it was.
        edited = [
            Suspect(ref, altered=hash(paths), sight=self.sights)
            for ref, paths in self.drifted.items()
            if GONE not in paths
        ]
        return replace(
            objects(revision, *(Health.NOT_FOUND for _ in gone)),
            suspects=(*map(Suspect, gone), *edited),
        )

    def observed(self) -> Observed:
        seen = self.storage and not self.unseen
        ready = self.objects(self.storage.revision) if self.storage and seen else None
        return Observed(
            record=self.storage,
            objects=ready,
            decoded=self.decoded,
            made_from=self.made_from,
            namespace_missing=self.namespace_missing,
            good=self.good if self.storage and self.storage.revision > 1 else None,
            stamps=dict(self.stamps) if self.storage and not self.storage.digest else {},
        )

    def step(self, fate: str = "works", fault: FaultKind = FaultKind.UNKNOWN) -> Plan:
        """One pass; `fate` is what happens to the action it takes."""
        if self.let_go:
            return LetGo()  # there is no object left to pass over
        wanted = desired(self.release)
        if fate == "refuse":
            conclusion = conclude_fault(
                self.release, question(wanted), Fault(fault, "no"), self.now
            )
            self.write(conclusion.status)
            return Wait("refused")
        attempts = attempts_of(self.release)
        observed = self.look(wanted, self.observed(), final=has_given_up(wanted, attempts))
        state = classify(wanted, observed, self.now)
        plan = decide(wanted, observed, state, attempts, self.now)
        match plan:
            case Rest() | Wait() | Stop():
                status = conclude_quiet(self.release, wanted, observed, state, plan, self.now)
                if is_final(status) and observed.drift is not None:
                    status = with_drift(self.release, status, observed.drift, (), self.now)
                    if not drifted(status) and drifted(self.release.status):
                        assert not self.drifted, "called right what still differs"
                self.write(status)
            case Repair(corrections=corrections):
                self.repair(corrections, fate)
            case CreateNamespace():
                self.namespace, self.namespace_missing = True, False
            case Inspect(revision=revision):
                self.decoded = Decoded(
                    revision, "tiny", "1.0.0", dict(self.content), self.description
                )
            case LetGo():
                assert self.storage is None, "let go of what is still there"
                self.let_go = True
            case Install() | Upgrade() | Rollback() | Uninstall() | Unlock():
                if fate == "crash before":
                    self.crash()
                    return plan
                self.write(announce(self.release, wanted, plan, self.now))
                self.act(wanted, plan, fate, fault)
        self.unseen = False
        return plan

    def look(self, wanted: Desired, observed: Observed, *, final: bool) -> Observed:
        """Judge drift as the loop does; what a comparison says, the next pass knows."""
        self.drift = CALM
        made_from = observed.record.digest if observed.record else ""
        if wanted.absent or (made_from and made_from != wanted.digest and not final):
            return observed
        suspects = observed.objects.suspects if observed.objects else None
        self.known = swept(self.known, suspects, self.now)
        self.drift = judge(wanted.drift, wanted.policies, observed, self.known, self.now)
        if self.drift.compare and observed.record:
            said = [self.compared(one) for one in self.drift.compare]
            self.incomparable = False
            self.known = found(self.known, observed.record.revision, said)
        return replace(observed, drift=self.drift)

    def compared(self, suspect: Suspect) -> Finding:
        if self.incomparable:
            return Finding(suspect, self.now, fault="it broke")
        paths = self.drifted.get(suspect.ref, frozenset())
        differences = tuple(Difference(path, EDITOR) for path in sorted(paths - {GONE}))
        return Finding(suspect, self.now, differences=differences, missing=GONE in paths)

    def repair(self, corrections: tuple[Correction, ...], fate: str) -> None:
        if fate in {"crash before", "crash during"}:
            self.crash()
            return
        failed = {one.ref: "it broke" for one in corrections if fate.startswith("fail")}
        for one in corrections:
            if one.ref not in failed:
                put_back = {difference.path for difference in one.differences}
                self.differs(one.ref, self.drifted.get(one.ref, frozenset()) - put_back)
        self.known = repaired(self.known, corrections, failed, self.now)
        if fate == "crash after":
            self.crash()

    def differs(self, ref: ObjectRef, paths: frozenset[str]) -> None:
        self.sights += 1
        if paths:
            self.drifted[ref] = paths
        else:
            self.drifted.pop(ref, None)

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
            self.storage = broken(pending, plan)
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
                self.contents, self.stamps = {}, {}
                return record(1, "pending-install", wanted.digest, uid=f"i{len(self.deployments)}")
            case Upgrade():
                assert self.storage is not None, "upgraded nothing"
                assert not self.storage.pending, "upgraded a locked release"
                return record(number, "pending-upgrade", wanted.digest)
            case Uninstall():
                # The engine notes whose uninstall it is, also on what others deployed.
                return (
                    replace(self.storage, status="uninstalling", owner="us", seen=self.now)
                    if self.storage
                    else None
                )
            case Rollback(digest=digest):
                return record(number, "pending-rollback", digest, owner="us")
            case _:
                return self.storage

    def finish(self, wanted: Desired, plan: Plan, pending: Record | None) -> None:
        if not isinstance(plan, Unlock):
            self.drifted.clear()  # everything was applied anew, or is gone
        match plan:
            case Install() | Upgrade():
                assert pending
                self.storage = replace(pending, status="deployed")
                self.content = dict(wanted.values)
                self.good, self.good_content = self.storage, self.content
                self.keep()
                self.deployments.append(wanted.digest)
            case Rollback():
                assert pending
                self.storage = replace(pending, status="deployed")
                self.content = dict(self.good_content)
                self.keep()
            case Uninstall():
                self.storage = self.good = None
            case Unlock():
                assert self.storage
                assert self.storage.pending, "unlocked what was not locked"
                first = self.storage.status == "pending-install" and self.storage.revision == 1
                self.storage = None if first else replace(self.storage, status="failed")
                self.good = None if first else self.good

    def keep(self) -> None:
        """Remember what a revision holds, for those who go back to it."""
        assert self.storage
        self.contents[self.storage.revision] = dict(self.content)
        if self.storage.digest:
            self.stamps[self.storage.revision] = self.storage.digest

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
        # The next process sees everything for the first time.
        self.storage = replace(self.storage, seen=self.now) if self.storage else None
        self.decoded, self.made_from, self.namespace_missing = None, None, False
        self.known = Known()

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
                self.stamps.pop(self.storage.revision, None)
                self.storage = record(self.storage.revision + 1, "deployed")
                self.content, self.description = {"n": detail}, "Upgrade complete"
                self.keep()
                self.good, self.good_content = self.storage, self.content
                self.drifted.clear()
            case "helm rollback by hand" if (
                self.storage and not self.storage.pending and self.contents
            ):
                first = min(self.contents)
                self.happen("helm by hand", self.contents[first]["n"])
                self.description = f"Rollback to {first}"
            case "helm uninstall by hand":
                self.storage = self.good = None
                self.drifted.clear()
            case "lose namespace":
                self.storage, self.namespace, self.good = None, False, None
                self.drifted.clear()
            case "edited by hand" if self.storage:
                number, path = detail
                paths = self.drifted.get(thing(number), frozenset())
                if GONE not in paths:
                    self.differs(thing(number), paths | {path})
            case "fought over":
                place, times = detail
                for _ in range(times):
                    self.happen("edited by hand", place)
                    self.step()  # compares
                    self.step()  # puts back
            case "deleted by hand" if self.storage:
                self.differs(thing(detail), frozenset({GONE}))
            case "lose sight":
                self.unseen = True
            case "cannot compare":
                self.incomparable = True
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
        for _ in range(24):
            plan = self.step()
            watching = self.drift.compare or self.drift.until or self.drift.unsettled
            if isinstance(plan, Rest | LetGo | Stop) and not watching:
                return plan
            self.now = max(self.now + timedelta(minutes=11), self.drift.until or self.now)
        raise AssertionError(f"never settled: {plan}")
