"""A Release is polled at the interval it asks for, and one that asks for none is not."""

import asyncio
from datetime import timedelta

import pytest
from make import HandClock, release

from pilothouse.api.meta import Key
from pilothouse.api.release import POLL_INTERVAL, Release
from pilothouse.loop.polls import Polls
from pilothouse.loop.queue import KeyedQueue

SHOP = Key("releases.helm.crossplane.io", "", "shop")


def asking(interval: str) -> Release:
    return release(annotations={POLL_INTERVAL: interval})


async def test_who_does_not_ask_is_left_in_peace() -> None:
    clock, queue = HandClock(), KeyedQueue()
    polls = Polls(queue, clock)
    assert not polls.due(SHOP, release())
    clock.moment += timedelta(days=1)
    assert not polls.due(SHOP, release())


async def test_each_interval_once_however_many_passes_there_are() -> None:
    clock, queue = HandClock(), KeyedQueue()
    polls = Polls(queue, clock)
    assert not polls.due(SHOP, asking("10m")), "a first pass looks anyway"
    for _ in range(3):
        clock.moment += timedelta(minutes=9)
        assert not polls.due(SHOP, asking("10m"))
        clock.moment += timedelta(minutes=1)
        assert polls.due(SHOP, asking("10m"))
    assert not polls.due(SHOP, asking("1m")), "a shorter one begins anew"
    clock.moment += timedelta(minutes=1)
    assert polls.due(SHOP, asking("1m"))
    polls.forget(SHOP)


async def test_the_key_is_queued_when_it_is_due() -> None:
    clock, queue = HandClock(), KeyedQueue()
    polls = Polls(queue, clock)
    # Even the shortest wait is a second: nobody can make this a busy loop.
    assert not polls.due(SHOP, asking("1ms"))
    async with asyncio.timeout(30):
        assert await queue.get() == SHOP
    clock.moment += timedelta(seconds=1)
    assert polls.due(SHOP, asking("1ms"))
    polls.forget(SHOP)


async def test_a_timer_that_ends_before_the_clock_says_so_is_believed() -> None:
    clock, queue = HandClock(), KeyedQueue()
    polls = Polls(queue, clock)
    assert not polls.due(SHOP, asking("1s"))
    async with asyncio.timeout(30):
        for moved in (timedelta(milliseconds=999), timedelta(), timedelta(seconds=-5)):
            assert await queue.get() == SHOP
            clock.moment += moved
            assert polls.due(SHOP, asking("1s"))
            assert not polls.due(SHOP, asking("1s")), "once"
            queue.done(SHOP)
    polls.forget(SHOP)


@pytest.mark.parametrize("interval", ["2562047h", "99999h"])
async def test_a_long_interval_is_a_long_one(interval: str) -> None:
    polls = Polls(KeyedQueue(), HandClock())
    assert not polls.due(SHOP, asking(interval))
    polls.forget(SHOP)


async def test_an_interval_that_is_none_is_refused_by_name() -> None:
    for none in ("soon", "99999999h", f"{'9' * 400}h"):
        with pytest.raises(ValueError, match=r"crossplane\.io/poll-interval"):
            Polls(KeyedQueue(), HandClock()).due(SHOP, asking(none))
