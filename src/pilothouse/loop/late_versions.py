"""Which version a Release means that names a range, or none."""

from dataclasses import replace

from pilothouse.api.meta import Key
from pilothouse.api.release import Release
from pilothouse.core.desired import Desired, needs_version
from pilothouse.loop.survey import Surveyor
from pilothouse.ports import Target, Writer


class LateVersions:
    """Settles versions, and fills them in where the user left them open."""

    def __init__(self, surveyor: Surveyor, writer: Writer) -> None:
        self._surveyor = surveyor
        self._writer = writer

    async def settle(
        self, key: Key, release: Release, wanted: Desired, target: Target
    ) -> tuple[Release, Desired]:
        """Turn a range, or no version at all, into the one version that is wanted now."""
        wanted = await self._surveyor.with_offer(key, release, wanted, target)
        if needs_version(wanted):
            offer = wanted.offer
            release, wanted = await self._fill_in(key, release, wanted, target)
            wanted = replace(wanted, offer=offer)
        return release, wanted

    async def _fill_in(
        self, key: Key, release: Release, wanted: Desired, target: Target
    ) -> tuple[Release, Desired]:
        """Find the latest version, once: afterwards what is deployed stands."""
        version = await self._surveyor.deployed_version(key, wanted, target)
        if version:
            return release, await self._surveyor.wanted_with(key, release, version)
        found = await target.resolve_chart(wanted.chart)
        if wanted.policies.late_initialize:
            release = await self._writer.late_initialize(release, found.version)
            return release, await self._surveyor.wanted(key, release)
        return release, await self._surveyor.wanted_with(key, release, found.version)
