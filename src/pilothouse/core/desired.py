"""What a Release asks for, as one value with one digest.

The digest answers "changed?" for good: it covers everything that reaches the cluster, and nothing else.
It is computed from what was asked, never from a rendered manifest, so random templates cause no churn.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from pilothouse.api.release import FINALIZER, Release, ReleaseParameters
from pilothouse.core import inline
from pilothouse.core.access import OPEN, Access, Way
from pilothouse.core.chart_source import check_source, plain_source, told_version
from pilothouse.core.drift_rules import DriftRules, drift_rules
from pilothouse.core.git import GitAsk, ask_of
from pilothouse.core.policy import Policies, policies_of
from pilothouse.core.spelling import DEFAULT_TIMEOUT, duration, plain_version, spelled

DIGEST_LENGTH = 40


@dataclass(frozen=True, slots=True)
class ChartAsk:
    """The chart as it was asked for."""

    repository: str
    name: str
    version: str
    url: str = ""
    digest: str = ""
    plain_http: bool = False
    insecure_skip_tls_verify: bool = False
    # The packed chart itself.
    inline: bytes = field(default=b"", repr=False)
    git: GitAsk | None = None
    access: Access = field(default=OPEN, repr=False, compare=False)
    # What this version was when it was deployed; see core/versions.py.
    expected: str = field(default="", repr=False, compare=False)

    @property
    def way(self) -> Way:
        """How its server is reached: another way may be open where one was not."""
        return Way(self.access, self.plain_http, self.insecure_skip_tls_verify)

    def __str__(self) -> str:
        if self.git:
            return str(self.git)
        shown = self.name or self.url or ("(inline)" if self.inline else "")
        return f"{shown} {self.version}".strip()


@dataclass(frozen=True, slots=True)
class ReleaseName:
    """Names one Helm release on one cluster."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Sources:
    """What the references of a Release came to."""

    values: dict[str, Any] | None = field(default=None, repr=False)
    patches: tuple[bytes, ...] = field(default=(), repr=False)
    patches_sha: str = ""
    patch_annotations: tuple[tuple[str, str], ...] = ()
    access: Access = OPEN
    # Everything that came from a Secret: it must not appear in any message.
    secrets: frozenset[str] = field(default=frozenset(), repr=False)


NOTHING_REFERRED_TO = Sources()


@dataclass(frozen=True, slots=True)
class Defaults:
    """What the operator set for the fields a Release leaves open."""

    readiness: str = "Objects"
    drift: str = "Correct"


NO_DEFAULTS = Defaults()


@dataclass(frozen=True, slots=True)
class Offer:
    """What the chart's repository has for a Release; see core/versions.py."""

    # What to deploy; empty when the spec says it.
    version: str = ""
    # A newer one that is not to be deployed by itself.
    available: str = ""
    range: str = ""
    # Why `version` is not the one that is deployed.
    because: str = ""
    held_digest: str = ""


@dataclass(frozen=True, slots=True)
class Desired:
    """What is wanted of one Helm release."""

    release: ReleaseName
    chart: ChartAsk
    values: dict[str, Any]
    digest: str
    generation: int = 0
    absent: bool = False
    # Finalizers of others on what is to be absent.
    held_by: tuple[str, ...] = ()
    paused: bool = False
    wait: bool = False
    timeout: timedelta = DEFAULT_TIMEOUT
    skip_crds: bool = False
    create_namespace: bool = True
    take_ownership: bool = False
    force_conflicts: bool = False
    max_history: int = 20
    rollback_limit: int | None = None
    policies: Policies = field(default_factory=Policies)
    # Ready means that every object is current; otherwise, that the release is deployed and in sync.
    by_objects: bool = True
    drift: DriftRules = field(default_factory=DriftRules)
    patches: tuple[bytes, ...] = field(default=(), repr=False)
    patches_sha: str = ""
    patch_annotations: tuple[tuple[str, str], ...] = ()
    kustomization: str = field(default="", repr=False)
    secrets: frozenset[str] = field(default=frozenset(), repr=False, compare=False)
    offer: Offer = Offer()
    # What the digest is with the pins that the deployed chart may have been asked with; see core/trust.py.
    alike: frozenset[str] = frozenset()


def desired(
    release: Release,
    sources: Sources = NOTHING_REFERRED_TO,
    defaults: Defaults = NO_DEFAULTS,
    *,
    version: str = "",
) -> Desired:
    """Read a Release; `version` is the one that a range came to.

    Raises ValueError, naming the field, for what the schema could not refuse.
    """
    wanted = release.spec.for_provider
    values = sources.values if sources.values is not None else wanted.values or {}
    if not isinstance(values, dict):
        msg = "spec.forProvider.values: must be an object"
        raise ValueError(msg)
    absent = release.metadata.deletion_timestamp is not None
    asked = _chart(release, sources, version)
    kustomization = spelled(wanted.kustomize) if wanted.kustomize else ""

    def digest(chart: ChartAsk) -> str:
        return digest_of(
            chart,
            values,
            flags=_flags(wanted),
            patches=sources.patches_sha,
            kustomization=kustomization,
        )

    one, *others = (digest(chart) for chart in _with_pins(release, asked, version))
    return Desired(
        release=ReleaseName(wanted.namespace, release.external_name),
        chart=asked,
        values=values,
        digest=one,
        alike=frozenset(others) - {one},
        generation=release.metadata.generation,
        absent=absent,
        held_by=tuple(one for one in release.metadata.finalizers if absent and one != FINALIZER),
        paused=release.paused or not release.spec.management_policies,
        wait=wanted.wait,
        timeout=_timeout(wanted.wait_timeout, lenient=absent),
        skip_crds=wanted.skip_crds,
        create_namespace=not wanted.skip_create_namespace,
        take_ownership=wanted.take_ownership,
        force_conflicts=wanted.ssa_force_conflicts,
        max_history=max(wanted.max_history, 0),
        rollback_limit=release.spec.rollback_limit,
        policies=policies_of(release),
        by_objects=(release.spec.readiness or defaults.readiness) == "Objects",
        drift=DriftRules() if absent else drift_rules(release, defaults.drift),
        patches=sources.patches,
        patches_sha=sources.patches_sha,
        patch_annotations=sources.patch_annotations,
        kustomization=kustomization,
        secrets=sources.secrets,
    )


def _with_pins(release: Release, asked: ChartAsk, found: str) -> list[ChartAsk]:
    """Return what is asked for, and with what pins and versions the very same chart may have been asked for."""
    named = found or release.spec.for_provider.chart.version

    def pinned(pin: str) -> ChartAsk:
        # A version that nobody named is known only once it is deployed: beside a pin it says nothing.
        return replace(asked, digest=pin, version=asked.version if named or not pin else "")

    made_with, package = release.status.at_provider.digest, release.status.chart.digest
    pins = ({made_with, package, ""} if asked.digest else {made_with}) - {asked.digest}
    all_of_them = [pinned(pin) for pin in (asked.digest, *pins)]
    if plain_version(asked.version) == plain_version(told_version(release)):
        with_a_pin = [pin for pin in (asked.digest, *pins) if pin]
        both = ("", asked.version)
        all_of_them += [replace(asked, digest=pin, version=v) for pin in with_a_pin for v in both]
    return all_of_them


def _timeout(text: str, *, lenient: bool) -> timedelta:
    try:
        return duration(text, "spec.forProvider.waitTimeout")
    except ValueError:
        if lenient:
            return DEFAULT_TIMEOUT
        raise


def _chart(release: Release, sources: Sources, version: str) -> ChartAsk:
    wanted = release.spec.for_provider
    chart = plain_source(wanted.chart)
    # What is to be removed may have been wrong in any way: that must not keep it.
    absent = release.metadata.deletion_timestamp is not None
    if not absent:
        check_source(release)
    return ChartAsk(
        repository=chart.repository.rstrip("/"),
        name=chart.name,
        # An empty version means "the latest, then stay": what is deployed stands.
        version=""
        if chart.inline or chart.git
        else version or chart.version or told_version(release),
        url=chart.url,
        digest=chart.digest,
        plain_http=wanted.plain_http,
        insecure_skip_tls_verify=wanted.insecure_skip_tls_verify,
        inline=inline.packed(chart.inline) if chart.inline and not absent else b"",
        git=ask_of(chart.git, version) if chart.git else None,
        access=sources.access,
    )


def _flags(wanted: ReleaseParameters) -> list[str]:
    """Name the options that change what an apply does; the default ones are not named."""
    flags = {
        "takeOwnership": wanted.take_ownership,
        "ssaForceConflicts": wanted.ssa_force_conflicts,
        "skipCRDs": wanted.skip_crds,
    }
    return [name for name, given in flags.items() if given]


def digest_of(
    chart: ChartAsk,
    values: dict[str, Any],
    *,
    flags: Sequence[str] = (),
    patches: str = "",
    kustomization: str = "",
) -> str:
    """Return 40 hex digits for what reaches the cluster."""
    if chart.inline:
        identity = ["inline", hashlib.sha256(chart.inline).hexdigest()]
    elif chart.git:
        git = chart.git
        identity = ["git", git.url, git.path, git.commit or git.reference, chart.digest]
    elif chart.url:
        # The address is the identity; name and version are whatever is found there.
        identity = [chart.url, chart.digest]
    else:
        version = plain_version(chart.version)
        identity = [chart.repository, chart.name, version, chart.digest]
    asked = {"chart": identity, "flags": list(flags), "patches": patches, "values": values}
    if kustomization:
        # Named only where there is one, so that the digests of all others stay what they were.
        asked["kustomize"] = kustomization
    return hashlib.sha256(spelled(asked).encode()).hexdigest()[:DIGEST_LENGTH]


def needs_version(wanted: Desired) -> bool:
    """Whether "the latest" has yet to be found: nothing is named and nothing is deployed."""
    chart = wanted.chart
    # Whoever only looks may name no chart at all.
    return bool(chart.name) and not (
        chart.inline or chart.git or chart.url or chart.version or chart.digest
    )
