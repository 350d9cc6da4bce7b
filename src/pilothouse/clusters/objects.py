"""Typed objects of one cluster."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any

import msgspec

from pilothouse.api.kinds import Kind, T
from pilothouse.api.meta import Key
from pilothouse.engine.client import EngineClient
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

    async def list(self, kind: Kind[T], namespace: str) -> Sequence[T]:
        """Read every object of a kind in a namespace, once; for what is needed rarely, as nothing is kept."""
        async with aclosing(self._engine.list(self._at, kind, namespace)) as found:
            return [msgspec.json.decode(raw, type=kind.struct) async for raw in found]

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
