"""Who wrote which fields of a Release, as the API server notes it: what is watched comes without these notes."""

from datetime import datetime
from typing import Any

import msgspec

from pilothouse.api.kinds import RELEASE, Kind
from pilothouse.api.meta import Wire
from pilothouse.clusters.objects import Objects


class Entry(Wire, frozen=True):
    """What one manager has written, in one way."""

    manager: str = ""
    operation: str = ""
    subresource: str = ""
    time: datetime | None = None
    fields: dict[str, Any] = msgspec.field(default_factory=dict, name="fieldsV1")

    def at(self, *path: str) -> frozenset[str]:
        """Name the fields below a path that it has written."""
        noted = self.fields
        for part in path:
            noted = noted.get(f"f:{part}") or {}
        return frozenset(one.removeprefix("f:") for one in noted)


class Notes(Wire, frozen=True):
    """The part of the metadata that tells."""

    annotations: dict[str, str] = {}
    managed_fields: list[Entry] = []


class _Noted(Wire, frozen=True):
    metadata: Notes


_NOTED = Kind(RELEASE.group, RELEASE.version, RELEASE.kind, RELEASE.plural, struct=_Noted)


async def notes_on(objects: Objects, name: str, namespace: str) -> Notes:
    """Ask the API server."""
    return (await objects.get(_NOTED, name, namespace)).metadata
