"""The heartbeat of this instance, and whether others still live.

A pending record carries the name of the instance that made it. Whoever finds one must know whether that
instance still works on it: its Lease tells; on the same host its process tells sooner.
"""

import asyncio
import os
import secrets
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import structlog

from pilothouse.api.kinds import LEASE
from pilothouse.api.meta import Key
from pilothouse.clusters.objects import Objects
from pilothouse.errors import AlreadyExists, Missing, PilothouseError

log = structlog.get_logger(__name__)

RENEW_SECONDS = 10.0
DURATION = timedelta(seconds=30)
LONGEST_HOST = 40


def new_instance() -> str:
    """Name this process: host, process id and a token that no earlier one had."""
    host = "".join(one if one.isalnum() else "-" for one in socket.gethostname().lower())
    return f"{host[:LONGEST_HOST].strip('-') or 'host'}.{os.getpid()}.{secrets.token_hex(4)}"


class InstanceLease:
    """Implements ports.Instances."""

    def __init__(self, objects: Objects, instance: str, namespace: str) -> None:
        self._objects = objects
        self._instance = instance
        self._namespace = namespace

    async def beat(self) -> None:
        """Keep the Lease fresh until cancelled; a clean end takes it away."""
        try:
            while True:
                try:
                    await self._renew()
                except PilothouseError as error:
                    log.warning("cannot renew the lease", error=error.message)
                await asyncio.sleep(RENEW_SECONDS)
        finally:
            await self._remove()

    async def alive(self, owner: str) -> bool:
        """Whether another instance still lives; this one asks only about others."""
        if owner == self._instance:
            return False  # our own, and no action of ours runs: it was lost with an engine
        host, process, _ = [*owner.split("."), "", ""][:3]
        mine = self._instance.split(".")
        if host == mine[0] and (process == mine[1] or not Path(f"/proc/{process}").exists()):
            return False  # an earlier life of this process, or a process that is gone
        try:
            lease = await self._objects.get(LEASE, _name(owner), self._namespace)
        except Missing:
            return False
        renewed = datetime.fromisoformat(lease.spec.renew_time or "1970-01-01T00:00:00Z")
        return datetime.now(UTC) - renewed < timedelta(seconds=lease.spec.lease_duration_seconds)

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
            "metadata": {"name": _name(self._instance), "namespace": self._namespace},
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


def _name(instance: str) -> str:
    return f"pilothouse-{instance}"
