"""What is written about a Release: its claim, its status, its Events. Nothing that did not change."""

import contextlib
import hashlib
from datetime import UTC, datetime
from typing import Any

import msgspec

from pilothouse.api.kinds import EVENT, RELEASE
from pilothouse.api.release import EXTERNAL_NAME, FINALIZER, Release, ReleaseStatus
from pilothouse.clusters.cache import Cache
from pilothouse.clusters.objects import Objects
from pilothouse.core.conditions import timestamp
from pilothouse.core.outcome import Notice
from pilothouse.errors import AlreadyExists, Missing

LONGEST_NOTICE = 1000


class ReleaseWriter:
    """Writes through the management cluster and into the cache, so that the next pass sees it."""

    def __init__(self, objects: Objects, cache: Cache[Release], instance: str) -> None:
        self._objects = objects
        self._cache = cache
        self._instance = instance

    async def claim(self, release: Release) -> Release:
        """Put the finalizer and the external name on it, in one write."""
        metadata = release.metadata
        patch: dict[str, Any] = {"resourceVersion": metadata.resource_version}
        if FINALIZER not in metadata.finalizers:
            patch["finalizers"] = [*metadata.finalizers, FINALIZER]
        if not metadata.annotations.get(EXTERNAL_NAME):
            patch["annotations"] = {EXTERNAL_NAME: metadata.name}
        return await self._merge(release, {"metadata": patch})

    async def let_go(self, release: Release) -> None:
        """Take the finalizer off; the object then goes."""
        left = [one for one in release.metadata.finalizers if one != FINALIZER]
        patch = {"finalizers": left, "resourceVersion": release.metadata.resource_version}
        key = RELEASE.key(release.metadata)
        with contextlib.suppress(Missing):
            await self._objects.merge(RELEASE, key, {"metadata": patch})
        # Gone as far as we are concerned; the watch will say so too, a moment later.
        self._cache.drop(key)

    async def status(self, release: Release, status: ReleaseStatus) -> Release:
        """Write the fields of the status that differ; nothing when none does."""
        patch = difference(release.status, status)
        if not patch:
            return release
        return await self._merge(release, {"status": patch}, subresource="status")

    async def tell(self, release: Release, notice: Notice) -> None:
        """Post an Event; the same one twice is one."""
        metadata = release.metadata
        now = datetime.now(UTC)
        said = hashlib.sha256(f"{notice.reason}{notice.message}{now}".encode()).hexdigest()[:16]
        namespace = metadata.namespace or "default"
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{metadata.name}.{said}", "namespace": namespace},
            "involvedObject": {
                "apiVersion": RELEASE.api_version,
                "kind": RELEASE.kind,
                "name": metadata.name,
                "namespace": metadata.namespace,
                "uid": metadata.uid,
                "resourceVersion": metadata.resource_version,
            },
            "reason": notice.reason,
            "message": notice.message[:LONGEST_NOTICE],
            "type": "Warning" if notice.warning else "Normal",
            "source": {"component": "pilothouse"},
            "reportingComponent": "pilothouse",
            "reportingInstance": self._instance,
            "firstTimestamp": timestamp(now),
            "lastTimestamp": timestamp(now),
            "count": 1,
        }
        try:
            await self._objects.create(EVENT, event, namespace)
        except AlreadyExists:
            return

    async def _merge(
        self, release: Release, patch: dict[str, Any], subresource: str = ""
    ) -> Release:
        key = RELEASE.key(release.metadata)
        written = await self._objects.merge(RELEASE, key, patch, subresource=subresource)
        self._cache.put(key, written.metadata.resource_version, written)
        return written


def difference(before: ReleaseStatus, after: ReleaseStatus) -> dict[str, Any]:
    """Return the merge patch that turns one status into the other; {} when they are equal."""
    old: dict[str, Any] = msgspec.to_builtins(before)
    new: dict[str, Any] = msgspec.to_builtins(after)
    return _merge_patch(old, new)


def _merge_patch(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    patch: dict[str, Any] = dict.fromkeys(old.keys() - new.keys())
    for name, value in new.items():
        held = old.get(name)
        if isinstance(held, dict) and isinstance(value, dict):
            inner = _merge_patch(held, value)
            if inner:
                patch[name] = inner
        elif held != value:
            patch[name] = value
    return patch
