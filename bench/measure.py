"""What processes have used, read from /proc; and progress for whoever waits."""

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_TICK = os.sysconf("SC_CLK_TCK")
_KILOBYTE = 1024
_LOOK_SECONDS = 0.25
PROGRESS_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Usage:
    """What the brain and its engine have used so far."""

    brain_cpu_s: float
    engine_cpu_s: float
    brain_peak_mb: float
    engine_peak_mb: float

    @property
    def cpu_s(self) -> float:
        """CPU-seconds together."""
        return self.brain_cpu_s + self.engine_cpu_s

    @property
    def peak_mb(self) -> float:
        """Peak memory together, as if both peaks had been at the same moment."""
        return self.brain_peak_mb + self.engine_peak_mb

    def since(self, earlier: "Usage") -> "Usage":
        """Return the CPU used since an earlier look; peaks stay as they are."""
        return Usage(
            self.brain_cpu_s - earlier.brain_cpu_s,
            self.engine_cpu_s - earlier.engine_cpu_s,
            self.brain_peak_mb,
            self.engine_peak_mb,
        )


def usage(pid: int) -> Usage:
    """Return what a controller and the processes under it have used."""
    engines = list(descendants(pid))
    return Usage(
        cpu_seconds(pid),
        sum(map(cpu_seconds, engines)),
        peak_megabytes(pid),
        sum(map(peak_megabytes, engines)),
    )


def descendants(pid: int) -> Iterator[int]:
    """Name the processes under a process."""
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = path.read_text().split()
        except OSError:
            continue  # it has just ended
        for child in map(int, children):
            yield child
            yield from descendants(child)


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of one process, in user and kernel mode."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0.0
    # The second field is the name in brackets, which may hold anything.
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def peak_megabytes(pid: int) -> float:
    """Return the most memory one process ever had."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    peak = next((line.split()[1] for line in lines if line.startswith("VmHWM")), "0")
    return int(peak) / _KILOBYTE


def until_quiet(
    cpu: Callable[[], float],
    *,
    window: float = 2.0,
    most: float = 0.05,
    patience: float = 120.0,
    what: str = "settling",
) -> float | None:
    """Wait until little CPU is used over a window; return the moment it began, None out of patience."""
    with Progress(what) as progress:
        looks: deque[tuple[float, float]] = deque()
        until = time.monotonic() + patience
        while time.monotonic() < until:
            looks.append((time.monotonic(), cpu()))
            while len(looks) > 1 and looks[-1][0] - looks[1][0] >= window:
                looks.popleft()
            (first, before), (last, after) = looks[0], looks[-1]
            if last - first >= window and after - before <= most:
                return first
            progress.tell("")
            time.sleep(_LOOK_SECONDS)
    return None


def middle(values: list[float]) -> float:
    """Return the median, the upper one of two."""
    return sorted(values)[len(values) // 2]


def say(text: str) -> None:
    """Tell the person who waits."""
    print(text, file=sys.stderr, flush=True)


class Progress:
    """Says every two seconds how far something is."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._started = self._said = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failure: object, *_: object) -> None:
        if failure is None and self._said != self._started:
            say(f"{self._what}: done, {time.monotonic() - self._started:.0f} s")

    def tell(self, how_far: str) -> None:
        """Say it, if it is time to."""
        now = time.monotonic()
        if now - self._said < PROGRESS_SECONDS:
            return
        self._said = now
        detail = f"{how_far}, " if how_far else ""
        say(f"{self._what}: {detail}{now - self._started:.0f} s")

    def sleep(self, seconds: float) -> None:
        """Wait, saying so."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, PROGRESS_SECONDS))
            self.tell(f"{max(0, until - time.monotonic()):.0f} s left")
