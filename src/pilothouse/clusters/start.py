"""Begin only when the management cluster answers: who starts together with it must not give up before it.

What waiting cannot mend (a kubeconfig that cannot be used, credentials that are refused) ends the start at once.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import structlog

from pilothouse.api.kinds import CRD, RELEASE
from pilothouse.core.retry import doubled
from pilothouse.engine.client import EngineClient
from pilothouse.errors import Missing, NotPermitted, PilothouseError, Unavailable
from pilothouse.faults import FaultKind
from pilothouse.ports import Credentials

log = structlog.get_logger(__name__)

T = TypeVar("T")


class Stopped(Exception):
    """The controller is to end before it has begun."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """How patiently the management cluster is asked, in seconds."""

    first_pause: float = 0.25
    longest_pause: float = 10.0
    answer_within: float = 30.0
    first_word: float = 2.0
    between_words: float = 30.0


class Patience:
    """Asks the management cluster until it answers, or until the controller is to end."""

    def __init__(self, stop: asyncio.Event, intervals: Intervals | None = None) -> None:
        self._stop = stop
        self._intervals = intervals or Intervals()
        self._why = ""

    async def ask(self, what: str, question: Callable[[], Awaitable[T]]) -> T:
        """Return the answer to a question that may be asked again; raises Stopped, or what waiting cannot mend."""
        self._why = "no answer yet"
        asking = asyncio.ensure_future(self._answer(question))
        stopping = asyncio.ensure_future(self._stop.wait())
        words = asyncio.ensure_future(self._speak(what))
        try:
            await asyncio.wait({asking, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                raise Stopped
            return asking.result()
        finally:
            for task in (asking, stopping, words):
                task.cancel()
            await asyncio.wait({asking, stopping, words})

    async def _answer(self, question: Callable[[], Awaitable[T]]) -> T:
        pause = self._intervals.first_pause
        while True:
            try:
                async with asyncio.timeout(self._intervals.answer_within):
                    return await question()
            except TimeoutError:
                self._why = f"no answer within {self._intervals.answer_within:.0f} s"
            except PilothouseError as error:
                if not _passes(error):
                    raise
                self._why = error.message
            await asyncio.sleep(pause)
            pause = doubled(pause, 1, self._intervals.longest_pause)

    async def _speak(self, what: str) -> None:
        """Say what is waited for, and why, where it takes so long that somebody may wonder."""
        await asyncio.sleep(self._intervals.first_word)
        while True:
            log.warning("waiting for the management cluster", to=what, error=self._why)
            await asyncio.sleep(self._intervals.between_words)


def _passes(error: PilothouseError) -> bool:
    """Whether waiting may mend it; what the API server calls an internal error is mostly its storage's."""
    return isinstance(error, Unavailable) or (
        type(error) is PilothouseError and error.kind is FaultKind.UNKNOWN
    )


async def reach(engine: EngineClient, at: Credentials) -> None:
    """Ask the management cluster for anything: whoever is known to it and gets an answer may begin."""
    try:
        await engine.get(at, CRD, RELEASE.qualified)
    except Missing:
        return
    except NotPermitted as error:
        if error.kind is FaultKind.UNAUTHORIZED:
            msg = f"the management cluster does not take these credentials: {error.message}"
            raise NotPermitted(msg, error.kind) from None
        await _may_read_releases(engine, at)


async def _may_read_releases(engine: EngineClient, at: Credentials) -> None:
    """Tell who may not read CRDs, and can go on, from who may read nothing: so it is until roles are loaded."""
    try:
        await engine.get(at, RELEASE, "any")
    except Missing:
        return
    except NotPermitted as error:
        msg = f"may not read Releases (yet): {error.message}"
        raise Unavailable(msg, FaultKind.UNREACHABLE) from None
