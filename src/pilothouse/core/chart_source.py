"""Where a chart comes from, whichever way it was written.

Helm takes an address in place of a name, and an OCI repository may be the chart itself: both are read here as
what they mean, so that nothing else has to know. api/release.py admits exactly what passes here.
"""

import re
from urllib.parse import urlsplit, urlunsplit

import msgspec

from pilothouse.api.release import ChartSpec, Release
from pilothouse.core.policy import changes_nothing

WHERE = "spec.forProvider.chart"
# A tag or a digest makes an OCI address the whole answer; without one there are versions to choose from.
_OCI_CHART = re.compile(r"(?P<repository>oci://[^/]+(/[^/]+)*)/(?P<name>[^/]+)/*")


def plain_source(chart: ChartSpec) -> ChartSpec:
    """Return the chart by repository and name, or by url, however it was named."""
    if chart.url or chart.inline or chart.git or bool(chart.repository) == bool(chart.name):
        return chart
    address = chart.repository or chart.name
    oci = _OCI_CHART.fullmatch(address)
    if oci and not set(":@") & set(oci["name"]):
        return msgspec.structs.replace(chart, repository=oci["repository"], name=oci["name"])
    if oci or (chart.name and "://" in address):
        return msgspec.structs.replace(chart, repository="", name="", url=address)
    return chart


def place_of(repository: str, name: str, url: str) -> str:
    """Name where a chart comes from, without what may be secret in an address."""
    parts = urlsplit(url or repository)
    address = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    return address if url else f"{address.rstrip('/')}/{name}"


def comes_from_elsewhere(release: Release) -> bool:
    """Whether the status tells that what is deployed is another chart than the one asked for."""
    asked, noted = plain_source(release.spec.for_provider.chart), release.status.chart.source
    return bool(noted) and noted != place_of(asked.repository, asked.name, asked.url)


def told_version(release: Release) -> str:
    """Return the deployed version of the chart asked for, as far as the status tells: no other chart's."""
    status = release.status
    if comes_from_elsewhere(release):
        return ""
    if not status.chart.source and not release.spec.for_provider.chart.url:
        return ""  # adopted or rolled back: only Helm's record tells which chart that version is of
    # A revision that failed may be of another chart.
    failed = status.at_provider.state != "deployed"
    return (status.chart.version if failed else "") or status.at_provider.version


def is_named(chart: ChartSpec) -> bool:
    """Whether it is said which chart."""
    return bool(chart.git or chart.inline or chart.url or (chart.repository and chart.name))


def check_source(release: Release) -> None:
    """Raise ValueError unless exactly one chart is named; whoever only looks need not name one."""
    chart = release.spec.for_provider.chart
    if chart.inline and (chart.url or chart.repository):
        msg = f"{WHERE}: inline takes the place of repository and url; give one"
        raise ValueError(msg)
    # A name or version may be one that was filled in here, for the chart before: no tool takes it out again.
    if chart.git and (chart.inline or chart.url or chart.repository):
        msg = f"{WHERE}: git takes the place of repository, url and inline; give one"
        raise ValueError(msg)
    if chart.git and chart.pull_secret_ref:
        msg = f"{WHERE}.pullSecretRef: not for git; use {WHERE}.git.secretRef"
        raise ValueError(msg)
    if not changes_nothing(release) and not is_named(plain_source(chart)):
        msg = f"{WHERE}: give repository and name, or url, or git, or inline"
        raise ValueError(msg)
