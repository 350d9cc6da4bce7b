"""Which Releases a change concerns."""

from collections import defaultdict

from pilothouse.api.meta import Key
from pilothouse.core.desired import ReleaseName


class Claims:
    """Which Release stands for which Helm release, so that a change there wakes just that one."""

    def __init__(self) -> None:
        self._by_release: dict[tuple[str, ReleaseName], set[Key]] = defaultdict(set)
        self._by_target: dict[str, set[Key]] = defaultdict(set)
        self._held: dict[Key, tuple[str, ReleaseName]] = {}

    def put(self, key: Key, target: str, release: ReleaseName) -> tuple[str, ReleaseName] | None:
        """Note what a Release stands for now; return what it stood for, if that is another."""
        claim = (target, release)
        if self._held.get(key) == claim:
            return None
        before = self.drop(key)
        self._held[key] = claim
        self._by_release[claim].add(key)
        self._by_target[target].add(key)
        return before

    def drop(self, key: Key) -> tuple[str, ReleaseName] | None:
        """Forget a Release; return what it stood for."""
        claim = self._held.pop(key, None)
        if claim is None:
            return None
        for index, entry in ((self._by_release, claim), (self._by_target, claim[0])):
            keys = index[entry]  # type: ignore[index] # two dicts, each with its own kind of entry
            keys.discard(key)
            if not keys:
                del index[entry]  # type: ignore[arg-type] # as above
        return claim

    def of_release(self, target: str, release: ReleaseName) -> set[Key]:
        """Return the Releases that stand for one Helm release."""
        return set(self._by_release.get((target, release), ()))

    def of_target(self, target: str) -> set[Key]:
        """Return the Releases on one cluster."""
        return set(self._by_target.get(target, ()))


class Connections:
    """Which Release writes which connection secret, and how often others touched it."""

    def __init__(self) -> None:
        self._writers: dict[tuple[str, str], Key] = {}
        self._held: dict[Key, tuple[str, str]] = {}
        self._turns: dict[Key, int] = {}

    def put(self, key: Key, secret: tuple[str, str] | None) -> None:
        """Note which Secret a Release writes, None for none."""
        held = self._held.pop(key, None)
        if held and self._writers.get(held) == key:
            del self._writers[held]
        if secret:
            self._held[key] = secret
            self._writers.setdefault(secret, key)
        else:
            self._turns.pop(key, None)

    def changed(self, namespace: str, name: str) -> Key | None:
        """A Secret changed; return the Release that writes it."""
        key = self._writers.get((namespace, name))
        if key:
            self._turns[key] = self._turns.get(key, 0) + 1
        return key

    def turn(self, key: Key) -> int:
        """Count the changes, so that what was written before the latest is looked at again."""
        return self._turns.get(key, 0)


class Configs:
    """Which Releases name which ProviderConfig."""

    def __init__(self) -> None:
        self._by_config: dict[str, set[Key]] = defaultdict(set)
        self._held: dict[Key, str] = {}

    def put(self, key: Key, config: str | None) -> set[str]:
        """Note which config a Release names, None for none; return the configs this changes."""
        held = self._held.get(key)
        if held == config:
            return set()
        if held is not None:
            self._by_config[held].discard(key)
            del self._held[key]
        if config is not None:
            self._held[key] = config
            self._by_config[config].add(key)
        return {one for one in (held, config) if one is not None}

    def users(self, config: str) -> set[Key]:
        """Return the Releases that name a config."""
        return set(self._by_config.get(config, ()))
