"""How the loop is run: its clock, its voice, its dimensions. `app.py` decides."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from pilothouse.core.desired import NO_DEFAULTS, Defaults

Say = Callable[[str], None]


class Clock(Protocol):
    """Tells the time."""

    def now(self) -> datetime:
        """Return the current moment, aware, in UTC."""
        ...


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """How the loop is dimensioned."""

    instance: str
    namespace: str = "default"
    workers: int = 16
    actions_at_once: int = 20
    defaults: Defaults = NO_DEFAULTS
    grace: timedelta = timedelta(seconds=20)
    # How long a cluster must be certainly gone before a deletion lets go; None: for ever.
    abandon_after: timedelta | None = timedelta(minutes=10)
    # Why nothing may be written; empty: everything may.
    hands_off: str = ""
    # How long a pass may hold up the next one; then it goes on beside it.
    patience: timedelta = timedelta(milliseconds=500)
    after_bug: timedelta = timedelta(seconds=10)
    # How long a round over all Releases takes in which each has a pass, although nothing was heard of it.
    look_again: timedelta = timedelta(minutes=10)
