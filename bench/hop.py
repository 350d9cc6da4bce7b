"""What the way through the engine costs: a patch, and a watch event, in CPU of brain and engine.

Run as a program of its own, so that nothing else is in its CPU time. Prints one JSON line.
"""

import argparse
import asyncio
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from kube import MERGE, Kube, in_parallel
from measure import cpu_seconds

from pilothouse import telemetry
from pilothouse.api.kinds import Kind
from pilothouse.api.meta import Key, Object
from pilothouse.app import credentials_of
from pilothouse.clusters.cache import Cache
from pilothouse.clusters.objects import Objects
from pilothouse.engine.client import EngineClient
from pilothouse.engine.process import EngineProcess, locate

CONFIG_MAP = Kind(
    group="", version="v1", kind="ConfigMap", plural="configmaps", struct=Object, namespaced=True
)
NAMESPACE = "default"
OBJECTS = 20
MARK = "bench.pilothouse/turn"
_PATIENCE_SECONDS = 120.0


@dataclass(slots=True)
class Eyes:
    """Counts the events that come out of the cache, and knows when the last one has."""

    events: int = 0
    marks: dict[str, str] = field(default_factory=dict)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def changed(self, key: Key, value: msgspec.Struct | None) -> None:
        """Take in one event."""
        self.events += 1
        if isinstance(value, Object):
            self.marks[key.name] = value.metadata.annotations.get(MARK, "")
        self.news.set()

    async def until_all(self, mark: str) -> None:
        """Wait until every object of ours carries a mark."""
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while not all(self.marks.get(_name(number)) == mark for number in range(OBJECTS)):
                self.news.clear()
                await self.news.wait()


async def measure(kubeconfig: Path, patches: int) -> dict[str, float]:
    """Measure pairs of a patch and its event, then events alone."""
    at = credentials_of(kubeconfig, "")
    with tempfile.TemporaryDirectory(prefix="pilothouse-hop-") as cache:
        async with EngineProcess(locate(), Path(cache)).running() as process:
            engine = EngineClient(process)
            living = await process.current()
            objects, eyes, known = Objects(engine, at), Eyes(), asyncio.Event()
            async with asyncio.TaskGroup() as tasks:
                follow = Cache(CONFIG_MAP).follow(engine, at, eyes.changed, synced=known.set)
                following = tasks.create_task(follow, name="watch config maps")
                await known.wait()
                for number in range(OBJECTS):
                    manifest = {"metadata": {"name": _name(number)}}
                    await objects.create(CONFIG_MAP, manifest, NAMESPACE)
                turns = patches // OBJECTS
                await _patch_through(objects, eyes, range(5))  # both sides warm up
                cost = _Cost(living.pid, eyes)
                await _patch_through(objects, eyes, range(5, turns + 5))
                pair, pairs = cost.each(), cost.events()
                cost = _Cost(living.pid, eyes)
                await _patch_beside(kubeconfig, eyes, turns)
                event, events = cost.each(), cost.events()
                following.cancel()
    return {
        "pairs": pairs,
        "pair_brain_ms": pair[0],
        "pair_engine_ms": pair[1],
        "events": events,
        "event_brain_ms": event[0],
        "event_engine_ms": event[1],
        "event_ms": sum(event),
        "patch_ms": sum(pair) - sum(event),
    }


class _Cost:
    """CPU of brain and engine from here on."""

    def __init__(self, engine: int, eyes: Eyes) -> None:
        self._engine, self._eyes = engine, eyes
        self._events = eyes.events
        self._before = time.process_time(), cpu_seconds(engine)

    def each(self) -> tuple[float, float]:
        """Return milliseconds per event, of brain and engine."""
        brain = time.process_time() - self._before[0]
        engine = cpu_seconds(self._engine) - self._before[1]
        return 1000 * brain / self.events(), 1000 * engine / self.events()

    def events(self) -> int:
        """Return how many events there were."""
        return self._eyes.events - self._events


async def _patch_through(objects: Objects, eyes: Eyes, turns: range) -> None:
    async def one(number: int) -> None:
        key = Key(CONFIG_MAP.qualified, NAMESPACE, _name(number))
        for turn in turns:
            await objects.merge(CONFIG_MAP, key, _patch(f"through {turn}"))

    async with asyncio.TaskGroup() as tasks:
        for number in range(OBJECTS):
            tasks.create_task(one(number), name=f"patch {number}")
    await eyes.until_all(f"through {turns[-1]}")


async def _patch_beside(kubeconfig: Path, eyes: Eyes, turns: int) -> None:
    """Let another process patch: this one only sees the events."""
    child = multiprocessing.get_context("spawn").Process(
        target=patch_directly, args=(kubeconfig, turns), name="patch directly", daemon=True
    )
    child.start()
    try:
        await eyes.until_all(f"beside {turns - 1}")
    finally:
        child.terminate()
        child.join()


def patch_directly(kubeconfig: Path, turns: int) -> None:
    """Patch without the engine."""
    kube = Kube(kubeconfig)

    def one(number: int) -> None:
        path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{_name(number)}"
        for turn in range(turns):
            kube.request("PATCH", path, _patch(f"beside {turn}"), content=MERGE)

    in_parallel(one, range(OBJECTS))


def _patch(mark: str) -> dict[str, object]:
    return {"metadata": {"annotations": {MARK: mark}}}


def _name(number: int) -> str:
    return f"hop-{number}"


def _uvloop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return the loop that the controller would have."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--patches", type=int, default=2000)
    asked = parser.parse_args()
    telemetry.configure()
    with asyncio.Runner(loop_factory=_uvloop()) as runner:
        print(json.dumps(runner.run(measure(asked.kubeconfig, asked.patches))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
