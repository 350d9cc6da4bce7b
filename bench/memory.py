"""Memory over time: sampled while something runs, and compared fairly across restarts.

What is read is the proportional set size: what a process has to itself, and its share of what it shares.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Self

from measure import descendants

SAMPLE_SECONDS = 1.0
_KILOBYTE = 1024
# A life is judged by its second and its last stretch, which must not be the same.
_STRETCHES_OF_A_LIFE = 3


@dataclass(frozen=True, slots=True)
class Sample:
    """What both processes had at one moment, in seconds since the first."""

    at: float
    brain: int
    brain_mb: float
    engine: int
    engine_mb: float


class Sampler:
    """Reads the memory of a controller and its engine once a second; the process may be another each time."""

    def __init__(self, controller: Callable[[], int | None]) -> None:
        self._controller = controller
        self._samples: list[Sample] = []
        self._started = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memory", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def samples(self) -> list[Sample]:
        """What was read so far."""
        return list(self._samples)

    def _run(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            brain = self._controller()
            engine = next(descendants(brain), None) if brain else None
            if brain is None or engine is None:
                continue  # one of them is being replaced
            brain_mb, engine_mb = proportional_megabytes(brain), proportional_megabytes(engine)
            if brain_mb and engine_mb:
                at = time.monotonic() - self._started
                self._samples.append(Sample(at, brain, brain_mb, engine, engine_mb))


def proportional_megabytes(pid: int) -> float:
    """Return a process's proportional set size; 0 when it is gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    held = next((line.split()[1] for line in lines if line.startswith("Pss:")), "0")
    return int(held) / _KILOBYTE


def growth(samples: Sequence[Sample], seconds: float) -> dict[str, Any]:
    """Compare the last stretch with the second one, of the whole run and of the last lives.

    A process that was started anew hides what its predecessor had come to, so each is also compared with
    itself: the second stretch of its own life with its last. None where nothing can be said.
    """
    stretch = seconds / 10
    end = samples[-1].at if samples else 0.0
    brain = _life([(one.at, one.brain, one.brain_mb) for one in samples], stretch)
    engine = _life([(one.at, one.engine, one.engine_mb) for one in samples], stretch)
    totals = [(one.at, one.brain_mb + one.engine_mb) for one in samples]
    return {
        "stretch_s": stretch,
        "lives": {
            "brain": len({one.brain for one in samples}),
            "engine": len({one.engine for one in samples}),
        },
        "run": _compare(_mean(totals, stretch, 2 * stretch), _mean(totals, end - stretch, end)),
        "brain": brain,
        "engine": engine,
        "last_lives": _together(brain, engine),
    }


def _life(readings: list[tuple[float, int, float]], stretch: float) -> dict[str, Any]:
    """Compare within the life of the process that was there last."""
    last = readings[-1][1] if readings else 0
    own = [(at, held) for at, pid, held in readings if pid == last]
    if not own or own[-1][0] - own[0][0] < _STRETCHES_OF_A_LIFE * stretch:
        return _compare(None, None)
    born, end = own[0][0], own[-1][0]
    return _compare(_mean(own, born + stretch, born + 2 * stretch), _mean(own, end - stretch, end))


def _together(brain: dict[str, Any], engine: dict[str, Any]) -> dict[str, Any]:
    if brain["ratio"] is None or engine["ratio"] is None:
        return _compare(None, None)
    return _compare(brain["second_mb"] + engine["second_mb"], brain["last_mb"] + engine["last_mb"])


def _compare(second: float | None, last: float | None) -> dict[str, Any]:
    ratio = last / second if second and last else None
    return {"second_mb": second, "last_mb": last, "ratio": ratio}


def _mean(readings: Sequence[tuple[float, float]], begin: float, end: float) -> float | None:
    within = [held for at, held in readings if begin <= at <= end]
    return fmean(within) if within else None
