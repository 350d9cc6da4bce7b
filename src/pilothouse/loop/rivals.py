"""Which Releases name the same Helm release: the oldest of them keeps it."""

from collections import defaultdict
from dataclasses import dataclass

from pilothouse.api.meta import Key
from pilothouse.api.release import Release
from pilothouse.core.desired import ReleaseName
from pilothouse.core.policy import writes


@dataclass(frozen=True, slots=True)
class _Claim:
    release: ReleaseName
    # Who was first; the uid decides between two of the same second.
    seniority: tuple[str, str]


class Rivals:
    """Every Release that may write, by the name of the Helm release it stands for, whatever the cluster."""

    def __init__(self) -> None:
        self._claims: dict[Key, _Claim] = {}
        self._by_name: dict[ReleaseName, set[Key]] = defaultdict(set)

    def put(self, key: Key, release: Release | None) -> set[Key]:
        """Note what a Release stands for now; return the others that this concerns."""
        held, claim = self._claims.get(key), _claim(release)
        if held == claim:
            return set()
        concerned: set[Key] = set()
        if held:
            del self._claims[key]
            named = self._by_name[held.release]
            named.discard(key)
            concerned |= named
            if not named:
                del self._by_name[held.release]
        if claim:
            concerned |= self._by_name[claim.release]
            self._claims[key] = claim
            self._by_name[claim.release].add(key)
        return concerned

    def elders(self, key: Key) -> list[Key]:
        """Return the Releases that were there before and use the same name, the oldest first."""
        mine = self._claims.get(key)
        if mine is None:
            return []
        others = ((self._claims[one], one) for one in self._by_name[mine.release])
        older = [
            (claim.seniority, one) for claim, one in others if claim.seniority < mine.seniority
        ]
        return [one for _, one in sorted(older)]


def _claim(release: Release | None) -> _Claim | None:
    if release is None or not writes(release):
        return None
    metadata = release.metadata
    return _Claim(
        ReleaseName(release.spec.for_provider.namespace, release.external_name),
        (metadata.creation_timestamp or "", metadata.uid),
    )
