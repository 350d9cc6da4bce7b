"""The heartbeat, on a real API server."""

import asyncio
from datetime import UTC, datetime, timedelta

from pilothouse.api.kinds import LEASE
from pilothouse.api.meta import Key
from pilothouse.clusters.instance import new_instance
from pilothouse.clusters.lease import OURS, InstanceLease
from pilothouse.clusters.objects import Objects
from pilothouse.engine.client import EngineClient


async def test_leases_of_killed_instances_go_and_no_others(
    engine: EngineClient, at, namespace
) -> None:
    objects = Objects(engine, at)

    async def lease(name: str, holder: str, age: timedelta, labels: dict[str, str]) -> None:
        renewed = datetime.now(UTC) - age
        manifest = {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": 30,
                "renewTime": renewed.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            },
        }
        await objects.create(LEASE, manifest, namespace)

    async def names() -> set[str]:
        found = await objects.list(LEASE, namespace)
        return {one.metadata.name for one in found}

    day = timedelta(days=1)
    await lease("pilothouse-killed", "killed", day, OURS)
    await lease("pilothouse-slow", "slow", timedelta(minutes=1), OURS)
    await lease("pilothouse-living", "living", timedelta(), OURS)
    await lease("pilothouse-theirs", "theirs", day, {})
    await lease("theirs", "somebody", day, OURS)
    me = new_instance()
    heart = InstanceLease(objects, me, namespace)
    beating = asyncio.create_task(heart.beat())
    kept = {"pilothouse-slow", "pilothouse-living", "pilothouse-theirs", "theirs"}
    try:
        async with asyncio.timeout(30):
            while await names() != kept | {f"pilothouse-{me}"}:  # noqa: ASYNC110 - a look at the server
                await asyncio.sleep(0.05)
        assert await heart.alive("living")
        assert not await heart.alive("killed")
    finally:
        beating.cancel()
        await asyncio.wait({beating})
    assert await names() == kept


async def test_clocks_that_differ_make_nobody_dead(engine: EngineClient, at, namespace) -> None:
    objects = Objects(engine, at)
    heart = InstanceLease(objects, new_instance(), namespace)
    key = Key(LEASE.qualified, namespace, "pilothouse-behind")

    def at_minutes(number: float) -> str:
        moment = datetime.now(UTC) + timedelta(minutes=number)
        return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    manifest = {
        "apiVersion": LEASE.api_version,
        "kind": LEASE.kind,
        "metadata": {"name": key.name},
        "spec": {"leaseDurationSeconds": 1, "renewTime": at_minutes(-4)},
    }
    await objects.create(LEASE, manifest, namespace)

    async def ends() -> None:
        async with asyncio.timeout(30):
            while await heart.alive("behind"):  # noqa: ASYNC110 - a look at the server
                await asyncio.sleep(0.05)

    assert await heart.alive("behind"), "its clock is four minutes behind"
    await ends()
    await objects.merge(LEASE, key, {"spec": {"renewTime": at_minutes(-3)}})
    assert await heart.alive("behind"), "it was renewed"
    await objects.merge(LEASE, key, {"spec": {"renewTime": at_minutes(60)}})
    assert await heart.alive("behind")
    await ends()
    await objects.merge(LEASE, key, {"spec": {"renewTime": at_minutes(-60)}})
    assert not await heart.alive("behind"), "no clock is as wrong as that"
