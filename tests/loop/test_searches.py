"""A search for drift, and what the eyes see while it runs."""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from make import HandClock, objects, record, release

from pilothouse.api.meta import Key
from pilothouse.core.desired import ReleaseName, desired
from pilothouse.core.observed import ObjectRef, Observed, Suspect
from pilothouse.errors import PilothouseError, Unavailable
from pilothouse.faults import FaultKind
from pilothouse.loop.queue import KeyedQueue
from pilothouse.loop.repairs import Repairs
from pilothouse.ports import Comparison

SHOP = Key("releases.helm.crossplane.io", "", "shop")
WANTED = desired(release())
EDITED = Suspect(ObjectRef("v1", "ConfigMap", "ns", "web"), altered=1, sight=1)


@dataclass
class Cluster:
    """One that compares when it is let, and finds everything right; or says why it does not."""

    fault: PilothouseError | None = None
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    asked: asyncio.Queue[tuple[Suspect, ...]] = field(default_factory=asyncio.Queue)
    id: str = "edge"

    async def compare(
        self, _: ReleaseName, __: int, suspects: tuple[Suspect, ...]
    ) -> list[Comparison]:
        self.asked.put_nowait(suspects)
        await self.answers.wait()
        if self.fault and not suspects:
            raise self.fault
        return [Comparison(one.ref) for one in suspects]


def seen(*suspects: Suspect) -> Observed:
    newest = record(1, "deployed", WANTED.digest)
    return Observed(record=newest, objects=replace(objects(1), suspects=suspects))


@pytest.mark.parametrize("fault", [None, Unavailable("away", FaultKind.UNREACHABLE)])
async def test_what_is_seen_during_a_search_is_compared_after_it(
    fault: PilothouseError | None,
) -> None:
    cluster, queue = Cluster(fault), KeyedQueue()
    nobody: Any = None
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        repairs = Repairs(tasks, queue, HandClock(), nobody, nobody, nobody, nobody)
        look = lambda observed, **how: repairs.look(SHOP, cluster, WANTED, observed, **how)  # noqa: E731
        look(seen(), everything=True)
        assert await cluster.asked.get() == ()
        look(seen(EDITED))
        assert cluster.asked.empty(), "one at a time"
        cluster.answers.set()
        assert await queue.get() == SHOP
        look(seen(EDITED))
        assert await cluster.asked.get() == (EDITED,)


@pytest.mark.parametrize("in_time", [True, False])
async def test_what_is_known_of_one_place_is_not_known_of_another(*, in_time: bool) -> None:
    edge, other, queue = Cluster(), Cluster(id="other"), KeyedQueue()
    nobody: Any = None
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        repairs = Repairs(tasks, queue, HandClock(), nobody, nobody, nobody, nobody)
        look = lambda cluster: repairs.look(SHOP, cluster, WANTED, seen(EDITED))  # noqa: E731
        look(edge)
        assert await edge.asked.get() == (EDITED,)
        if in_time:
            edge.answers.set()
            assert await queue.get() == SHOP
            look(edge)
            assert edge.asked.empty(), "it is known"
        repairs.moved(SHOP)
        other.answers.set()
        look(other)
        if not in_time:
            assert await queue.get() == SHOP
            look(other)
        assert await other.asked.get() == (EDITED,)
