"""Which version a Release means that names a range, or none."""

from dataclasses import replace

import structlog

from pilothouse.api.meta import Key
from pilothouse.api.release import Release
from pilothouse.core.desired import Desired, needs_version
from pilothouse.core.late import left_open
from pilothouse.core.left_over import may_be_left_over
from pilothouse.core.outcome import Ended
from pilothouse.core.plan import Install, Upgrade
from pilothouse.core.policy import policies_of
from pilothouse.core.resting import is_paused
from pilothouse.core.versions import DEFAULT_INTERVAL
from pilothouse.errors import Conflict, EngineLost, PilothouseError
from pilothouse.loop.survey import FoundVersion, Surveyor
from pilothouse.ports import Clock, Target, Writer

log = structlog.get_logger(__name__)


class LateVersions:
    """Settles versions, and fills in what the user left open once it is deployed."""

    def __init__(self, surveyor: Surveyor, writer: Writer, clock: Clock) -> None:
        self._surveyor = surveyor
        self._writer = writer
        self._clock = clock

    async def settle(self, key: Key, release: Release, wanted: Desired, target: Target) -> Desired:
        """Turn a range, or no version at all, into the one version that is wanted now."""
        wanted = await self._surveyor.with_offer(key, release, wanted, target)
        if not needs_version(wanted):
            return wanted
        version = await self._version(key, release, wanted, target)
        return replace(await self._surveyor.wanted(key, release, version), offer=wanted.offer)

    async def take_back(self, release: Release) -> Release:
        """Take out a name that was filled in for the chart before; raises who wrote first."""
        stands = release.metadata.deletion_timestamp or is_paused(release)
        if stands or not may_be_left_over(release) or not policies_of(release).late_initialize:
            return release
        try:
            return await self._writer.take_back_name(release)
        except (Conflict, EngineLost):
            raise
        except PilothouseError as error:
            log.warning("cannot take back", release=release.metadata.name, error=error.message)
            return release

    async def fill_in(self, release: Release, wanted: Desired, ended: Ended) -> Release:
        """Write what the user left open and an action has deployed; raises who wrote first."""
        found = left_open(release, wanted, ended)
        if not found:
            return release
        try:
            return await self._writer.late_initialize(release, found)
        except (Conflict, EngineLost):
            raise
        except PilothouseError as error:
            # What is deployed stands without it.
            log.warning("cannot fill in", release=release.metadata.name, error=error.message)
            return release

    def attempted(self, key: Key, ended: Ended) -> None:
        """An attempt has ended: one that made no revision is next made with what is the latest then."""
        memory, outcome = self._surveyor.memory(key), ended.outcome
        if memory.found is None or not isinstance(ended.plan, Install | Upgrade):
            return
        made = outcome.record and outcome.record.digest == ended.desired.digest
        # A revision that failed is counted, and may be undone: what is counted is about one version.
        memory.found = replace(memory.found, until=None) if made and outcome.fault else None

    async def _version(self, key: Key, release: Release, wanted: Desired, target: Target) -> str:
        """Return the version that is deployed, or the latest; what is under way is about no other one."""
        memory, now = self._surveyor.memory(key), self._clock.now()
        known = memory.found if memory.found and memory.found.chart == wanted.chart else None
        if known and self._surveyor.is_acting(key):
            return known.version
        version = await self._surveyor.deployed_version(key, release, wanted, target)
        if version:
            return version
        generation = release.metadata.generation
        if known and (known.generation == generation if known.until is None else now < known.until):
            return known.version
        version = (await target.resolve_chart(wanted.chart)).version
        memory.found = FoundVersion(wanted.chart, generation, version, now + DEFAULT_INTERVAL)
        return version
