"""Which Releases name the same Helm release: the oldest of them keeps it."""

from collections import defaultdict

from pilothouse.api.meta import Key
from pilothouse.api.release import Release
from pilothouse.core.desired import ReleaseName
from pilothouse.core.policy import writes


class Rivals:
    """Every Release that may write, by the name of the Helm release it stands for, whatever the cluster."""

    def __init__(self) -> None:
        self._named: dict[Key, ReleaseName] = {}
        self._by_name: dict[ReleaseName, set[Key]] = defaultdict(set)

    def put(self, key: Key, release: Release | None) -> set[Key]:
        """Note what a Release stands for now; return the others that this concerns."""
        held, name = self._named.get(key), _name(release)
        if held == name:
            return set()
        concerned: set[Key] = set()
        if held:
            del self._named[key]
            named = self._by_name[held]
            named.discard(key)
            concerned |= named
            if not named:
                del self._by_name[held]
        if name:
            concerned |= self._by_name[name]
            self._named[key] = name
            self._by_name[name].add(key)
        return concerned

    def of(self, key: Key) -> set[Key]:
        """Return the other Releases that use the same name."""
        name = self._named.get(key)
        return self._by_name[name] - {key} if name else set()


def _name(release: Release | None) -> ReleaseName | None:
    if release is None or not writes(release):
        return None
    return ReleaseName(release.spec.for_provider.namespace, release.external_name)
