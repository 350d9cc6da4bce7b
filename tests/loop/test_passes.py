"""A pass that takes long holds up no other, and none outlives the loop."""

import asyncio
from datetime import timedelta

from pilothouse.loop.passes import Passes


async def test_a_slow_pass_goes_on_beside_the_next() -> None:
    answer, ended = asyncio.Event(), []

    async def slow() -> None:
        await answer.wait()
        ended.append("slow")

    async def quick() -> None:
        ended.append("quick")

    async with asyncio.TaskGroup() as tasks:
        passes = Passes(tasks, timedelta(milliseconds=10))
        await passes.run(slow(), "slow")
        await passes.run(quick(), "quick")
        assert ended == ["quick"]
        answer.set()
    assert ended == ["quick", "slow"]


async def test_a_quick_pass_is_waited_for() -> None:
    ended = []

    async def quick() -> None:
        await asyncio.sleep(0)
        ended.append("quick")

    async with asyncio.TaskGroup() as tasks:
        await Passes(tasks, timedelta(seconds=60)).run(quick(), "quick")
        assert ended == ["quick"]


async def test_the_end_of_the_loop_ends_every_pass() -> None:
    cut = []

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cut.append("cut")
            raise

    async with asyncio.TaskGroup() as tasks:
        passes = Passes(tasks, timedelta(milliseconds=1))
        await passes.run(endless(), "one")
        await passes.run(endless(), "two")
        await passes.stop()
    assert cut == ["cut", "cut"]
