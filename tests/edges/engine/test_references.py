"""Keys that are referred to, on a real API server: who is woken, and for how many requests."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pilothouse.api.kinds import SECRET, Kind, T
from pilothouse.api.meta import Key
from pilothouse.clusters.objects import Objects
from pilothouse.clusters.references import ReferenceCache
from pilothouse.ports import Reference, Use

PATIENCE = 30.0
CROWD = 500


class CountedObjects(Objects):
    """The real thing, counting its reads."""

    reads = 0

    async def get(self, kind: Kind[T], name: str, namespace: str = "") -> T:
        self.reads += 1
        return await super().get(kind, name, namespace)


class Scene:
    """One Secret, who reads it, and who was woken."""

    def __init__(self, objects: CountedObjects, namespace: str) -> None:
        self.objects, self.namespace = objects, namespace
        self.woken: asyncio.Queue[set[Key]] = asyncio.Queue()
        self.cache = ReferenceCache(objects, self.woken.put_nowait)
        self.reference = Reference("Secret", namespace, "shared")
        self.version = ""

    def use(self, key: str) -> Use:
        return Use(self.reference, key)

    def reader(self, name: str, *keys: str) -> Key:
        key = Key("releases", "", name)
        self.cache.used_by(key, frozenset(self.use(one) for one in keys))
        return key

    async def create(self, **data: str) -> None:
        manifest: dict[str, Any] = {"metadata": {"name": "shared"}, "data": _encoded(data)}
        made = await self.objects.create(SECRET, manifest, self.namespace)
        self.version = made.metadata.resource_version

    async def write(self, **data: str | None) -> None:
        where = Key(SECRET.qualified, self.namespace, "shared")
        changed = await self.objects.merge(SECRET, where, {"data": _encoded(data)})
        self.version = changed.metadata.resource_version

    def hear(self, *, gone: bool = False) -> None:
        """What the watch of names would say."""
        self.cache.changed(self.reference, self.version, gone=gone)

    async def next_woken(self) -> set[Key]:
        return await asyncio.wait_for(self.woken.get(), PATIENCE)

    async def text(self, key: str) -> str | None:
        found = await self.cache.read(self.use(key))
        return found.value.decode() if found and found.value is not None else None


def _encoded(data: dict[str, Any]) -> dict[str, str | None]:
    return {
        name: base64.b64encode(text.encode()).decode() if text is not None else None
        for name, text in data.items()
    }


@asynccontextmanager
async def scene(engine, at, namespace: str) -> AsyncIterator[Scene]:
    one = Scene(CountedObjects(engine, at), namespace)
    async with asyncio.TaskGroup() as tasks:
        work = tasks.create_task(one.cache.run())
        yield one
        work.cancel()


async def test_a_crowd_costs_one_read_per_burst(engine, at, namespace) -> None:
    async with scene(engine, at, namespace) as one:
        await one.create(a="0", unused="x")
        crowd = {one.reader(f"r{number}", "a") for number in range(CROWD)}
        assert set(await asyncio.gather(*(one.text("a") for _ in crowd))) == {"0"}
        assert one.objects.reads == 1
        versions = []
        for number in range(1, 6):
            await one.write(a=str(number))
            versions.append(one.version)
        for version in versions:
            one.cache.changed(one.reference, version, gone=False)
        assert await one.next_woken() == crowd
        assert one.woken.empty()
        assert one.objects.reads == 2
        assert set(await asyncio.gather(*(one.text("a") for _ in crowd))) == {"5"}
        assert one.objects.reads == 2
        one.hear()  # the echo of what was just read
        await one.write(unused="y")
        one.hear()
        assert await one.next_woken() == set()


async def test_keys_wake_their_own_readers(engine, at, namespace) -> None:
    async with scene(engine, at, namespace) as one:
        await one.create(a="1", b="1", c="1")
        a, both = one.reader("a", "a"), one.reader("both", "a", "b")
        for key in ("a", "b"):
            assert await one.text(key) == "1"
        for written, woken in (
            ({"c": "2"}, set()),
            ({"b": "2"}, {both}),
            ({"a": "2", "c": "3"}, {a, both}),
            ({"a": None}, {a, both}),
            ({"a": "2"}, {a, both}),
        ):
            await one.write(**written)
            one.hear()
            assert await one.next_woken() == woken, written
        one.cache.used_by(both, frozenset())
        await one.write(a="4", b="4")
        one.hear()
        assert await one.next_woken() == {a}


async def test_what_comes_and_goes_is_news(engine, at, namespace) -> None:
    async with scene(engine, at, namespace) as one:
        reader = one.reader("r", "a")
        assert await one.text("a") is None
        await one.create(a="1")
        one.hear()
        assert await one.next_woken() == {reader}
        assert await one.text("a") == "1"
        await one.objects.delete(SECRET, "shared", namespace)
        one.hear(gone=True)
        assert await one.next_woken() == {reader}
        await one.create(a="1")
        one.hear()
        assert await one.next_woken() == {reader}
        # Gone while nobody was listening: a list without it tells.
        await one.objects.delete(SECRET, "shared", namespace)
        one.cache.listed("ConfigMap", set())
        one.cache.listed("Secret", {(namespace, "other")})
        assert await one.next_woken() == {reader}
        assert await one.text("a") is None


async def test_who_reads_early_is_woken_with_the_others(engine, at, namespace) -> None:
    """Someone who read between two changes must hear of the second, also when it undoes the first."""
    async with scene(engine, at, namespace) as one:
        await one.create(a="1")
        readers = {one.reader("early", "a"), one.reader("late", "a")}
        assert await one.text("a") == "1"
        await one.write(a="2")
        one.hear()
        assert await one.text("a") == "2"
        await one.write(a="1")
        one.hear()
        assert await one.next_woken() == readers
        assert await one.text("a") == "1"


async def test_a_change_that_is_not_heard_of_yet_is_not_lost(engine, at, namespace) -> None:
    async with scene(engine, at, namespace) as one:
        await one.create(a="1", b="1")
        first = one.reader("first", "a")
        assert await one.text("a") == "1"
        await one.write(a="2", b="2")
        # A new reader of another key reads the object before its event arrives.
        one.reader("second", "b")
        assert await one.text("b") == "2"
        assert await one.next_woken() == {first}
        one.hear()
        assert await one.text("a") == "2"
        assert one.woken.empty()
