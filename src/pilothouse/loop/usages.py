"""A Release is claimed once, and says which ProviderConfig it uses."""

import contextlib

from pilothouse.api.meta import Key
from pilothouse.api.release import EXTERNAL_NAME, FINALIZER, Release
from pilothouse.core.conditions import SYNCED, find
from pilothouse.core.resting import is_paused
from pilothouse.errors import Missing
from pilothouse.loop.survey import Surveyor
from pilothouse.ports import Writer


class Usages:
    """Writes claims and usages, and asks nothing about those that are right."""

    def __init__(self, surveyor: Surveyor, writer: Writer) -> None:
        self._surveyor = surveyor
        self._writer = writer

    async def keep(self, key: Key, release: Release) -> Release:
        """Claim a Release that is new; of any other, say it when it uses another ProviderConfig than before."""
        metadata, memory = release.metadata, self._surveyor.memory(key)
        if FINALIZER not in metadata.finalizers or not metadata.annotations.get(EXTERNAL_NAME):
            config = self._surveyor.config_of(release)
            release = await self._writer.claim(release, config)
            memory.used = config
            return release
        if metadata.deletion_timestamp or is_paused(release):
            return release
        config = ""
        with contextlib.suppress(Missing):  # the cluster is reached next, which tells it
            config = self._surveyor.config_of(release)
        if config and config != memory.used:
            if memory.used or not _said_before(release):
                await self._writer.use(release, config)
            memory.used = config
        return release


def _said_before(release: Release) -> bool:
    """Whether an earlier process was done with this spec, and so has said what it uses."""
    told = find(release.status.conditions, SYNCED)
    done = told and told.status == "True"
    same = told and told.observed_generation == release.metadata.generation
    # What a selector comes to may change without the spec.
    return bool(done and same and release.spec.provider_selector is None)
