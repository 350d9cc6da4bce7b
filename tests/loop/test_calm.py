"""Details wait a moment, headlines do not, and nothing waits for ever."""

import asyncio
from datetime import timedelta

from make import HandClock

from pilothouse.api.meta import Key
from pilothouse.api.status import ReleaseStatus
from pilothouse.loop.calm import DETAILS_WAIT, Calm
from pilothouse.loop.queue import KeyedQueue

SHOP = Key("releases.helm.crossplane.io", "", "shop")
BEFORE, DETAIL, HEADLINE = ReleaseStatus(), ReleaseStatus(summary="1/2"), ReleaseStatus(retries=1)


async def test_a_detail_waits_once_however_often_it_changes() -> None:
    clock, queue = HandClock(), KeyedQueue()
    calm = Calm(queue, clock)
    assert calm.holds(SHOP, BEFORE, DETAIL)
    clock.moment += DETAILS_WAIT / 2
    assert calm.holds(SHOP, BEFORE, ReleaseStatus(summary="2/2"))
    clock.moment += DETAILS_WAIT / 2
    assert not calm.holds(SHOP, BEFORE, DETAIL)
    assert calm.holds(SHOP, BEFORE, DETAIL), "the next change begins a wait of its own"
    queue.close()


async def test_a_held_key_comes_again() -> None:
    clock, queue = HandClock(), KeyedQueue()
    assert Calm(queue, clock).holds(SHOP, BEFORE, DETAIL)
    async with asyncio.timeout(10):
        assert await queue.get() == SHOP


async def test_a_headline_takes_the_details_along() -> None:
    clock, queue = HandClock(), KeyedQueue()
    calm = Calm(queue, clock)
    assert calm.holds(SHOP, BEFORE, DETAIL)
    assert not calm.holds(SHOP, BEFORE, HEADLINE)
    clock.moment -= timedelta(hours=1)
    assert calm.holds(SHOP, BEFORE, DETAIL)
    clock.moment -= timedelta(hours=1)
    assert not calm.holds(SHOP, BEFORE, DETAIL), "a clock that was set back holds nothing"
    queue.close()
