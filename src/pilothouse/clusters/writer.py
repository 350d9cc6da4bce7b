"""What is written about a Release: its claim, its status, its Events. Nothing that did not change."""

import contextlib
import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from pilothouse.api.kinds import EVENT, PROVIDER_CONFIG_USAGE, RELEASE, SECRET
from pilothouse.api.meta import Key
from pilothouse.api.provider import CONFIG_LABEL
from pilothouse.api.release import EXTERNAL_NAME, FINALIZER, Release
from pilothouse.api.status import ReleaseStatus
from pilothouse.clusters.authors import who_wrote_chart
from pilothouse.clusters.cache import Cache
from pilothouse.clusters.objects import Objects
from pilothouse.core.conditions import timestamp
from pilothouse.core.left_over import is_left_over
from pilothouse.core.merge_patch import difference
from pilothouse.core.outcome import Notice
from pilothouse.errors import AlreadyExists, Missing, NotPermitted
from pilothouse.faults import FaultKind

LONGEST_NOTICE = 1000
CONNECTION_SECRET = "connection.crossplane.io/v1alpha1"  # noqa: S105 - a type, not a secret


class ReleaseWriter:
    """Writes through the management cluster and into the cache, so that the next pass sees it."""

    def __init__(self, objects: Objects, cache: Cache[Release], instance: str) -> None:
        self._objects = objects
        self._cache = cache
        self._instance = instance

    async def claim(self, release: Release, config: str) -> Release:
        """Say that it uses its ProviderConfig; then finalizer and external name, in one write."""
        try:
            await self._create_usage(release, config)
        except AlreadyExists:
            await self.use(release, config)
        metadata = release.metadata
        patch: dict[str, Any] = {"resourceVersion": metadata.resource_version}
        if FINALIZER not in metadata.finalizers:
            patch["finalizers"] = [*metadata.finalizers, FINALIZER]
        if not metadata.annotations.get(EXTERNAL_NAME):
            patch["annotations"] = {EXTERNAL_NAME: metadata.name}
        return await self._merge(release, {"metadata": patch})

    async def late_initialize(self, release: Release, chart: Mapping[str, str]) -> Release:
        """Fill in fields of the chart that the user left open."""
        patch = {
            "metadata": {"resourceVersion": release.metadata.resource_version},
            "spec": {"forProvider": {"chart": dict(chart)}},
        }
        return await self._merge(release, patch)

    async def take_back_name(self, release: Release) -> Release:
        """Empty the chart's name where nobody but us wrote it."""
        written = await who_wrote_chart(self._objects, release)
        if not is_left_over(release.spec.for_provider.chart, written):
            return release
        patch = {
            "metadata": {"resourceVersion": release.metadata.resource_version},
            "spec": {"forProvider": {"chart": {"name": None}}},
        }
        return await self._merge(release, patch)

    async def connect_secret(self, release: Release, data: Mapping[str, str]) -> None:
        """Write the connection secret, if it is not so already."""
        ref = release.spec.write_connection_secret_to_ref
        if ref is None:
            return
        namespace = ref.namespace or release.metadata.namespace
        try:
            held = await self._objects.get(SECRET, ref.name, namespace)
        except Missing:
            manifest = {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {
                    "name": ref.name,
                    "namespace": namespace,
                    "ownerReferences": [owner_reference(release)],
                },
                "type": CONNECTION_SECRET,
                "data": dict(data),
            }
            await self._objects.create(SECRET, manifest, namespace)
            return
        owner = next((one.uid for one in held.metadata.owner_references if one.controller), "")
        if owner != release.metadata.uid:
            raise NotPermitted(
                f"spec.writeConnectionSecretToRef: Secret {namespace}/{ref.name} exists and is not "
                "this Release's; choose another name",
                FaultKind.ALREADY_EXISTS,
            )
        if (held.data or {}) != data:
            gone = dict.fromkeys((held.data or {}).keys() - data.keys())
            key = Key(SECRET.qualified, namespace, ref.name)
            await self._objects.merge(SECRET, key, {"data": {**gone, **data}})

    async def let_go(self, release: Release) -> None:
        """Take the finalizer off; the object then goes."""
        left = [one for one in release.metadata.finalizers if one != FINALIZER]
        patch = {"finalizers": left, "resourceVersion": release.metadata.resource_version}
        key = RELEASE.key(release.metadata)
        with contextlib.suppress(Missing):
            await self._objects.merge(RELEASE, key, {"metadata": patch})

    async def status(self, release: Release, status: ReleaseStatus) -> Release:
        """Write the fields of the status that differ; nothing when none does."""
        patch = difference(release.status, status)
        if not patch:
            return release
        written = await self._merge(release, {"status": patch}, subresource="status")
        then = msgspec.structs.replace(
            release.metadata, resource_version=written.metadata.resource_version
        )
        if written.metadata != then:
            # Somebody edited it meanwhile. The watch will bring nothing newer than this answer, so it is told now.
            self._cache.tell(RELEASE.key(written.metadata))
        return written

    async def use(self, release: Release, config: str) -> None:
        """Say that it uses that config, and no other that was said before."""
        key = Key(PROVIDER_CONFIG_USAGE.qualified, "", release.metadata.uid)
        said = {
            "metadata": {"labels": {CONFIG_LABEL: config}},
            "providerConfigRef": {"name": config},
        }
        try:
            await self._objects.merge(PROVIDER_CONFIG_USAGE, key, said)
        except Missing:
            await self._create_usage(release, config)

    async def _create_usage(self, release: Release, config: str) -> None:
        metadata = release.metadata
        manifest = {
            "apiVersion": PROVIDER_CONFIG_USAGE.api_version,
            "kind": PROVIDER_CONFIG_USAGE.kind,
            "metadata": {
                "name": metadata.uid,
                "labels": {CONFIG_LABEL: config},
                "ownerReferences": [owner_reference(release)],
            },
            "providerConfigRef": {"name": config},
            "resourceRef": {
                "apiVersion": RELEASE.api_version,
                "kind": RELEASE.kind,
                "name": metadata.name,
                "uid": metadata.uid,
            },
        }
        await self._objects.create(PROVIDER_CONFIG_USAGE, manifest)

    async def tell(self, release: Release, notice: Notice) -> None:
        """Post an Event; the same about the same spec is one, which counts how often."""
        metadata = release.metadata
        now = timestamp(datetime.now(UTC))
        about = f"{metadata.uid} {metadata.generation} {notice.reason} {notice.message}"
        name = f"{metadata.name}.{hashlib.sha256(about.encode()).hexdigest()[:16]}"
        namespace = metadata.namespace or "default"
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
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
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        try:
            await self._objects.create(EVENT, event, namespace)
        except AlreadyExists:
            # It may be too old to be kept, at this very moment.
            with contextlib.suppress(Missing):
                held = await self._objects.get(EVENT, name, namespace)
                again = {"count": held.count + 1, "lastTimestamp": now}
                await self._objects.merge(EVENT, Key(EVENT.qualified, namespace, name), again)

    async def _merge(
        self, release: Release, patch: dict[str, Any], subresource: str = ""
    ) -> Release:
        key = RELEASE.key(release.metadata)
        written = await self._objects.merge(RELEASE, key, patch, subresource=subresource)
        self._cache.put(key, written.metadata.resource_version, written)
        return written


def owner_reference(release: Release) -> dict[str, Any]:
    """Name the Release as the controller of something, which then goes with it."""
    return {
        "apiVersion": RELEASE.api_version,
        "kind": RELEASE.kind,
        "name": release.metadata.name,
        "uid": release.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
