"""Who wrote a Release's chart, as the API server and `kubectl apply` note it."""

from typing import Any

import msgspec

from pilothouse.api.release import Release
from pilothouse.clusters.managers import notes_on
from pilothouse.clusters.objects import Objects
from pilothouse.core.left_over import Author, Written

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_CHART = ("spec", "forProvider", "chart")


async def who_wrote_chart(objects: Objects, release: Release) -> Written:
    """Ask the API server."""
    metadata = release.metadata
    noted = await notes_on(objects, metadata.name, metadata.namespace)
    authors = tuple(
        Author(one.manager, one.at(*_CHART), applies=one.operation == "Apply")
        for one in noted.managed_fields
    )
    return Written(authors, _applied(noted.annotations.get(LAST_APPLIED, "")))


def _applied(text: str) -> dict[str, Any] | None:
    try:
        chart = msgspec.json.decode(text)["spec"]["forProvider"]["chart"]
    except (msgspec.DecodeError, KeyError, TypeError):
        return None
    return chart if isinstance(chart, dict) else None
