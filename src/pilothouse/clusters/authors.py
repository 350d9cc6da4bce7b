"""Who wrote a Release's chart, as the API server and `kubectl apply` note it."""

from typing import Any

import msgspec

from pilothouse.api.kinds import RELEASE, Kind
from pilothouse.api.meta import Wire
from pilothouse.api.release import Release
from pilothouse.clusters.objects import Objects
from pilothouse.core.left_over import Author, Written

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_CHART = ("f:spec", "f:forProvider", "f:chart")


class _Entry(Wire, frozen=True):
    manager: str = ""
    operation: str = ""
    fields: dict[str, Any] = msgspec.field(default_factory=dict, name="fieldsV1")


class _Metadata(Wire, frozen=True):
    annotations: dict[str, str] = {}
    managed_fields: list[_Entry] = []


class _Noted(Wire, frozen=True):
    metadata: _Metadata


_NOTED = Kind(
    group=RELEASE.group,
    version=RELEASE.version,
    kind=RELEASE.kind,
    plural=RELEASE.plural,
    struct=_Noted,
)


async def who_wrote_chart(objects: Objects, release: Release) -> Written:
    """Ask the API server; what is watched comes without these notes."""
    metadata = release.metadata
    noted = (await objects.get(_NOTED, metadata.name, metadata.namespace)).metadata
    authors = tuple(
        Author(one.manager, _fields(one.fields), applies=one.operation == "Apply")
        for one in noted.managed_fields
    )
    return Written(authors, _applied(noted.annotations.get(LAST_APPLIED, "")))


def _fields(noted: dict[str, Any]) -> frozenset[str]:
    for part in _CHART:
        noted = noted.get(part) or {}
    return frozenset(one.removeprefix("f:") for one in noted)


def _applied(text: str) -> dict[str, Any] | None:
    try:
        chart = msgspec.json.decode(text)["spec"]["forProvider"]["chart"]
    except (msgspec.DecodeError, KeyError, TypeError):
        return None
    return chart if isinstance(chart, dict) else None
