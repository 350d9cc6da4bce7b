"""What a user left open and is filled in, once it is deployed.

Nothing is filled in for a chart that was deployed before: whoever empties it again means it, or has a tool that does.
"""

from pilothouse.api.release import Release
from pilothouse.core.chart_source import plain_source
from pilothouse.core.desired import Desired
from pilothouse.core.outcome import Ended
from pilothouse.core.plan import Install, Upgrade
from pilothouse.core.versions import follow, source_of


def left_open(release: Release, wanted: Desired, ended: Ended) -> dict[str, str]:
    """Return the fields of spec.forProvider.chart to fill in after an action, with what it deployed."""
    record, made = ended.outcome.record, ended.desired.chart
    deployed = isinstance(ended.plan, Install | Upgrade) and not ended.outcome.fault
    allowed = wanted.policies.late_initialize and not wanted.absent
    if not allowed or record is None or not deployed:
        return {}
    source = source_of(made)
    if source in {release.status.chart.source, ""} or source != source_of(wanted.chart):
        return {}
    spec = release.spec.for_provider.chart
    found = {
        # Beside a url a name says nothing; beside an OCI repository that is the chart it would be part of the address.
        "name": record.chart_name if spec.url and not spec.name else "",
        "version": made.version if _takes_version(release) else "",
    }
    return {field: value for field, value in found.items() if value}


def _takes_version(release: Release) -> bool:
    chart, wants = plain_source(release.spec.for_provider.chart), follow(release)
    # Beside a url a version would contradict the next address; who follows versions names none.
    named = chart.version or chart.digest or chart.url or chart.inline or chart.git
    return not named and not (wants and wants.decides)
