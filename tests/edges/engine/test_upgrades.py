"""Newer versions, asked of a real repository through the real engine: once for everybody."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest
from make import release

from pilothouse.api.meta import Key
from pilothouse.api.release import RECONCILE_REQUESTED, Release, UpgradeSpec
from pilothouse.core.access import Access
from pilothouse.core.desired import Sources, desired
from pilothouse.dev import charts
from pilothouse.engine.client import EngineClient
from pilothouse.errors import PilothouseError
from pilothouse.loop.queue import KeyedQueue
from pilothouse.loop.upgrades import Upgrades

HELLO = Path(__file__).resolve().parents[3] / "examples" / "charts" / "hello"
PATIENCE = 60.0
MANY = 50


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[charts.Repository]:
    with charts.serve(tmp_path / "repository") as served:
        for number in range(5):
            served.add(HELLO, name=f"hello{number}", version="1.2.0")
        yield served


@pytest.fixture
async def upgrades(engine: EngineClient) -> AsyncIterator[tuple[Upgrades, KeyedQueue]]:
    queue = KeyedQueue()
    async with asyncio.TaskGroup() as tasks:
        asked = Upgrades(tasks, engine, queue)
        yield asked, queue
        asked.close()


def follower(repository: charts.Repository, number: int = 0, **annotations: str) -> Release:
    asked = release(version="~1.2", annotations=annotations)
    chart = msgspec.structs.replace(
        asked.spec.for_provider.chart, repository=repository.url, name=f"hello{number % 5}"
    )
    parameters = msgspec.structs.replace(asked.spec.for_provider, chart=chart)
    upgrade = UpgradeSpec(automatic=True, interval="10s")
    spec = msgspec.structs.replace(asked.spec, for_provider=parameters, upgrade=upgrade)
    return msgspec.structs.replace(asked, spec=spec)


def key(number: int) -> Key:
    return Key("releases", "", f"r{number}")


def fetches(repository: charts.Repository) -> int:
    return sum("GET /index.yaml" in request for request in repository.requests)


async def test_one_question_for_all(repository, upgrades) -> None:
    asked, queue = upgrades

    async def settle(number: int) -> str:
        wanted = follower(repository, number)
        signers = Access(keyrings=(b"jane",) if number % 2 else ())
        with_keys = desired(wanted, Sources(access=signers))
        offer = await asked.settle(key(number), wanted, with_keys, None, None)
        assert offer is not None
        return offer.version

    assert set(await asyncio.gather(*(settle(number) for number in range(MANY)))) == {"1.2.0"}
    assert fetches(repository) == 1
    assert queue.idle()
    repository.add(HELLO, name="hello1", version="1.2.1")
    async with asyncio.timeout(PATIENCE):
        woken = [await queue.get() for _ in range(MANY // 5)]
    assert {int(one.name[1:]) % 5 for one in woken} == {1}, "only those whose answer is another"
    assert queue._ready == type(queue._ready)()
    assert fetches(repository) == 2
    assert await settle(1) == "1.2.1"
    assert await settle(2) == "1.2.0"
    assert fetches(repository) == 2
    assert not any(".tgz" in request for request in repository.requests), "nothing is downloaded"


async def test_asked_for_now(repository, upgrades) -> None:
    asked, _ = upgrades
    wanted = follower(repository)
    assert (await asked.settle(key(0), wanted, desired(wanted), None, None)).version == "1.2.0"
    repository.add(HELLO, name="hello0", version="1.2.9")
    assert (await asked.settle(key(0), wanted, desired(wanted), None, None)).version == "1.2.0"
    now = follower(repository, **{RECONCILE_REQUESTED: "now"})
    assert (await asked.settle(key(0), now, desired(now), None, None)).version == "1.2.9"


async def test_no_such_chart(repository, upgrades) -> None:
    asked, _ = upgrades
    wanted = follower(repository)
    chart = msgspec.structs.replace(wanted.spec.for_provider.chart, name="nothing")
    parameters = msgspec.structs.replace(wanted.spec.for_provider, chart=chart)
    spec = msgspec.structs.replace(wanted.spec, for_provider=parameters)
    wanted = msgspec.structs.replace(wanted, spec=spec)
    with pytest.raises(PilothouseError, match='no chart "nothing"'):
        await asked.settle(key(0), wanted, desired(wanted), None, None)
    asked.forget(key(0))
    assert not asked._repositories
