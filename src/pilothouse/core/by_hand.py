"""What another Helm client made of a release that Pilothouse had deployed before.

Such a revision has no stamp, and may have taken the one of the revision before it: Helm writes that one anew. So what
is noted in the status counts as well, as what was deployed, and never as what the other client deployed.
"""

import re
from collections.abc import Iterable
from dataclasses import replace

from pilothouse.api.status import DeployedChart
from pilothouse.core.desired import Desired
from pilothouse.core.observed import GOOD, Decoded, Observed, Record
from pilothouse.core.spelling import plain_version
from pilothouse.core.versions import source_of

# Helm's own words, in every version of it.
_ROLLBACK = re.compile(r"Rollback to (\d+)")


def was_ours(observed: Observed) -> bool:
    """Whether a revision before the newest one was made by Pilothouse; provider-helm's have no stamp either."""
    return bool(observed.stamps or observed.noted.digest)


def with_stamp(record: Record, noted: DeployedChart) -> Record:
    """Return a revision with the stamp that was noted of it: `helm test` writes it anew, without one.

    Its uid is no other revision's, whatever cluster it is on. One that `helm uninstall` wrote anew is not what it was.
    """
    same = record.uid and record.uid == noted.record
    if same and record.status in GOOD and not record.digest:
        return replace(record, digest=noted.stamp)
    return record


def last_good(records: Iterable[Record]) -> Record | None:
    """Return the newest revision that was deployed: where a rollback goes."""
    good = [one for one in records if one.status in GOOD]
    return max(good, key=lambda one: one.revision, default=None)


def stamps_of(records: Iterable[Record]) -> dict[int, str]:
    """Return what revisions were made from, those that tell."""
    return {one.revision: one.digest for one in records if one.digest}


def is_ours_still(observed: Observed) -> bool:
    """Whether Pilothouse made the newest revision, though its stamp does not say from what: a copy of an adopted one."""
    return bool(observed.record and observed.record.owner)


def is_back_at_spec(desired: Desired, decoded: Decoded, observed: Observed) -> bool:
    """Whether the newest revision is a copy of one that was made from what is asked for now."""
    return observed.stamps.get(_copied(decoded)) == desired.digest


def another_chart(desired: Desired, decoded: Decoded, observed: Observed) -> str:
    """Say how the chart differs from the one noted; for those whose version is only known once they are deployed."""
    chart, noted = desired.chart, observed.noted
    if not noted.digest or not (chart.url or chart.inline or chart.git):
        return ""
    source = source_of(chart)
    if noted.source != source:
        return f"chart {noted.source} → {source}"
    if chart.name and chart.name != decoded.chart_name:
        return f"chart {decoded.chart_name} → {chart.name}"
    if plain_version(noted.version) != plain_version(decoded.chart_version):
        return f"chart version: {decoded.chart_version} is deployed, {noted.version} is asked for"
    return ""


def went_back(desired: Desired, decoded: Decoded, observed: Observed) -> str:
    """Say that the newest revision is a copy of one that was not, or may not have been, made from the spec."""
    copied = _copied(decoded)
    if not copied or not was_ours(observed):
        return ""
    stamp = observed.stamps.get(copied, "")
    if stamp == desired.digest or stamp in desired.alike:
        return ""
    made = "made from another spec" if stamp else "not certainly made from this spec"
    return f"rolled back by another Helm client to revision {copied}, which was {made}"


def _copied(decoded: Decoded) -> int:
    """Return the revision that `helm rollback` made this one from; 0 when it did not."""
    said = _ROLLBACK.fullmatch(decoded.description)
    return int(said[1]) if said else 0
