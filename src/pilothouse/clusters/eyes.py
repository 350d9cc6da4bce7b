"""What is known of every release on one cluster, kept current by the engine's eyes.

Sights may come twice and late: an action's outcome arrives before the watch tells the same, and an older
sight of a revision is recognised and dropped (core.observed.Record.overtakes).
"""

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from heapq import nsmallest

from pilothouse.core.attention import Attention
from pilothouse.core.desired import ReleaseName
from pilothouse.core.observed import (
    LISTED_MOST,
    Health,
    ObjectRef,
    Objects,
    ObjectState,
    Record,
    Suspect,
    worst_first,
)
from pilothouse.core.outcome import Fault, Outcome
from pilothouse.ports import NamespaceSight, ObjectsChange, RecordChange, Sighting

# Uids of records we saw go, so that a late sight does not bring them back.
REMEMBERED_REMOVALS = 10_000


class _Members:
    """The objects of one revision; those that are not current apart, so that a change costs little."""

    __slots__ = ("altered", "calm", "external", "revision", "token", "total", "troubled", "watch")

    def __init__(self, change: ObjectsChange) -> None:
        self.revision, self.token, self.watch = change.revision, change.token, change.watch
        self.external = tuple(sorted(change.external, key=worst_first))
        # Enough current ones to fill a status, in order; which object is in it never changes.
        everything = {state.ref: state for state in change.states}
        self.total = len(everything)
        self.calm = nsmallest(
            LISTED_MOST,
            (ObjectState(state.ref, Health.CURRENT) for state in everything.values()),
            key=worst_first,
        )
        self.troubled: dict[ObjectRef, ObjectState] = {}
        self.altered: dict[ObjectRef, Suspect] = {}
        for state in everything.values():
            self.put(state)

    def put(self, state: ObjectState) -> None:
        if state.health is Health.CURRENT:
            self.troubled.pop(state.ref, None)
        else:
            self.troubled[state.ref] = state
        if state.altered:
            self.altered[state.ref] = Suspect(state.ref, state.altered, state.sight, state.scaled)
        else:
            self.altered.pop(state.ref, None)

    def suspects(self) -> tuple[Suspect, ...]:
        gone = [
            Suspect(one.ref) for one in self.troubled.values() if one.health is Health.NOT_FOUND
        ]
        return tuple(sorted((*gone, *self.altered.values()), key=_by_name))

    def summary(self) -> Objects:
        listed = nsmallest(LISTED_MOST, self.troubled.values(), key=worst_first)
        if len(listed) < LISTED_MOST:
            calm = [one for one in self.calm if one.ref not in self.troubled]
            listed += calm[: LISTED_MOST - len(listed)]
        current = self.total - len(self.troubled)
        return Objects(
            self.revision,
            self.total,
            current,
            tuple(listed),
            self.external,
            self.watch,
            self.suspects(),
        )


class Eyes:
    """The releases of one cluster; `wake` is called for each one that changed."""

    def __init__(self, wake: Callable[[ReleaseName], None], wake_all: Callable[[], None]) -> None:
        self._wake = wake
        self._wake_all = wake_all
        self._records: dict[ReleaseName, dict[int, Record]] = {}
        self._members: dict[ReleaseName, _Members] = {}
        self._summaries: dict[ReleaseName, Objects] = {}
        self._removed: deque[str] = deque(maxlen=REMEMBERED_REMOVALS)
        self._removed_set: set[str] = set()
        self._attentions: dict[ReleaseName, Attention] = {}
        # Where records are seen by namespace only.
        self._spaces: dict[str, NamespaceSight] = {}
        self.synced = False
        self.fault: Fault | None = None

    def attend(self, attention: Attention) -> bool:
        """Note how a release is to be looked at; whether that is news."""
        news = self._attentions.get(attention.release) != attention
        self._attentions[attention.release] = attention
        return news

    def disregard(self, release: ReleaseName) -> bool:
        """Look after a release no longer; whether that is news."""
        if not release.namespace:  # no release, so no record whose going would clear this
            self._members.pop(release, None)
            self._summaries.pop(release, None)
        return self._attentions.pop(release, None) is not None

    def attended(self) -> tuple[Attention, ...]:
        """Return how every release is to be looked at."""
        return tuple(self._attentions.values())

    def attention(self, release: ReleaseName) -> Attention | None:
        """Return how a release is looked at."""
        return self._attentions.get(release)

    def sees(self, release: ReleaseName) -> bool:
        """Whether every record of a release is known; a fault is for the caller to look at."""
        space = self._spaces.get(release.namespace)
        return self.synced or bool(space and space.synced)

    def fault_of(self, release: ReleaseName) -> Fault | None:
        """Return what keeps the eyes from seeing a release's records."""
        space = self._spaces.get(release.namespace)
        return self.fault or (space.fault if space else None)

    def newest(self, release: ReleaseName) -> Record | None:
        """Return the newest revision of a release."""
        revisions = self._records.get(release)
        return revisions[max(revisions)] if revisions else None

    def before(self, release: ReleaseName, revision: int) -> list[Record]:
        """Return the revisions before that one."""
        revisions = self._records.get(release, {})
        return [record for number, record in revisions.items() if number < revision]

    def objects_of(self, release: ReleaseName) -> Objects | None:
        """Return how a release's objects are, if they were looked at the way it now asks for."""
        members, asked = self._members.get(release), self._attentions.get(release)
        if members and members.token != (asked.token if asked else ""):
            return None
        return self._summaries.get(release)

    def watched(self) -> Counter[str]:
        """Count the releases by how closely they are watched; what they depend on is none."""
        looked_after = self._summaries.keys() & self._attentions.keys()
        return Counter(str(self._summaries[one].watch) for one in looked_after if one.namespace)

    def blind(self) -> None:
        """The engine is gone: nothing is known until it has looked again."""
        self.synced = False
        # The next engine may never meet what this one could not get over, and so never take it back.
        self.fault = None
        self._records.clear()
        self._members.clear()
        self._summaries.clear()
        self._spaces.clear()

    def take(self, sighting: Sighting) -> None:
        """Take in what the engine saw."""
        if sighting.reset:
            self.blind()
        if sighting.fault:
            self.fault = sighting.fault
            self._wake_all()
        elif sighting.recovered:
            self.fault = None
            self._wake_all()
        for record in sighting.records:
            self._take_record(record)
        for objects in sighting.objects:
            self._take_objects(objects)
        for space in sighting.namespaces:
            self._spaces[space.namespace] = space
        if sighting.namespaces:
            seen = {space.namespace for space in sighting.namespaces}
            for release in self._attentions:
                if release.namespace in seen:
                    self._wake(release)
        if sighting.records_synced and not self.synced:
            self.synced, self.fault = True, None
            self._wake_all()

    def learn(self, release: ReleaseName, outcome: Outcome, *, removed: bool) -> None:
        """Take in what an action came to, ahead of the watch."""
        if outcome.record:
            self._hold(release, outcome.record)
        elif removed:
            for record in self._records.pop(release, {}).values():
                self._bury(record.uid)
            self._members.pop(release, None)
            self._summaries.pop(release, None)

    def _take_record(self, change: RecordChange) -> None:
        record = change.record
        if change.gone:
            revisions = self._records.get(change.release, {})
            held = revisions.get(record.revision)
            if held and (held.uid == record.uid or not record.uid):
                del revisions[record.revision]
                self._bury(record.uid)
                if not revisions:
                    self._records.pop(change.release, None)
                    self._summaries.pop(change.release, None)
            self._wake(change.release)
        elif self._hold(change.release, record):
            self._wake(change.release)

    def _hold(self, release: ReleaseName, record: Record) -> bool:
        if record.uid in self._removed_set:
            return False
        revisions = self._records.setdefault(release, {})
        held = revisions.get(record.revision)
        if held is not None:
            if not record.overtakes(held):
                return False
            record = _richer(record, held)
            if record == held:
                return False
        revisions[record.revision] = replace(record, seen=datetime.now(UTC))
        return True

    def _bury(self, uid: str) -> None:
        if not uid or uid in self._removed_set:
            return
        if len(self._removed) == self._removed.maxlen:
            self._removed_set.discard(self._removed[0])
        self._removed.append(uid)
        self._removed_set.add(uid)

    def _take_objects(self, change: ObjectsChange) -> None:
        members = self._members.get(change.release)
        token = members.token if members else ""
        if change.complete:
            members = self._members[change.release] = _Members(change)
        elif members is None or members.revision != change.revision:
            return  # a change of a revision that is no longer, or not yet, looked at
        else:
            for state in change.states:
                members.put(state)
        summary = members.summary()
        if summary != self._summaries.get(change.release) or token != members.token:
            self._summaries[change.release] = summary
            self._wake(change.release)


def _by_name(suspect: Suspect) -> tuple[str, str, str]:
    return (suspect.ref.kind, suspect.ref.namespace, suspect.ref.name)


def _richer(record: Record, held: Record) -> Record:
    """Keep what only a decoded record tells: the watch speaks of the same revision by metadata."""
    if record.uid != held.uid or record.chart_name:
        return record
    return replace(
        record,
        chart_name=held.chart_name,
        chart_version=held.chart_version,
        description=held.description if held.status == record.status else "",
    )
