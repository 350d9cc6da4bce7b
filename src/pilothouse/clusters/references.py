"""ConfigMaps and Secrets that Releases refer to: read once, kept until they change.

Only what is referred to is kept. Changes are heard by name and version (names.py); an event about a version
that is already held wakes nobody.
"""

import asyncio
import base64
import binascii
from collections import defaultdict
from collections.abc import Mapping

from pilothouse.api.kinds import CONFIG_MAP, SECRET
from pilothouse.api.meta import Key
from pilothouse.clusters.objects import Objects
from pilothouse.errors import Missing
from pilothouse.ports import Reference, Referred


class ReferenceCache:
    """Implements ports.References."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._held: dict[Reference, Referred | None] = {}
        self._seen: dict[Reference, int] = {}
        self._readers: dict[Reference, set[Key]] = defaultdict(set)
        self._uses: dict[Key, frozenset[Reference]] = {}
        self._locks: dict[Reference, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def read(self, reference: Reference) -> Referred | None:
        """Return the object; many readers at once cause one request."""
        async with self._locks[reference]:
            if reference in self._held:
                return self._held[reference]
            while True:
                found = await self._fetch(reference)
                # A change may have been heard of while the answer was on its way.
                if found is None or int(found.resource_version) >= self._seen.get(reference, 0):
                    break
            self._held[reference] = found
            return found

    def used_by(self, key: Key, references: frozenset[Reference]) -> None:
        """Note what a Release refers to; what nobody refers to any more is forgotten."""
        before = self._uses.get(key, frozenset())
        if references:
            self._uses[key] = references
        else:
            self._uses.pop(key, None)
        for reference in before - references:
            readers = self._readers[reference]
            readers.discard(key)
            if not readers:
                for known in (self._readers, self._held, self._seen, self._locks):
                    known.pop(reference, None)
        for reference in references - before:
            self._readers[reference].add(key)

    def changed(self, reference: Reference, version: str, *, gone: bool) -> set[Key]:
        """Hear of a change; return the Releases it concerns."""
        readers = self._readers.get(reference)
        if not readers:
            return set()
        held = self._held.get(reference)
        if not gone:
            self._seen[reference] = max(int(version or 0), self._seen.get(reference, 0))
            if held and held.resource_version == version:
                return set()
        self._held.pop(reference, None)
        return set(readers)

    async def _fetch(self, reference: Reference) -> Referred | None:
        try:
            if reference.kind == "ConfigMap":
                found = await self._objects.get(CONFIG_MAP, reference.name, reference.namespace)
                data = found.data or {}
                return Referred(found.metadata.uid, found.metadata.resource_version, data)
            secret = await self._objects.get(SECRET, reference.name, reference.namespace)
            texts, binary = _texts(secret.data or {})
            return Referred(secret.metadata.uid, secret.metadata.resource_version, texts, binary)
        except Missing:
            return None


def _texts(data: Mapping[str, str]) -> tuple[dict[str, str], dict[str, bytes]]:
    """Return what is text, and what is not; what is not even base64 is nothing."""
    texts, binary = {}, {}
    for name, raw in data.items():
        try:
            content = base64.b64decode(raw, validate=True)
        except binascii.Error:
            binary[name] = b""
            continue
        try:
            texts[name] = content.decode()
        except UnicodeDecodeError:
            binary[name] = content
    return texts, binary
