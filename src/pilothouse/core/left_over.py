"""A chart's name that was filled in here beside a url, and that nobody meant once the url is gone.

Beside an OCI repository it would be asked for as a part of the address. Who writes without it cannot take it out: a
tool leaves alone what it did not write. Whoever writes it means it.
"""

from dataclasses import dataclass, field
from typing import Any

from pilothouse.api.meta import FIELD_MANAGER
from pilothouse.api.release import ChartSpec, Release
from pilothouse.core.chart_source import comes_from_elsewhere


@dataclass(frozen=True, slots=True)
class Author:
    """Which fields of spec.forProvider.chart somebody has written, as the API server notes it."""

    manager: str
    fields: frozenset[str]
    # Whoever applies says all that he means; whoever updates may have left something as it was.
    applies: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """Who wrote a chart, and what `kubectl apply` was given last; None where it was not used."""

    authors: tuple[Author, ...] = ()
    applied: dict[str, Any] | None = field(default=None)


def may_be_left_over(release: Release) -> bool:
    """Whether it is worth asking who wrote the name: another chart is deployed, and this one is in an OCI repository."""
    chart = release.spec.for_provider.chart
    elsewhere = chart.url or chart.git or chart.inline
    beside_oci = chart.name and chart.repository.startswith("oci://") and not elsewhere
    return bool(beside_oci) and comes_from_elsewhere(release)


def is_left_over(chart: ChartSpec, written: Written) -> bool:
    """Whether the name is only what was filled in here."""
    writers = [one for one in written.authors if "name" in one.fields]
    if not writers or any(not one.manager.startswith(FIELD_MANAGER) for one in writers):
        return False
    applied = written.applied or {}
    if applied.get("name"):
        return False
    # Who edits by hand may have left it in on purpose: what is written unchanged has no author of its own.
    declared = any(one.applies and "repository" in one.fields for one in written.authors)
    return declared or bool(chart.repository and applied.get("repository") == chart.repository)
