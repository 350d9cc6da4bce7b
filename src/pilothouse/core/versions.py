"""Which version of a chart is wanted: exact, the newest in a range, or the one that is deployed.

What a range allows and which version is newer the engine tells, with Helm's own library; the rules are here.
A version that is deployed and allowed stands until a newer one may be deployed: nothing here can loop.
"""

import hashlib
import re
from dataclasses import dataclass, replace
from datetime import timedelta

import msgspec

from pilothouse.api.release import Release
from pilothouse.api.status import DeployedChart, ReleaseStatus
from pilothouse.core import git
from pilothouse.core.chart_source import (
    comes_from_elsewhere,
    is_named,
    place_of,
    plain_source,
    told_version,
)
from pilothouse.core.desired import ChartAsk, Desired, Offer
from pilothouse.core.observed import Decoded, Record
from pilothouse.core.outcome import Fault, Notice
from pilothouse.core.spelling import duration, plain_version

DEFAULT_INTERVAL = timedelta(minutes=10)
SHORTEST_INTERVAL = timedelta(seconds=10)
JITTER = 0.1
_EXACT = re.compile(r"v?\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]*)?")


@dataclass(frozen=True, slots=True)
class Follow:
    """What a Release wants to be told of its chart's repository, and how often."""

    # A range; empty for the latest stable version.
    query: str
    interval: timedelta
    # Whether the version that is deployed is found by the query, or only what is reported.
    decides: bool
    automatic: bool = False
    # The versions are commits, and the query a reference of git.
    git: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """Asks for the best version of one chart, and about the one that is held."""

    name: str
    version: str
    held: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """What the repository has."""

    version: str = ""
    held_fits: bool = False
    newer: bool = False
    # What the repository has under the held version; empty when it does not tell.
    held_digest: str = ""
    # The tag that a range of git's tags came to.
    tag: str = ""
    fault: Fault | None = None


def is_exact(version: str) -> bool:
    """Whether a version names one version, as `1.2.0` does and `~1.2`, `1.2` or nothing do not."""
    return _EXACT.fullmatch(version.strip()) is not None


def follow(release: Release) -> Follow | None:
    """Return what to ask the repository from time to time; None for nothing."""
    chart, upgrade = plain_source(release.spec.for_provider.chart), release.spec.upgrade
    if not is_named(chart):
        return None  # it is only looked at
    if chart.url or chart.inline or (chart.git and chart.git.ref and chart.git.ref.commit):
        return None  # these name one chart
    if chart.digest and not chart.git:
        return None
    automatic = bool(upgrade and upgrade.automatic)
    interval = DEFAULT_INTERVAL
    if upgrade and upgrade.interval:
        interval = max(duration(upgrade.interval, "spec.upgrade.interval"), SHORTEST_INTERVAL)
    if chart.git:
        reference = git.ask_of(chart.git, "").reference
        # A tag that is moved is told, and not taken: it was to be one version.
        moves = automatic and not reference.startswith("tag ")
        return Follow(reference, interval, decides=True, automatic=moves, git=True)
    if chart.version and not is_exact(chart.version):
        return Follow(chart.version.strip(), interval, decides=True, automatic=automatic)
    if not chart.version and automatic:
        return Follow("", interval, decides=True, automatic=True)
    return Follow("", interval, decides=False) if upgrade else None


def held_version(release: Release, record: Record | None, decoded: Decoded | None) -> str:
    """Return the version of the chart asked for that is deployed, as far as it is known."""
    if record is None:
        return ""
    if release.spec.for_provider.chart.git:
        return git.held_commit(release, record)
    if comes_from_elsewhere(release):
        return ""
    told = told_version(release)
    if decoded and decoded.revision == record.revision and not (record.digest and told):
        asked = plain_source(release.spec.for_provider.chart)
        return decoded.chart_version if decoded.chart_name == asked.name else ""
    return told


def must_look_inside(release: Release, record: Record | None, decoded: Decoded | None) -> bool:
    """Whether only the record itself can tell which version is deployed: the status may be lost."""
    if record is None or follow(release) is None:
        return False
    known = decoded is not None and decoded.revision == record.revision
    return not known and not comes_from_elsewhere(release) and not told_version(release)


def choose(wants: Follow, held: str, found: Found) -> Offer:
    """Return the version to deploy and what to say of others."""
    offer = Offer(range=wants.query, held_digest=found.held_digest)
    newer = found.version if found.newer else ""
    if wants.git:
        return _choose_commit(wants, held, found, offer)
    if not wants.decides:
        return replace(offer, available=newer)
    if not held or not found.held_fits:
        return replace(offer, version=found.version)
    if not newer:
        return replace(offer, version=held)
    if not wants.automatic:
        return replace(offer, version=held, available=newer)
    which = f"newer version in range {wants.query}" if wants.query else "newer version"
    return replace(offer, version=newer, because=f"chart {held} → {newer}: {which}")


def _choose_commit(wants: Follow, held: str, found: Found, offer: Offer) -> Offer:
    """Return the commit to deploy; only one that the very same reference led to is held."""
    if not held:
        return replace(offer, version=found.version)
    if found.version == held:
        return replace(offer, version=held)
    newer = git.called(wants.query, found.tag, found.version)
    if not wants.automatic:
        return replace(offer, version=held, available=newer)
    because = f"chart {git.short(held)} → {newer}: {wants.query} has moved"
    return replace(offer, version=found.version, because=because)


def without_answer(release: Release, wants: Follow, held: str) -> Offer | None:
    """Return what stands while the repository does not answer; None when only it could tell."""
    if not wants.decides:
        return Offer(range=wants.query, available=release.status.available_version)
    if wants.git:
        stands = Offer(held, release.status.available_version, wants.query)
        return stands if held else None
    known = release.status.chart.range == wants.query and release.status.chart.version
    if held and known and plain_version(held) == plain_version(release.status.chart.version):
        return Offer(version=held, range=wants.query, available=release.status.available_version)
    return None


def spread(interval: timedelta, seed: str) -> timedelta:
    """Return the interval, a little longer or shorter, so that repositories are not asked all at once."""
    part = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:4]) / 2**32
    return interval * (1 + JITTER * (2 * part - 1))


def source_of(chart: ChartAsk) -> str:
    """Name where a chart comes from, without what may be secret in an address."""
    if chart.inline:
        return "inline"
    if chart.git:
        return git.source_of(chart.git)
    return place_of(chart.repository, chart.name, chart.url)


def expected_digest(release: Release, chart: ChartAsk) -> str:
    """Return what this very version was when it was deployed; empty when it never was."""
    held = release.status.chart
    if chart.url or chart.inline or chart.digest or not is_exact(chart.version):
        return ""
    same = held.source == source_of(chart)
    return (
        held.digest if same and plain_version(held.version) == plain_version(chart.version) else ""
    )


def kept_to_deployed(release: Release, wanted: Desired) -> Desired:
    """Return what is wanted, with the package its version was when it was deployed."""
    digest = expected_digest(release, wanted.chart)
    return replace(wanted, chart=replace(wanted.chart, expected=digest)) if digest else wanted


def deployed_chart(
    wanted: Desired, version: str, digest: str, republished: str, checked: str = ""
) -> DeployedChart:
    """Return what is noted of the chart that an action deployed."""
    return DeployedChart(
        source=source_of(wanted.chart),
        version=version,
        digest=digest,
        range=wanted.offer.range,
        republished_digest=republished,
        checked=checked,
    )


def report(status: ReleaseStatus, wanted: Desired) -> ReleaseStatus:
    """Return the status of a deployed release with what its repository has, in words of its own."""
    offer, held = wanted.offer, status.chart
    if offer == Offer():
        return msgspec.structs.replace(status, available_version="")
    found = "" if wanted.chart.git else offer.version
    version = found or held.version or status.at_provider.version
    source = source_of(wanted.chart)
    if held.source != source or held.version != version:
        # Adopted, or deployed before this was noted: what the package was is not known.
        held = DeployedChart(source=source, version=version, record=held.record, stamp=held.stamp)
    again = held.republished_digest
    if held.digest and offer.held_digest:
        again = offer.held_digest if offer.held_digest != held.digest else ""
    return msgspec.structs.replace(
        status,
        available_version=offer.available,
        chart=msgspec.structs.replace(held, range=offer.range, republished_digest=again),
    )


def news(before: ReleaseStatus, after: ReleaseStatus) -> list[Notice]:
    """Return what is worth an Event, once."""
    told = []
    available, chart = after.available_version, after.chart
    if available and available != before.available_version:
        within = f" in range {chart.range}" if chart.range else ""
        commit = git.short(git.commit_in(chart.source))
        said = (
            f"{available} is available; deployed is {commit}"
            if commit
            else f"chart version {available} is available{within}; deployed is {chart.version}"
        )
        told.append(Notice("NewVersionAvailable", said))
    again = chart.republished_digest
    if again and again != before.chart.republished_digest:
        told.append(Notice("ChartRepublished", republished(chart.version, again), warning=True))
    return told


def republished(version: str, digest: str) -> str:
    """Say that a version is not what it was."""
    return (
        f"chart version {version} was published again as {digest}; what was deployed stays: "
        "to take the new one, name it in spec.forProvider.chart.digest"
    )
