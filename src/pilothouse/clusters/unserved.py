"""Say on namespaced Releases that this version does not reconcile them yet."""

import asyncio
from contextlib import aclosing, suppress
from datetime import UTC, datetime

import msgspec

from pilothouse.api.kinds import NAMESPACED_RELEASE
from pilothouse.api.meta import Key
from pilothouse.api.release import Release
from pilothouse.clusters.cache import Cache
from pilothouse.clusters.objects import Objects
from pilothouse.clusters.owed import Delays, Owed
from pilothouse.core.conditions import SYNCED, condition, find, merge
from pilothouse.engine.client import EngineClient
from pilothouse.errors import PilothouseError
from pilothouse.ports import Credentials

REASON = "NotReconciled"
MESSAGE = (
    "this version of Pilothouse does not reconcile namespaced Releases yet: "
    "use a cluster-scoped Release of helm.crossplane.io"
)
# There may be thousands of them, and an account that may not write to any.
DELAYS = Delays(longest=600.0)


async def census(engine: EngineClient, at: Credentials, within: float = 10.0) -> str:
    """Say how many namespaced Releases somebody would lose a controller of; empty when there are none to see.

    It is one sentence: nothing waits for it longer than so many seconds. Each is told anyway when it is seen.
    """
    count, counted = 0, "at least "
    # No such kind here, or it may not be read, or not now.
    with suppress(PilothouseError, TimeoutError):
        async with (
            asyncio.timeout(within),
            aclosing(engine.list(at, NAMESPACED_RELEASE, "")) as found,
        ):
            async for _ in found:
                count += 1
        counted = ""
    if not count:
        return ""
    named = f"{count} namespaced Release{'s' * (count != 1)} ({NAMESPACED_RELEASE.qualified})"
    return f"{counted}{named}: this version of Pilothouse does not reconcile them, so nobody will"


class UnservedNotes:
    """Writes one condition per generation, and nothing else."""

    def __init__(self, objects: Objects, delays: Delays = DELAYS) -> None:
        self._objects = objects
        self._cache = Cache(NAMESPACED_RELEASE)
        self._owed = Owed(self._write, delays)

    async def follow(self, engine: EngineClient, at: Credentials) -> None:
        """Watch namespaced Releases for ever."""
        async with asyncio.TaskGroup() as tasks:

            def changed(key: Key, value: msgspec.Struct | None) -> None:
                if isinstance(value, Release) and not _noted(value):
                    self._owed.add(key)

            tasks.create_task(self._owed.run(), name="note namespaced releases")
            await self._cache.follow(engine, at, changed, synced=lambda: None)

    async def _write(self, key: Key) -> None:
        release = self._cache.get(key)
        if release is None or _noted(release):
            return
        said = condition(
            SYNCED,
            true=False,
            reason=REASON,
            message=MESSAGE,
            generation=release.metadata.generation,
            now=datetime.now(UTC),
        )
        conditions = msgspec.to_builtins(merge(release.status.conditions, said))
        patch = {"status": {"conditions": conditions}}
        await self._objects.merge(NAMESPACED_RELEASE, key, patch, subresource="status")


def _noted(release: Release) -> bool:
    """Whether it was we who spoke of this generation: whoever reconciled it before has left its own words."""
    held = find(release.status.conditions, SYNCED)
    said = held and (held.reason, held.observed_generation)
    return said == (REASON, release.metadata.generation)
