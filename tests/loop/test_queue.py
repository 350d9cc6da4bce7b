"""A key is with one worker at a time, and asking twice is asking once."""

import asyncio
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from pilothouse.api.meta import Key
from pilothouse.loop.queue import KeyedQueue

KEYS = [Key("releases", "", name) for name in "abc"]


async def test_asking_twice_is_asking_once() -> None:
    queue = KeyedQueue()
    queue.add(KEYS[0])
    queue.add(KEYS[0])
    assert await queue.get() == KEYS[0]
    queue.done(KEYS[0])
    assert queue.idle()


async def test_a_busy_key_comes_again() -> None:
    queue = KeyedQueue()
    queue.add(KEYS[0])
    key = await queue.get()
    queue.add(key)
    queue.add(key)
    assert not queue._ready, "not while a worker has it"
    queue.done(key)
    assert await queue.get() == key
    queue.done(key)
    assert queue.idle()


async def test_the_newest_wish_for_later_counts() -> None:
    queue = KeyedQueue()
    queue.add_after(KEYS[0], timedelta(hours=1))
    queue.add_after(KEYS[0], timedelta(milliseconds=1))
    async with asyncio.timeout(5):
        assert await queue.get() == KEYS[0]


@given(
    st.lists(st.tuples(st.sampled_from(["add", "take", "done"]), st.integers(0, 2)), max_size=40)
)
def test_no_wish_is_lost_and_no_key_is_shared(steps) -> None:
    async def run() -> None:
        queue, held, wished = KeyedQueue(), set(), set()
        for step, number in steps:
            key = KEYS[number]
            if step == "add":
                queue.add(key)
                wished.add(key)
            elif step == "take" and queue._ready:
                taken = await queue.get()
                assert taken not in held
                held.add(taken)
                wished.discard(taken)
            elif step == "done" and key in held:
                held.discard(key)
                queue.done(key)
        for key in list(held):
            queue.done(key)
        left = set()
        while queue._ready:
            left.add(await queue.get())
        assert left == wished

    asyncio.run(run())
