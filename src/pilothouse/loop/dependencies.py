"""Who depends on what, and whom a change of it wakes: a look-up per change, nothing is polled.

Releases are judged by the newest status, told or not; any other object is looked at by the engine, once for all Releases
that ask the same of it.
"""

from collections import defaultdict
from collections.abc import Callable
from datetime import datetime
from typing import Generic, TypeVar

from pilothouse.api.kinds import RELEASE
from pilothouse.api.meta import Key
from pilothouse.api.release import FINALIZER, Release
from pilothouse.api.status import ReleaseStatus
from pilothouse.core.dependencies import (
    NOTHING_NEEDED,
    Dependants,
    Dependency,
    Needs,
    Standing,
    conclude_waiting,
    cycle_through,
    dependencies_of,
    excuses,
    judge,
    with_dependencies,
)
from pilothouse.core.desired import ReleaseName
from pilothouse.core.observed import Health
from pilothouse.errors import EngineLost, InvalidInput, PilothouseError
from pilothouse.faults import FaultKind
from pilothouse.loop.queue import KeyedQueue
from pilothouse.loop.statuses import Statuses
from pilothouse.ports import Target, Targets

Sight = tuple[str, ReleaseName]
Item = TypeVar("Item")


class _Index(Generic[Item]):
    """What each key uses, and who uses it."""

    def __init__(self) -> None:
        self._used: dict[Key, set[Item]] = {}
        self._users: dict[Item, set[Key]] = {}

    def add(self, key: Key, item: Item) -> None:
        self._used.setdefault(key, set()).add(item)
        self._users.setdefault(item, set()).add(key)

    def put(self, key: Key, items: set[Item]) -> set[Item]:
        """Note what a key uses now; return what nobody uses any more."""
        unused = set()
        for item in self._used.pop(key, set()) - items:
            users = self._users[item]
            users.discard(key)
            if not users:
                del self._users[item]
                unused.add(item)
        for item in items:
            self.add(key, item)
        return unused

    def users(self, item: Item) -> set[Key]:
        return set(self._users.get(item, ()))

    def where(self, fits: Callable[[Item], bool]) -> set[Key]:
        found: set[Key] = set()
        for item, users in self._users.items():
            if fits(item):
                found |= users
        return found


class Dependencies:
    """The graph of Releases, and the objects beside it that some of them depend on."""

    def __init__(self, releases: Statuses, targets: Targets, queue: KeyedQueue) -> None:
        self._releases = releases
        self._targets = targets
        self._queue = queue
        self._edges: dict[Key, frozenset[Key]] = {}
        self._dependants: dict[Key, set[Key]] = defaultdict(set)
        # What others wait for in a Release; the rest of it may change without waking them.
        self._facts: dict[Key, object] = {}
        self._sights = _Index[Sight]()
        self._configs = _Index[str]()
        self._latest: dict[Key, Needs] = {}

    def put(self, key: Key, release: Release | None) -> set[Key]:
        """Take in how a Release is now; return the others whom that concerns."""
        before, edges = self._edges.get(key, frozenset()), _edges(release)
        concerned: set[Key] = set()
        if edges != before:
            self._connect(key, before, edges)
            # A cycle may have come or gone, and everyone who leads here may be in it.
            concerned |= self._leading_to(key)
        facts = _facts(release)
        if facts != self._facts.get(key):
            concerned |= self._dependants.get(key, set())
            if release is None or release.metadata.deletion_timestamp:
                concerned |= before | edges  # one of these may be waiting for it to go
        if facts is None:
            self._facts.pop(key, None)
        else:
            self._facts[key] = facts
        return concerned - {key}

    def forget(self, key: Key) -> None:
        """The Release is gone."""
        self._latest.pop(key, None)
        self._configs.put(key, set())
        self._let_be(self._sights.put(key, set()))

    def of_sight(self, target: str, name: ReleaseName) -> set[Key]:
        """Return who depends on what was seen."""
        return self._sights.users((target, name))

    def of_target(self, target: str) -> set[Key]:
        """Return who depends on something on a cluster."""
        return self._sights.where(lambda sight: sight[0] == target)

    def of_config(self, config: str) -> set[Key]:
        """Return who depends on something on the cluster a ProviderConfig names."""
        return self._configs.users(config)

    def latest(self, key: Key) -> Needs:
        """Return what was found when a Release was last looked at."""
        return self._latest.get(key, NOTHING_NEEDED)

    def told(
        self, key: Key, release: Release, status: ReleaseStatus, now: datetime
    ) -> ReleaseStatus:
        """Return the status with what the Release depends on."""
        return with_dependencies(release, status, self.latest(key), now)

    def excuse(
        self, key: Key, release: Release, kind: FaultKind, now: datetime
    ) -> ReleaseStatus | None:
        """Return what to say instead of a fault, if a dependency may be about to bring what is missing."""
        needs = self.latest(key)
        return conclude_waiting(release, needs, now) if excuses(release, needs, kind) else None

    def dependants(self, key: Key) -> Dependants:
        """Name the Releases that depend on one; those in a cycle with it have no order."""
        leaving, staying = [], []
        for other in sorted(self._dependants.get(key, ())):
            release = self._releases.get(other)
            if release is None or other in self._reached_from(key):
                continue
            if not release.metadata.deletion_timestamp:
                staying.append(other.name)
            elif FINALIZER in release.metadata.finalizers:
                leaving.append(other.name)
        return Dependants(tuple(leaving), tuple(staying))

    async def look(self, key: Key, release: Release) -> Needs:
        """Return how everything is that a Release depends on; raises what is wrong in its spec."""
        self._latest.pop(key, None)
        found = () if release.metadata.deletion_timestamp else dependencies_of(release)
        self._configs.put(key, {one.config for one in found if one.config})
        sights: set[Sight] = set()
        standings = [await self._standing(key, one, sights) for one in found]
        self._let_be(self._sights.put(key, sights))
        if not found:
            return NOTHING_NEEDED
        edges = self._edges.get(key, frozenset())
        needs = Needs(
            tuple(standings),
            cycle=cycle_through(key.name, self._names_after),
            unsettled=any(self._queue.wants(one) for one in edges if one != key),
        )
        self._latest[key] = needs
        return needs

    async def _standing(self, key: Key, one: Dependency, sights: set[Sight]) -> Standing:
        if one.release and not one.ready:
            return Standing(one, *judge(self._releases.get(_key(one.release))))
        try:
            target = await self._targets.reach_config(one.config)
            attention = one.attention()
            sights.add((target.id, attention.release))
            # Before anything is looked at, so that no change goes unheard.
            self._sights.add(key, (target.id, attention.release))
            await target.attend(attention)
        except EngineLost:
            raise
        except InvalidInput as error:
            raise InvalidInput(one.in_its_words(error.message), error.kind) from None
        except PilothouseError as error:
            return Standing(one, Health.UNKNOWN, error.message)
        return _seen(one, target, attention.release)

    def _connect(self, key: Key, before: frozenset[Key], edges: frozenset[Key]) -> None:
        for gone in before - edges:
            self._dependants[gone].discard(key)
            if not self._dependants[gone]:
                del self._dependants[gone]
        for new in edges - before:
            self._dependants[new].add(key)
        if edges:
            self._edges[key] = edges
        else:
            self._edges.pop(key, None)

    def _leading_to(self, key: Key) -> set[Key]:
        found: set[Key] = set()
        ahead = [key]
        while ahead:
            new = self._dependants.get(ahead.pop(), set()) - found
            found |= new
            ahead += new
        return found

    def _reached_from(self, key: Key) -> set[Key]:
        found: set[Key] = set()
        ahead = [key]
        while ahead:
            new = self._edges.get(ahead.pop(), frozenset()) - found
            found |= new
            ahead += new
        return found

    def _names_after(self, name: str) -> list[str]:
        return [one.name for one in self._edges.get(_key(name), ())]

    def _let_be(self, sights: set[Sight]) -> None:
        for target, name in sights:
            self._targets.disregard(target, name)


def _seen(one: Dependency, target: Target, name: ReleaseName) -> Standing:
    try:
        target.sees(name)
    except EngineLost:
        raise
    except PilothouseError as error:
        return Standing(one, Health.UNKNOWN, error.message)
    objects = target.objects_of(name)
    if objects is None or not objects.external:
        return Standing(one, Health.UNKNOWN, "looking at it")
    state = objects.external[0]
    return Standing(one, state.health, one.in_its_words(state.message))


def _key(name: str) -> Key:
    return Key(RELEASE.qualified, "", name)


def _edges(release: Release | None) -> frozenset[Key]:
    try:
        found = dependencies_of(release) if release else ()
    except ValueError:  # the pass says so
        return frozenset()
    return frozenset(_key(one.release) for one in found if one.release)


def _facts(release: Release | None) -> object:
    if release is None:
        return None
    ours = FINALIZER in release.metadata.finalizers
    return (release.metadata.uid, ours, judge(release))
