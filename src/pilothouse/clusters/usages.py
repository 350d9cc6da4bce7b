"""ProviderConfigs know how many Releases use them, and do not go while one does."""

from collections.abc import Callable
from datetime import UTC, datetime

from pilothouse.api.kinds import PROVIDER_CONFIG
from pilothouse.api.meta import Condition, Key
from pilothouse.api.provider import IN_USE, ProviderConfig
from pilothouse.clusters.cache import Cache
from pilothouse.clusters.objects import Objects
from pilothouse.clusters.owed import Delays, Owed
from pilothouse.core.conditions import condition, find, merge

# A hundred Releases that appear together are one write.
DELAYS = Delays(settle=1.0)
GOING = "Terminating"


class UsageKeeper:
    """Writes finalizer and user count of ProviderConfigs, some time after they changed."""

    def __init__(
        self,
        objects: Objects,
        configs: Cache[ProviderConfig],
        users: Callable[[str], int],
        delays: Delays = DELAYS,
    ) -> None:
        self._objects = objects
        self._configs = configs
        self._users = users
        self._owed = Owed(self._write, delays)

    def changed(self, config: str) -> None:
        """A config, or who uses it, changed."""
        self._owed.add(config)

    async def run(self) -> None:
        """Write what changed, until cancelled."""
        await self._owed.run()

    async def _write(self, name: str) -> None:
        key = Key(PROVIDER_CONFIG.qualified, "", name)
        config = self._configs.get(key)
        if config is None:
            return
        users, metadata = self._users(name), config.metadata
        held = IN_USE in metadata.finalizers
        wanted = users > 0 if metadata.deletion_timestamp else True
        if held != wanted:
            others = [one for one in metadata.finalizers if one != IN_USE]
            finalizers = [*others, IN_USE] if wanted else others
            patch = {"resourceVersion": metadata.resource_version, "finalizers": finalizers}
            await self._objects.merge(PROVIDER_CONFIG, key, {"metadata": patch})
        status: dict[str, object] = {}
        if wanted and config.status.users != users:
            status["users"] = users
        if wanted and metadata.deletion_timestamp and find(config.status.conditions, GOING) is None:
            status["conditions"] = merge(config.status.conditions, _stays(config))
        if status:
            await self._objects.merge(
                PROVIDER_CONFIG, key, {"status": status}, subresource="status"
            )


def _stays(config: ProviderConfig) -> Condition:
    """Say why what was deleted is still there; how many use it is counted beside."""
    return condition(
        GOING,
        true=True,
        reason="InUse",
        message="it goes when no Release uses it any more",
        generation=config.metadata.generation,
        now=datetime.now(UTC),
    )
