"""Charts from git: how a commit is asked for, noted and called.

A reference is spelled "branch main", "tag v1", "semver ~1.2" or "HEAD"; the engine reads the same words.
"""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pilothouse.api.chart import GitReference, GitSpec
from pilothouse.api.release import Release
from pilothouse.api.status import DeployedChart

if TYPE_CHECKING:
    from pilothouse.core.observed import Record

DEFAULT_BRANCH = "HEAD"
_SHORT = 12
_NOTED = re.compile(r".+@([0-9a-f]{40})(:.*)?")


@dataclass(frozen=True, slots=True)
class GitAsk:
    """A chart in a repository, as it was asked for."""

    url: str
    reference: str
    path: str = ""
    # What the reference came to, or what was asked for by itself.
    commit: str = ""

    @property
    def stamp(self) -> str:
        """What is put on Helm's record: the status may be lost, and the reference moves on."""
        return f"{source_of(self)}\t{self.reference}" if self.commit else ""

    def __str__(self) -> str:
        return f"{address(self.url)}@{short(self.commit) or self.reference}"


def ask_of(spec: GitSpec, commit: str) -> GitAsk:
    """Return what a Release asks for; `commit` is the one that its reference came to."""
    given = spec.ref or GitReference()
    return GitAsk(
        url=spec.url.strip(),
        reference=reference_of(given),
        path=spec.path.strip("/"),
        commit=given.commit or commit,
    )


def reference_of(given: GitReference) -> str:
    """Spell a reference."""
    for kind in ("branch", "tag", "semver"):
        value = getattr(given, kind).strip()
        if value:
            return f"{kind} {value}"
    return DEFAULT_BRANCH


def address(url: str) -> str:
    """Return a repository's address without users, passwords and tokens."""
    scheme, found, rest = url.partition("://")
    if not found:
        scheme, rest = "", url
    place, slash, path = rest.partition("/")
    path = re.split(r"[?#]", path, maxsplit=1)[0]
    return f"{scheme}{found}{place.rpartition('@')[2]}{slash}{path}"


def source_of(asked: GitAsk) -> str:
    """Name a chart in a status: address, commit and path."""
    path = f":{asked.path}" if asked.path else ""
    return f"{address(asked.url)}@{asked.commit}{path}"


def commit_in(source: str) -> str:
    """Return the commit that a status names."""
    noted = _NOTED.fullmatch(source)
    return noted.group(1) if noted else ""


def held_commit(release: Release, record: "Record") -> str:
    """Return the commit that is deployed, if it was found by the reference that is asked for now."""
    spec, noted = release.spec.for_provider.chart.git, _noted(release.status.chart, record)
    commit = commit_in(noted.source)
    if spec is None or not commit:
        return ""
    asked = ask_of(spec, commit)
    same = source_of(asked) == noted.source and noted.range == asked.reference
    return commit if same else ""


def _noted(told: DeployedChart, record: "Record") -> DeployedChart:
    """Return what is known of the deployed chart: of a revision that failed, what stood before it."""
    source, stamped, reference = record.source.partition("\t")
    if stamped and (record.status == "deployed" or not told.source):
        return DeployedChart(source=source, range=reference)
    return told


def called(query: str, tag: str, commit: str) -> str:
    """Name a commit for people: main@0123456789ab."""
    name = tag or query.partition(" ")[2] or query
    return f"{name}@{short(commit)}"


def short(commit: str) -> str:
    """Shorten a commit as people write it."""
    return commit[:_SHORT]
