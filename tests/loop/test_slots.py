"""Places for work: a cluster that never answers cannot keep the others from them."""

import asyncio
import gc
from contextlib import AsyncExitStack
from datetime import timedelta

import pytest

from pilothouse.loop.slots import Slots

LONG = timedelta(hours=1)
BRIEF = timedelta(milliseconds=10)


async def occupy(stack: AsyncExitStack, slots: Slots, cluster: str, count: int) -> int:
    """Take as many places as there are, up to `count`."""
    for number in range(count):
        try:
            async with asyncio.timeout(0.05):
                await stack.enter_async_context(slots.on(cluster))
        except TimeoutError:
            return number
    return count


async def test_one_cluster_never_has_them_all() -> None:
    slots = Slots(8, LONG)
    async with AsyncExitStack() as stack:
        assert await occupy(stack, slots, "silent", 20) == 6
        assert await occupy(stack, slots, "busy", 20) == 2
    async with AsyncExitStack() as stack:
        assert await occupy(stack, slots, "busy", 20) == 6


async def test_many_silent_clusters_give_way() -> None:
    slots = Slots(4, BRIEF)
    async with AsyncExitStack() as stack:
        for number in range(20):
            async with asyncio.timeout(10):
                for _ in range(3):
                    await stack.enter_async_context(slots.on(f"silent {number}"))
        async with asyncio.timeout(10), slots.on("alive"):
            pass
        # Each of them goes on working, so none gets more than its share.
        assert await occupy(stack, slots, "silent 0", 1) == 0
    async with AsyncExitStack() as stack:
        assert await occupy(stack, slots, "silent 0", 4) >= 3


async def test_a_place_is_given_back_once() -> None:
    slots = Slots(2, LONG)
    async with slots.on("one") as slot:
        slot.release()
        slot.release()
    async with AsyncExitStack() as stack:
        assert await occupy(stack, slots, "one", 5) == 1
        assert await occupy(stack, slots, "two", 5) == 1
        assert await occupy(stack, slots, "three", 5) == 0


async def test_who_gives_up_waiting_leaves_nothing_behind() -> None:
    slots = Slots(2, LONG)
    async with AsyncExitStack() as stack:
        await occupy(stack, slots, "one", 1)
        await occupy(stack, slots, "two", 1)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01), slots.on("three"):
                pass
    async with AsyncExitStack() as stack:
        assert await occupy(stack, slots, "three", 1) == 1


async def test_a_cluster_that_nobody_works_on_costs_nothing() -> None:
    slots = Slots(2, LONG)
    for number in range(100):
        async with slots.on(f"cluster {number}"):
            pass
    gc.collect()
    assert len(slots._shares) <= 1
