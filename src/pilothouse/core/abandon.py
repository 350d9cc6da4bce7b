"""When a Release that is being deleted may go although its Helm release cannot be removed.

Only the API server's own "there is no such ProviderConfig (or Secret)" is certainty, and only after a while:
a cluster that does not answer, refuses us or cannot be found by name may come back.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from pilothouse.api.health import ResourceState
from pilothouse.api.release import Release
from pilothouse.core.decide import DELETION
from pilothouse.core.desired import ReleaseName
from pilothouse.core.outcome import Conclusion, Entry, Notice

ABANDON = "pilothouse.dev/abandon"
PATIENCE = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Farewell:
    """Whether to let go now, when else, and what to say."""

    now: bool
    message: str
    until: datetime | None = None


def farewell(
    message: str, gone_since: datetime | None, now: datetime, patience: timedelta | None
) -> Farewell:
    """Judge a deletion that cannot reach its cluster; `gone_since` is when certainty began."""
    if gone_since is None or patience is None:
        way_out = (
            f"to let the Release go and leave Helm's release there, annotate it {ABANDON}=true"
        )
        return Farewell(now=False, message=f"{message}; {way_out}")
    until = gone_since + patience
    if now >= until:
        return Farewell(now=True, message=message)
    way_out = (
        f"unless that changes the Release is let go at {until:%H:%M:%S} UTC, "
        f"at once with the annotation {ABANDON}=true"
    )
    return Farewell(now=False, message=f"{message}; {way_out}", until=until)


def conclude_abandoned(release: Release, cluster: str, why: str, now: datetime) -> Conclusion:
    """Return what to keep of a Helm release that is left where it is, on the cluster of that ProviderConfig."""
    left = ReleaseName(release.spec.for_provider.namespace, release.external_name)
    at_provider = release.status.at_provider
    entry = Entry(
        release=release.metadata.uid,
        cluster=cluster,
        helm_release=str(left),
        action="Abandon",
        reason=why,
        digest=DELETION,
        revision=at_provider.revision,
        chart=f"{release.spec.for_provider.chart.name} {at_provider.version}".strip(),
        error="",
        # What was last seen there: nobody can look any more.
        inventory="".join(f"{_named(one)}\n" for one in release.status.resources),
        started=now,
        finished=now,
    )
    where = f"the cluster of {cluster}" if cluster else "its cluster"
    said = f"left the Helm release {left} on {where} as it is: {why}"
    notice = Notice("AbandonedExternalResource", said, warning=True)
    return Conclusion(status=release.status, notice=notice, entry=entry)


def _named(one: ResourceState) -> str:
    where = f"{one.namespace}/{one.name}" if one.namespace else one.name
    return f"{one.api_version} {one.kind} {where}"
