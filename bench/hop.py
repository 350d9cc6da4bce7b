"""What the way through the engine costs: a status patch, and a watch event, in CPU of brain and engine.

Both are of Releases as the controller has them, spec, status and managed fields, through the controller's own writer
and cache. The bare client library sends the same patches in turn. Run as a program of its own, so that nothing else is
in its CPU time. Prints one JSON line.

A CPU second is not the same work at all times on a machine that others use too, so each is measured several times, and
the one in the middle is told.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from hop_releases import COUNT, PATIENCE_SECONDS, make_releases, release_name, status_at
from kube import MERGE, Kube, in_parallel
from measure import cpu_seconds
from releases import RELEASES

from pilothouse import telemetry
from pilothouse.api.kinds import RELEASE
from pilothouse.api.meta import Key
from pilothouse.api.release import Release
from pilothouse.api.status import ReleaseStatus
from pilothouse.app import credentials_of
from pilothouse.cli.service import serve
from pilothouse.clusters.cache import Cache
from pilothouse.clusters.objects import Objects
from pilothouse.clusters.writer import ReleaseWriter
from pilothouse.core.merge_patch import difference
from pilothouse.engine.client import EngineClient
from pilothouse.engine.process import EngineProcess, locate

WARM_UP = 5
WINDOWS = 5


@dataclass(slots=True)
class Eyes:
    """Counts the events that come out of the cache, and knows when the last one has."""

    events: int = 0
    turns: dict[str, int] = field(default_factory=dict)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def changed(self, key: Key, value: msgspec.Struct | None) -> None:
        """Take in one event."""
        self.events += 1
        if isinstance(value, Release):
            self.turns[key.name] = value.status.at_provider.revision
        self.news.set()

    async def until_all(self, turn: int) -> None:
        """Wait until every Release has come to a turn."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not all(self.turns.get(release_name(number)) == turn for number in range(COUNT)):
                self.news.clear()
                await self.news.wait()


@dataclass(frozen=True, slots=True)
class Asked:
    """What to measure."""

    kubeconfig: Path
    turns: int
    """In each window."""
    floor: Path | None
    """The program that sends patches without Pilothouse."""


async def measure(asked: Asked) -> dict[str, float]:
    """Measure status patches that nobody watches, then events of what another process patches."""
    make_releases(Kube(asked.kubeconfig))
    with tempfile.TemporaryDirectory(prefix="pilothouse-hop-") as place:
        async with EngineProcess(locate(), Path(place)).running() as process:
            engine = EngineClient(process)
            engine_pid = (await process.current()).pid
            patches, floors = await _patch_windows(asked, engine, engine_pid)
            events = await _event_windows(asked, engine, engine_pid)
    patch, event = sorted(patches, key=sum)[WINDOWS // 2], sorted(events, key=sum)[WINDOWS // 2]
    return {
        "patches": asked.turns * COUNT * WINDOWS,
        "patch_brain_ms": patch[0],
        "patch_engine_ms": patch[1],
        "patch_ms": sum(patch),
        "patch_least_ms": min(map(sum, patches)),
        "patch_most_ms": max(map(sum, patches)),
        "event_brain_ms": event[0],
        "event_engine_ms": event[1],
        "event_ms": sum(event),
        "event_least_ms": min(map(sum, events)),
        "event_most_ms": max(map(sum, events)),
        **({"patch_floor_ms": sorted(floors)[WINDOWS // 2]} if floors else {}),
    }


async def _patch_windows(
    asked: Asked, engine: EngineClient, engine_pid: int
) -> tuple[list[tuple[float, float]], list[float]]:
    """Return what each of ours costs in brain and engine, and each of the bare client's, by window."""
    objects = Objects(engine, credentials_of(asked.kubeconfig, ""))
    writer = ReleaseWriter(objects, Cache(RELEASE), "hop")
    await _patch_through(writer, objects, [status_at(turn) for turn in range(1, WARM_UP)])
    ours, bare = [], []
    for window in range(WINDOWS):
        first = WARM_UP + window * asked.turns
        turns = range(first, first + asked.turns)
        statuses = [status_at(turn) for turn in turns]
        cost = _Cost(engine_pid)
        await _patch_through(writer, objects, statuses)
        ours.append(cost.each(asked.turns * COUNT))
        if asked.floor:
            bare.append(await asyncio.to_thread(_patch_bare, asked.floor, asked.kubeconfig, turns))
    return ours, bare


def _patch_bare(program: Path, kubeconfig: Path, turns: range) -> float:
    """Send the same patches with the client library alone; return milliseconds of CPU for each."""
    _as_usual()
    patches = [{"status": difference(status_at(turn - 1), status_at(turn))} for turn in turns]
    with tempfile.NamedTemporaryFile(prefix="pilothouse-hop-") as file:
        file.write(b"\n".join(map(msgspec.json.encode, patches)))
        file.flush()
        paths = [f"{RELEASES}/{release_name(number)}/status" for number in range(COUNT)]
        command = [program, "--kubeconfig", kubeconfig, "--patches", file.name, *paths]
        ran = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    found = json.loads(ran.stdout)
    return 1000 * float(found["cpu_s"]) / int(found["patches"])


async def _event_windows(
    asked: Asked, engine: EngineClient, engine_pid: int
) -> list[tuple[float, float]]:
    cache, eyes, known = Cache(RELEASE), Eyes(), asyncio.Event()
    at = credentials_of(asked.kubeconfig, "")
    costs = []
    async with asyncio.TaskGroup() as tasks:
        follow = cache.follow(engine, at, eyes.changed, synced=known.set)
        following = tasks.create_task(follow, name="watch releases")
        await known.wait()
        await _patch_beside(asked.kubeconfig, eyes, range(-WARM_UP, 0))
        for window in range(WINDOWS):
            first = 10_000 + window * asked.turns
            cost, before = _Cost(engine_pid), eyes.events
            await _patch_beside(asked.kubeconfig, eyes, range(first, first + asked.turns))
            costs.append(cost.each(eyes.events - before))
        following.cancel()
    return costs


class _Cost:
    """CPU of brain and engine from here on."""

    def __init__(self, engine: int) -> None:
        self._engine = engine
        self._before = time.process_time(), cpu_seconds(engine)

    def each(self, count: int) -> tuple[float, float]:
        """Return milliseconds for each of so many, of brain and engine."""
        brain = time.process_time() - self._before[0]
        engine = cpu_seconds(self._engine) - self._before[1]
        return 1000 * brain / count, 1000 * engine / count


async def _patch_through(
    writer: ReleaseWriter, objects: Objects, statuses: Sequence[ReleaseStatus]
) -> None:
    async def one(number: int) -> None:
        release = await objects.get(RELEASE, release_name(number))
        for status in statuses:
            release = await writer.status(release, status)

    async with asyncio.TaskGroup() as tasks:
        for number in range(COUNT):
            tasks.create_task(one(number), name=f"patch {number}")


async def _patch_beside(kubeconfig: Path, eyes: Eyes, turns: range) -> None:
    """Let another process patch: this one only sees the events."""
    child = multiprocessing.get_context("spawn").Process(
        target=patch_directly, args=(kubeconfig, turns), name="patch directly", daemon=True
    )
    child.start()
    try:
        await eyes.until_all(turns[-1])
    finally:
        child.terminate()
        child.join()


def patch_directly(kubeconfig: Path, turns: range) -> None:
    """Patch without the engine."""
    _as_usual()
    kube = Kube(kubeconfig)

    def one(number: int) -> None:
        for turn in turns:
            patch: dict[str, Any] = {"status": msgspec.to_builtins(status_at(turn))}
            kube.request("PATCH", f"{RELEASES}/{release_name(number)}/status", patch, content=MERGE)

    in_parallel(one, range(COUNT))


def _as_usual() -> None:
    """Be no batch process as the controller is: this thread, and what it starts."""
    if os.sched_getscheduler(0) == os.SCHED_BATCH:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--turns", type=int, default=50, help="patches of each, in each window")
    parser.add_argument("--floor", type=Path, help="the program that patches without Pilothouse")
    given = parser.parse_args()
    asked = Asked(given.kubeconfig, given.turns, given.floor)
    telemetry.configure()
    print(json.dumps(serve(measure(asked))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
