"""Single keys of ConfigMaps and Secrets that are referred to: read once, kept until they change.

Of an object only the keys that somebody uses are kept. Changes are heard by name and version (names.py): when
an object has been quiet for a moment it is read once, whoever and however many use it, and only the users of
keys with another content than before are woken.
"""

import asyncio
import base64
import binascii
import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import structlog

from pilothouse.api.kinds import CONFIG_MAP, SECRET
from pilothouse.api.meta import Key
from pilothouse.clusters.objects import Objects
from pilothouse.errors import Missing, PilothouseError
from pilothouse.ports import WHOLE, Reference, Referred, Use

log = structlog.get_logger(__name__)

# A burst of changes is taken together: so long after the last of them, and at most so long after the first.
QUIET_SECONDS = 0.2
LONGEST_BURST_SECONDS = 1.0
READS_AT_ONCE = 8
# No digest: readers of this key hold different values.
_UNSETTLED = b"?"


@dataclass(frozen=True, slots=True)
class _Sight:
    """An object as it was read, with the keys somebody uses and no others."""

    uid: str
    version: str
    values: dict[str, bytes] = field(repr=False)


@dataclass(slots=True)
class _Held:
    """One object that is referred to."""

    readers: dict[str, set[Key]] = field(default_factory=lambda: defaultdict(set))
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    sight: _Sight | None = None
    # Which keys the sight tells of; those it does not have are known to be missing.
    kept: frozenset[str] = frozenset()
    # What the readers of a key were last woken for, as a digest.
    told: dict[str, bytes] = field(default_factory=dict)
    # Changes heard of, and how many of them the sight covers.
    changes: int = 0
    covered: int = -1
    timer: asyncio.TimerHandle | None = None
    due: bool = False
    burst_began: float = 0.0

    def tells(self, key: str) -> bool:
        return self.covered == self.changes and key in self.kept

    def digest(self, key: str) -> bytes:
        if key == WHOLE and self.sight:
            every = sorted(self.sight.values.items())
            return hashlib.blake2b(repr(every).encode(), digest_size=16).digest()
        value = self.sight.values.get(key) if self.sight else None
        # A missing object and a missing key are not the same news.
        if value is None:
            return b"no key" if self.sight else b"no object"
        return hashlib.blake2b(value, digest_size=16).digest()


class ReferenceCache:
    """Implements ports.References; `wake` is told who uses a key that changed."""

    def __init__(self, objects: Objects, wake: Callable[[set[Key]], None]) -> None:
        self._objects = objects
        self._wake = wake
        self._held: dict[Reference, _Held] = {}
        self._uses: dict[Key, frozenset[Use]] = {}
        self._due: asyncio.Queue[Reference] = asyncio.Queue()

    async def run(self) -> None:
        """Read what changed and wake its users, for ever; few at a time."""
        async with asyncio.TaskGroup() as tasks:
            for number in range(READS_AT_ONCE):
                tasks.create_task(self._settle_all(), name=f"references {number}")

    async def read(self, use: Use) -> Referred | None:
        """Return the value of a key; many readers at once cause one request."""
        # Who reads without having said so is not remembered.
        held = self._held.get(use.reference) or _Held()
        async with held.lock:
            if not held.tells(use.key):
                await self._look(use.reference, held, use.key)
                self._compare_early(use.reference, held)
            sight = held.sight
        if sight is None:
            return None
        whole = dict(sight.values) if use.key == WHOLE else {}
        return Referred(sight.uid, sight.version, sight.values.get(use.key), whole)

    def used_by(self, key: Key, uses: frozenset[Use]) -> None:
        """Note which keys somebody uses; what nobody uses any more is forgotten."""
        before = self._uses.get(key, frozenset())
        if uses:
            self._uses[key] = uses
        else:
            self._uses.pop(key, None)
        for use in uses - before:
            self._held.setdefault(use.reference, _Held()).readers[use.key].add(key)
        for use in before - uses:
            self._drop(use, key)

    def changed(self, reference: Reference, version: str, *, gone: bool) -> None:
        """Hear that an object appeared, changed or went."""
        held = self._held.get(reference)
        if held is None:
            return
        sight = held.sight
        if not gone and sight and int(version or 0) <= int(sight.version or 0):
            return
        held.changes += 1
        self._soon(reference, held)

    def listed(self, kind: str, names: Collection[tuple[str, str]]) -> None:
        """Hear which objects of a kind there are: what went unheard meanwhile is noticed here."""
        for reference, held in self._held.items():
            there = (reference.namespace, reference.name) in names
            if reference.kind == kind and held.sight and not there:
                self.changed(reference, "", gone=True)

    def _drop(self, use: Use, key: Key) -> None:
        held = self._held[use.reference]
        readers = held.readers[use.key]
        readers.discard(key)
        if readers:
            return
        del held.readers[use.key]
        held.told.pop(use.key, None)
        held.kept -= {use.key}
        if held.sight and WHOLE not in held.kept:
            for name in held.sight.values.keys() - held.kept:
                del held.sight.values[name]
        if not held.readers:
            if held.timer:
                held.timer.cancel()
            del self._held[use.reference]

    def _soon(self, reference: Reference, held: _Held) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        if held.timer:
            held.timer.cancel()
        else:
            held.burst_began = now
        at = min(now + QUIET_SECONDS, held.burst_began + LONGEST_BURST_SECONDS)
        held.timer = loop.call_at(at, self._over, reference, held)

    def _over(self, reference: Reference, held: _Held) -> None:
        held.timer = None
        if not held.due:
            held.due = True
            self._due.put_nowait(reference)

    async def _settle_all(self) -> None:
        while True:
            reference = await self._due.get()
            held = self._held.get(reference)
            if held is None:
                continue
            held.due = False
            try:
                concerned = await self._settle(reference, held)
            except PilothouseError as error:
                log.info("cannot read", reference=str(reference), error=error.message)
                # Their passes read it again, and say what is wrong.
                concerned = set().union(*held.readers.values())
            log.debug("reference changed", reference=str(reference), woken=len(concerned))
            self._wake(concerned)

    async def _settle(self, reference: Reference, held: _Held) -> set[Key]:
        """Read an object that changed; return who uses a key that did."""
        async with held.lock:
            if not all(held.tells(key) for key in held.readers):
                await self._look(reference, held)
            concerned: set[Key] = set()
            for key, readers in held.readers.items():
                now = held.digest(key)
                # A key that was never told of has not been read by anyone yet.
                if held.told.setdefault(key, now) != now:
                    concerned |= readers
                    held.told[key] = now
            return concerned

    def _compare_early(self, reference: Reference, held: _Held) -> None:
        """Someone reads ahead of the others: these are woken when the object is quiet."""
        news = False
        for key in held.kept:
            now = held.digest(key)
            if held.told.setdefault(key, now) != now:
                held.told[key] = _UNSETTLED
                news = True
        if news and held.timer is None and not held.due:
            self._soon(reference, held)

    async def _look(self, reference: Reference, held: _Held, also: str = "") -> None:
        began = held.changes
        found = await self._fetch(reference)
        kept = frozenset(held.readers) | ({also} if also else set())
        if found and WHOLE not in kept:
            values = {name: value for name, value in found.values.items() if name in kept}
            found = _Sight(found.uid, found.version, values)
        held.sight, held.kept, held.covered = found, kept, began

    async def _fetch(self, reference: Reference) -> _Sight | None:
        try:
            if reference.kind == "ConfigMap":
                found = await self._objects.get(CONFIG_MAP, reference.name, reference.namespace)
                values = {name: text.encode() for name, text in (found.data or {}).items()}
                return _Sight(found.metadata.uid, found.metadata.resource_version, values)
            secret = await self._objects.get(SECRET, reference.name, reference.namespace)
            data = secret.data or {}
            return _Sight(
                secret.metadata.uid,
                secret.metadata.resource_version,
                {name: _decoded(raw) for name, raw in data.items()},
            )
        except Missing:
            return None


def _decoded(raw: str) -> bytes:
    try:
        return base64.b64decode(raw, validate=True)
    except binascii.Error:
        # The API server refuses this; whoever reads it says that it is no text.
        return b"\xff"
