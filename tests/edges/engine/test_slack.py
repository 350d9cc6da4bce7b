"""What is started with late timers has them, and who starts it has not."""

import asyncio
import ctypes
from pathlib import Path

from stand_in import GET, stand_in

from pilothouse.engine.process import EngineProcess
from pilothouse.engine.slack import LATE_NANOSECONDS, late_timers


def timer_slack() -> int:
    return int(ctypes.CDLL(None).prctl(GET, 0, 0, 0, 0))


async def test_the_engine_has_late_timers_and_the_brain_has_not(tmp_path: Path) -> None:
    before = timer_slack()
    assert before != LATE_NANOSECONDS
    async with (
        EngineProcess(stand_in(tmp_path), tmp_path).running() as process,
        asyncio.timeout(60),
    ):
        assert (await process.current()).version == str(LATE_NANOSECONDS)
    assert timer_slack() == before


def test_whoever_starts_two_things_at_once_is_left_as_it_was() -> None:
    before, one, other = timer_slack(), late_timers(), late_timers()
    one.__enter__()
    other.__enter__()
    assert timer_slack() == LATE_NANOSECONDS
    one.__exit__(None, None, None)
    other.__exit__(None, None, None)
    assert timer_slack() == before
