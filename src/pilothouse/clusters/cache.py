"""The latest sight of every object of a kind.

Two sources feed it: the watch, and the answers to our own writes, which arrive first. An older sight never
replaces a newer one, so that a pass always sees what the pass before it wrote.
"""

from collections.abc import Callable, Iterator
from typing import Generic

import msgspec
import structlog

from pilothouse.api.kinds import Kind, T
from pilothouse.api.meta import Key, Object
from pilothouse.engine.client import EngineClient
from pilothouse.errors import EngineLost
from pilothouse.ports import Credentials, WatchBatch

log = structlog.get_logger(__name__)

Listener = Callable[[Key, "msgspec.Struct | None"], None]


class Cache(Generic[T]):
    """Objects of one kind by key."""

    def __init__(self, kind: Kind[T]) -> None:
        self.kind = kind
        self._held: dict[Key, tuple[int, T]] = {}
        self._decoder = msgspec.json.Decoder(kind.struct)
        self._metadata = msgspec.json.Decoder(Object)
        self._snapshot: set[Key] | None = None
        self._listener: Listener | None = None

    def get(self, key: Key) -> T | None:
        """Return the latest sight of one object."""
        held = self._held.get(key)
        return held[1] if held else None

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Key]:
        return iter(list(self._held))

    def put(self, key: Key, version: str, value: T) -> bool:
        """Take in a sight; False when it is not newer than what is held."""
        number = int(version or 0)
        held = self._held.get(key)
        if held and number <= held[0]:
            return False
        self._held[key] = (number, value)
        return True

    def tell(self, key: Key) -> None:
        """Tell of an object as it is held: a change of others came first with the answer to a write of ours."""
        held = self.get(key)
        if held is not None and self._listener:
            self._listener(key, held)

    def listen(self, listener: Listener) -> None:
        """Say who is told of what is new."""
        self._listener = listener

    def drop(self, key: Key) -> bool:
        """Forget one object."""
        return self._held.pop(key, None) is not None

    def take(self, batch: WatchBatch, listener: Listener) -> None:
        """Take in a batch and tell the listener about what is new."""
        if batch.reset:
            self._snapshot = set()
        for raw, gone in batch.changes:
            self._take_one(raw, gone=gone, listener=listener)
        if batch.synced and self._snapshot is not None:
            vanished = [key for key in self._held if key not in self._snapshot]
            self._snapshot = None
            for key in vanished:
                self.drop(key)
                listener(key, None)

    def _take_one(self, raw: bytes, *, gone: bool, listener: Listener) -> None:
        metadata = self._metadata.decode(raw).metadata
        key = self.kind.key(metadata)
        if gone:
            if self.drop(key):
                listener(key, None)
            return
        if self._snapshot is not None:
            self._snapshot.add(key)
        held = self._held.get(key)
        if held and int(metadata.resource_version or 0) <= held[0]:
            return
        try:
            value = self._decoder.decode(raw)
        except msgspec.ValidationError as error:
            # One odd object must not stop the others; the schema should have refused it.
            log.warning("unreadable object", key=str(key), error=str(error))
            return
        self.put(key, metadata.resource_version, value)
        listener(key, value)

    async def follow(
        self,
        engine: EngineClient,
        at: Credentials,
        listener: Listener,
        *,
        synced: Callable[[], None],
    ) -> None:
        """Follow the kind for ever, across engines."""
        self.listen(listener)
        while True:
            try:
                async for batch in engine.watch(at, self.kind):
                    if batch.fault:
                        log.warning(
                            "watch is failing", kind=self.kind.qualified, error=batch.fault.message
                        )
                    self.take(batch, listener)
                    if batch.synced:
                        synced()
            except EngineLost:
                log.info("watch re-opens", kind=self.kind.qualified)
            # A new engine sends a whole snapshot: what is not in it has gone meanwhile.
            self._snapshot = set()
