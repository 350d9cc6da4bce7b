"""The heartbeat of this instance, and whether others still live.

A pending record carries the name of the instance that made it. Whoever finds one must know whether that
instance still works on it: its Lease tells; beside it, its process tells sooner.
"""

import asyncio
import time
from datetime import UTC, datetime, timedelta

import msgspec
import structlog

from pilothouse.api.kinds import LEASE
from pilothouse.api.meta import Key
from pilothouse.api.provider import Lease
from pilothouse.clusters.instance import certainly_gone
from pilothouse.clusters.objects import Objects
from pilothouse.errors import AlreadyExists, Missing, PilothouseError

log = structlog.get_logger(__name__)

RENEW_SECONDS = 10.0
DURATION = timedelta(seconds=30)
# So much and no more may clocks of two machines differ.
CLOCKS_APART = timedelta(minutes=5)
# A Lease that nobody renewed for so long is rubbish: its instance was killed.
FORGOTTEN = timedelta(hours=1)
REMOVED_AT_ONCE = 100
LISTING_SECONDS = 30.0
OURS = {"app.kubernetes.io/managed-by": "pilothouse"}


class InstanceLease:
    """Implements ports.Instances."""

    def __init__(self, objects: Objects, instance: str, namespace: str) -> None:
        self._objects = objects
        self._instance = instance
        self._namespace = namespace
        # The heartbeat of others as it was last seen, and since when it is that one.
        self._seen: dict[str, tuple[str, float]] = {}

    async def beat(self) -> None:
        """Keep the Lease fresh until cancelled; a clean end takes it away."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._tidy(), name="forgotten leases")
                while True:
                    try:
                        await self._renew()
                    except PilothouseError as error:
                        log.warning("cannot renew the lease", error=error.message)
                    await asyncio.sleep(RENEW_SECONDS)
        finally:
            await self._remove()

    async def _tidy(self) -> None:
        """Remove what killed instances left; one that lives after all makes its Lease again."""
        try:
            async with asyncio.timeout(LISTING_SECONDS):
                found = await self._objects.list(LEASE, self._namespace)
                forgotten = [one.metadata.name for one in found if _forgotten(one)]
                for name in forgotten[:REMOVED_AT_ONCE]:
                    await self._objects.delete(LEASE, name, self._namespace)
        except (PilothouseError, TimeoutError, msgspec.ValidationError) as error:
            log.debug("cannot remove the leases of killed instances", error=str(error))

    async def alive(self, owner: str) -> bool:
        """Whether another instance still lives; this one asks only about others."""
        if owner == self._instance:
            return False  # our own, and no action of ours runs: it was lost with an engine
        if certainly_gone(owner, self._instance):
            return False
        try:
            lease = await self._objects.get(LEASE, _name(owner), self._namespace)
        except Missing:
            self._seen.pop(owner, None)
            return False
        return self._beats(owner, lease)

    def _beats(self, owner: str, lease: Lease) -> bool:
        """Whether its Lease was renewed in time, by this machine's clock alone.

        Clocks of machines differ, so when it says that it was renewed tells nothing by itself, unless it is long ago.
        """
        duration = timedelta(seconds=lease.spec.lease_duration_seconds)
        if _age(lease) > duration + CLOCKS_APART:
            return False
        now, renewed = time.monotonic(), lease.spec.renew_time or ""
        seen, since = self._seen.get(owner, ("", now))
        if seen != renewed:
            seen, since = renewed, now
        self._seen[owner] = seen, since
        return now - since < duration.total_seconds()

    async def _renew(self) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        key = Key(LEASE.qualified, self._namespace, _name(self._instance))
        try:
            await self._objects.merge(LEASE, key, {"spec": {"renewTime": now}})
        except Missing:
            await self._create(now)

    async def _create(self, now: str) -> None:
        manifest = {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": {
                "name": _name(self._instance),
                "namespace": self._namespace,
                "labels": OURS,
            },
            "spec": {
                "holderIdentity": self._instance,
                "leaseDurationSeconds": int(DURATION.total_seconds()),
                "acquireTime": now,
                "renewTime": now,
            },
        }
        try:
            await self._objects.create(LEASE, manifest, self._namespace)
        except AlreadyExists:
            return

    async def _remove(self) -> None:
        try:
            async with asyncio.timeout(2):
                await self._objects.delete(LEASE, _name(self._instance), self._namespace)
        except (PilothouseError, TimeoutError):
            return  # it expires by itself


def _age(lease: Lease) -> timedelta:
    renewed = datetime.fromisoformat(lease.spec.renew_time or "1970-01-01T00:00:00Z")
    return datetime.now(UTC) - renewed


def _forgotten(lease: Lease) -> bool:
    """Whether a Lease is of ours, and long expired."""
    named = lease.metadata.name == _name(lease.spec.holder_identity)
    return named and OURS.items() <= lease.metadata.labels.items() and _age(lease) > FORGOTTEN


def _name(instance: str) -> str:
    return f"pilothouse-{instance}"
