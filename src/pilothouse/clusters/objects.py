"""Typed objects of one cluster."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any

import msgspec

from pilothouse.api.kinds import Kind, T
from pilothouse.api.meta import Key
from pilothouse.engine.client import EngineClient
from pilothouse.engine.failures import as_error
from pilothouse.ports import Credentials


class Objects:
    """Reads and writes objects of one cluster; each is decoded once, here."""

    def __init__(self, engine: EngineClient, credentials: Credentials) -> None:
        self._engine = engine
        self._at = credentials

    async def get(self, kind: Kind[T], name: str, namespace: str = "") -> T:
        """Read one object."""
        raw = await self._engine.get(self._at, kind, name, namespace)
        return msgspec.json.decode(raw, type=kind.struct)

    async def list(self, kind: Kind[T], *, field_selector: str = "") -> Sequence[T]:
        """Read every object of a kind, once; for what is needed rarely, as nothing is kept."""
        found: list[T] = []
        async with aclosing(
            self._engine.watch(self._at, kind, field_selector=field_selector)
        ) as batches:
            async for batch in batches:
                if batch.fault:
                    raise as_error(batch.fault)
                present = (raw for raw, gone in batch.changes if not gone)
                found += [msgspec.json.decode(raw, type=kind.struct) for raw in present]
                if batch.synced:
                    break
        return found

    async def create(self, kind: Kind[T], manifest: Mapping[str, Any], namespace: str = "") -> T:
        """Create one object."""
        body = msgspec.json.encode(manifest)
        raw = await self._engine.create(self._at, kind, body, namespace)
        return msgspec.json.decode(raw, type=kind.struct)

    async def merge(
        self, kind: Kind[T], key: Key, patch: Mapping[str, Any], *, subresource: str = ""
    ) -> T:
        """Merge-patch one object and return it as it is now."""
        raw = await self._engine.merge(
            self._at,
            kind,
            (key.namespace, key.name),
            msgspec.json.encode(patch),
            subresource,
        )
        return msgspec.json.decode(raw, type=kind.struct)

    async def delete(self, kind: Kind[T], name: str, namespace: str = "") -> None:
        """Delete one object."""
        await self._engine.delete(self._at, kind, name, namespace)
