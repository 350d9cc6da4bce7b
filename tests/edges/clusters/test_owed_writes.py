"""What could not be written about ProviderConfigs and namespaced Releases is written later."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from make import release

from pilothouse.api.kinds import NAMESPACED_RELEASE, PROVIDER_CONFIG
from pilothouse.api.meta import Key, ObjectMeta
from pilothouse.api.provider import IN_USE, ProviderConfig, ProviderConfigSpec
from pilothouse.clusters.cache import Cache
from pilothouse.clusters.owed import Delays, Owed
from pilothouse.clusters.unserved import UnservedNotes
from pilothouse.clusters.usages import UsageKeeper
from pilothouse.errors import (
    Conflict,
    EngineLost,
    InvalidInput,
    Missing,
    NotPermitted,
    PilothouseError,
    Unavailable,
)
from pilothouse.ports import WatchBatch

EDGE = Key(PROVIDER_CONFIG.qualified, "", "edge")
SOON = Delays(first=0.001, longest=0.004)
OUTAGES = [Unavailable, NotPermitted, Conflict, EngineLost, InvalidInput]


class Store:
    """An API server that refuses some writes first, and a watch that says everything once."""

    def __init__(self, *refusals: PilothouseError) -> None:
        self.refusals = list(refusals)
        self.asked = 0
        self.written: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def merge(
        self, _kind: object, _key: Key, patch: dict[str, Any], *, subresource: str = ""
    ) -> None:
        del subresource
        self.asked += 1
        if self.refusals:
            raise self.refusals.pop(0)
        self.written.put_nowait(patch)

    async def watch(self, *_: object) -> AsyncIterator[WatchBatch]:
        one = msgspec.structs.replace(
            release(), metadata=msgspec.structs.replace(release().metadata, namespace="web")
        )
        yield WatchBatch(changes=((msgspec.json.encode(one), False),), reset=True, synced=True)
        await asyncio.Event().wait()

    async def next(self) -> dict[str, Any]:
        async with asyncio.timeout(30):
            return await self.written.get()


@asynccontextmanager
async def running(work: Any) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def configs(*finalizers: str, deleted: bool = False) -> Cache[ProviderConfig]:
    cache = Cache(PROVIDER_CONFIG)
    metadata = ObjectMeta(
        name="edge",
        resource_version="1",
        finalizers=list(finalizers),
        deletion_timestamp="2026-11-15T11:00:00Z" if deleted else None,
    )
    cache.put(EDGE, "1", ProviderConfig(metadata=metadata, spec=ProviderConfigSpec()))
    return cache


@pytest.mark.parametrize("refusal", OUTAGES)
async def test_a_deleted_config_goes_when_the_cluster_is_back(
    refusal: type[PilothouseError],
) -> None:
    store = Store(*[refusal("not now")] * 3)
    known = configs(IN_USE, deleted=True)
    keeper = UsageKeeper(store, known, lambda _: 0, SOON)  # type: ignore[arg-type]
    async with running(keeper.run()):
        keeper.changed("edge")
        assert (await store.next())["metadata"]["finalizers"] == []


@pytest.mark.parametrize("refusal", OUTAGES)
async def test_a_namespaced_release_is_told_when_the_cluster_is_back(
    refusal: type[PilothouseError],
) -> None:
    store = Store(refusal("not now"))
    notes = UnservedNotes(store, SOON)  # type: ignore[arg-type]
    async with running(notes.follow(store, None)):  # type: ignore[arg-type]
        [said] = (await store.next())["status"]["conditions"]
        assert said["reason"] == "NotReconciled"


async def test_what_went_is_not_tried_again() -> None:
    store = Store(Missing(f"no {NAMESPACED_RELEASE.kind}"))
    tried: asyncio.Queue[str] = asyncio.Queue()

    async def write(name: str) -> None:
        tried.put_nowait(name)
        await store.merge(None, EDGE, {})

    owed = Owed(write, SOON)
    async with running(owed.run()), asyncio.timeout(30):
        owed.add("gone")
        assert await tried.get() == "gone"
        store.refusals = [Unavailable("away")]
        owed.add("other")
        assert [await tried.get(), await tried.get()] == ["other", "other"]
    assert store.asked == 3


def test_waits_grow_and_end() -> None:
    waits = [Delays().after(failures) for failures in (1, 2, 3, 7, 10_000)]
    assert waits == [1, 2, 4, 60, 60]
