"""What nobody wakes is looked at all the same."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from typing import Any

from pilothouse.api.kinds import RELEASE
from pilothouse.api.meta import Key
from pilothouse.loop.controller import Controller
from pilothouse.loop.queue import KeyedQueue
from pilothouse.loop.safety_net import look_after_all
from pilothouse.ports import LoopSettings

EVERY = timedelta(milliseconds=50)


def named(name: str) -> Key:
    return Key(RELEASE.qualified, "", name)


@contextlib.asynccontextmanager
async def looked_after(releases: dict[Key, int], every: timedelta) -> AsyncIterator[KeyedQueue]:
    queue = KeyedQueue()
    net = asyncio.create_task(look_after_all(releases, queue, every))
    try:
        async with asyncio.timeout(30):
            yield queue
    finally:
        net.cancel()
        await asyncio.wait({net})


async def taken(queue: KeyedQueue) -> Key:
    key = await queue.get()
    queue.done(key)
    return key


async def test_each_comes_once_in_every_round() -> None:
    keys = [named(str(number)) for number in range(5)]
    async with looked_after(dict.fromkeys(keys, 0), EVERY) as queue:
        for _ in range(3):
            assert [await taken(queue) for _ in keys] == keys


async def test_one_that_comes_later_is_looked_after_from_the_next_round_on() -> None:
    releases = {named("old"): 0}
    async with looked_after(releases, EVERY) as queue:
        await taken(queue)
        releases[named("new")] = 0
        seen = [await taken(queue) for _ in range(4)]
        assert named("new") in seen


async def test_the_first_of_all_may_come_late() -> None:
    releases: dict[Key, int] = {}
    async with looked_after(releases, EVERY) as queue:
        await asyncio.sleep(0)
        releases[named("first")] = 0
        assert await taken(queue) == named("first")


async def test_they_are_spread_over_the_time() -> None:
    keys = [named(str(number)) for number in range(10)]
    every = timedelta(seconds=1)
    async with looked_after(dict.fromkeys(keys, 0), every) as queue:
        began = asyncio.get_running_loop().time()
        for number in range(len(keys)):
            await taken(queue)
            # Never earlier than its share of the time; a busy machine may be late.
            share = every.total_seconds() * (number + 1) / len(keys)
            assert asyncio.get_running_loop().time() - began >= share - 0.01


class Nobody:
    """A neighbour of the loop that is told things and answers nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_told, **_more: None


class Forgotten(Nobody):
    """Releases of which no event ever comes; the one that is named has gone meanwhile."""

    def __init__(self) -> None:
        self.asked = asyncio.Queue[Key]()

    def __iter__(self) -> Iterator[Key]:
        return iter([named("forgotten")])

    def get(self, key: Key) -> None:
        self.asked.put_nowait(key)


async def test_the_controller_looks_after_its_releases() -> None:
    nobody: Any = Nobody()
    forgotten: Any = Forgotten()
    controller = Controller(
        releases=forgotten,
        targets=nobody,
        references=nobody,
        composer=nobody,
        finder=nobody,
        instances=nobody,
        writer=nobody,
        archive=nobody,
        clock=nobody,
        say=nobody.say,
        meter=nobody,
        settings=LoopSettings(instance="one", look_again=EVERY),
    )
    controller.releases_known()
    stop = asyncio.Event()
    running = asyncio.create_task(controller.run(stop))
    async with asyncio.timeout(30):
        for _ in range(3):
            assert await forgotten.asked.get() == named("forgotten")
        stop.set()
        await running
