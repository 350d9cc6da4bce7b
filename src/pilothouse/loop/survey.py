"""What is asked of a release and what is there: everything a pass looks at before it decides."""

import contextlib
from dataclasses import dataclass, replace
from datetime import datetime

from pilothouse.api.meta import Key
from pilothouse.api.release import Release
from pilothouse.core.access import Way
from pilothouse.core.attention import attention_to
from pilothouse.core.by_hand import last_good, stamps_of, with_stamp
from pilothouse.core.chart_source import comes_from_elsewhere
from pilothouse.core.conclude import attempts_of
from pilothouse.core.desired import ChartAsk, Defaults, Desired, ReleaseName, Sources, desired
from pilothouse.core.observed import Decoded, Observed, Record
from pilothouse.core.outcome import Ended, Errand
from pilothouse.core.plan import Install, Upgrade
from pilothouse.core.policy import seniority
from pilothouse.core.retry import Attempts
from pilothouse.core.trust import Checked, settled, unchecked
from pilothouse.core.versions import kept_to_deployed, must_look_inside
from pilothouse.errors import Missing, PilothouseError
from pilothouse.faults import NO_CHART, FaultKind
from pilothouse.loop.actions import Actions
from pilothouse.loop.dependencies import Dependencies
from pilothouse.loop.hidden import Hidden
from pilothouse.loop.rivals import Rivals
from pilothouse.loop.sources import SourceReader
from pilothouse.loop.triggers import Claims
from pilothouse.loop.upgrades import Upgrades
from pilothouse.ports import Instances, Releases, Target, Targets


@dataclass(frozen=True, slots=True)
class FoundVersion:
    """The latest version that was found for a chart; it holds until then, or until it is deployed."""

    chart: ChartAsk
    generation: int
    version: str
    until: datetime | None


class Memory:
    """What one process remembers of a key between passes; losing it costs a look, never a mistake."""

    __slots__ = (
        "checked",
        "config",
        "connected",
        "decoded",
        "denied_with",
        "found",
        "hidden",
        "left_behind",
        "made_from",
        "namespace_missing",
        "place",
        "used",
    )

    def __init__(self) -> None:
        self.hidden = Hidden()
        # The ProviderConfig it names or selects, for when that is gone.
        self.config = ""
        # Where it was looked at last: through which ProviderConfig, and for which Helm release.
        self.place: tuple[str, ReleaseName] | None = None
        # The ProviderConfig that its usage names, as far as this process knows.
        self.used = ""
        # How the chart's server was reached when there was no getting the chart.
        self.denied_with: Way | None = None
        # The latest version of a chart that is yet to be deployed.
        self.found: FoundVersion | None = None
        # A Helm release that this one stood for before its name or namespace was changed.
        self.left_behind: ReleaseName | None = None
        self.moved()

    def moved(self) -> None:
        """Forget what is only true of one Helm release on one cluster: elsewhere revisions have the same numbers."""
        self.decoded: Decoded | None = None
        self.made_from: Desired | None = None
        self.namespace_missing = False
        self.checked: Checked | None = None
        # What the connection secret was last made of.
        self.connected: object = None


class Surveyor:
    """Looks, and changes nothing."""

    def __init__(
        self,
        *,
        releases: Releases,
        targets: Targets,
        sources: SourceReader,
        instances: Instances,
        actions: Actions,
        claims: Claims,
        rivals: Rivals,
        upgrades: Upgrades,
        dependencies: Dependencies,
        defaults: Defaults,
    ) -> None:
        self._releases = releases
        self._targets = targets
        self._sources = sources
        self._instances = instances
        self._actions = actions
        self._claims = claims
        self._rivals = rivals
        self._upgrades = upgrades
        self.dependencies = dependencies
        self._defaults = defaults
        self._memory: dict[Key, Memory] = {}

    def memory(self, key: Key) -> Memory:
        """Return what is remembered of a key."""
        return self._memory.setdefault(key, Memory())

    def forget(self, key: Key) -> None:
        """The object is gone."""
        self._memory.pop(key, None)
        self._let_be(self._claims.drop(key))
        self._sources.forget(key)
        self._upgrades.forget(key)
        self.dependencies.forget(key)

    async def wanted(self, key: Key, release: Release, version: str = "") -> Desired:
        """Return what is asked; a deletion needs nothing of its references."""
        hidden = self.memory(key).hidden
        if release.metadata.deletion_timestamp:
            # Its hooks and objects may still tell what they were given.
            secrets = hidden.note(await self._sources.secrets(key, release))
            return desired(release, Sources(values={}, secrets=secrets), self._defaults)
        sources = await self._sources.resolve(key, release)
        sources = replace(sources, secrets=hidden.note(sources.secrets))
        asked = desired(release, sources, self._defaults, version=version)
        return kept_to_deployed(release, asked)

    async def with_offer(
        self, key: Key, release: Release, wanted: Desired, target: Target
    ) -> Desired:
        """Return what is asked with the version that a range comes to now."""
        record = _newest(target, release, wanted)
        memory = self.memory(key)
        if record and must_look_inside(release, record, memory.decoded):
            memory.decoded = await target.decode(wanted.release, record.revision)
        offer = await self._upgrades.settle(key, release, wanted, record, memory.decoded)
        if offer and offer.version:
            wanted = await self.wanted(key, release, offer.version)
        wanted = replace(wanted, offer=offer) if offer else wanted
        return settled(release, wanted, record, memory.checked)

    def is_acting(self, key: Key) -> bool:
        """Whether an action is under way."""
        return self._actions.running(key) is not None

    def deployed(self, key: Key) -> None:
        """An action has ended: another version may be deployed, which is another question."""
        self._upgrades.deployed(key)

    def config_of(self, release: Release) -> str:
        """Name the ProviderConfig of a Release."""
        return self._targets.config_of(release)

    def cluster_of(self, key: Key, release: Release) -> str:
        """Name the ProviderConfig of a Release as long as anybody knows it; then empty."""
        memory = self.memory(key)
        with contextlib.suppress(Missing):
            memory.config = self.config_of(release)
        return memory.config

    def attempts(self, key: Key, release: Release, wanted: Desired) -> Attempts:
        """Return what was tried; who has another way to the chart than before need not wait for the next try."""
        denied_with = self.memory(key).denied_with
        attempts = attempts_of(release)
        if denied_with is None or denied_with == wanted.chart.way:
            return attempts
        return replace(attempts, asked_for_now=True)

    def errand(self, key: Key, release: Release) -> Errand:
        """Say for whom something is done, and where."""
        return Errand(release.metadata.uid, self.cluster_of(key, release))

    def is_about(self, key: Key, release: Release, wanted: Desired, ended: Ended) -> bool:
        """Whether an action was for the Helm release that the Release stands for now, on its cluster."""
        here = self.errand(key, release), wanted.release
        return (ended.errand, ended.desired.release) == here

    def learn(self, key: Key, ended: Ended) -> None:
        """Remember of an action what no other look tells."""
        memory, fault = self.memory(key), ended.outcome.fault
        memory.namespace_missing = bool(fault and fault.kind is FaultKind.NAMESPACE_MISSING)
        no_chart = fault and fault.kind in NO_CHART
        memory.denied_with = ended.desired.chart.way if no_chart else None
        if fault is None and isinstance(ended.plan, Install | Upgrade):
            memory.made_from = ended.desired

    def has_moved(self, key: Key, release: Release, wanted: Desired) -> bool:
        """Whether it stands for another Helm release, or has another ProviderConfig, than at the last look.

        New credentials of the same one are no move: an action goes on, and a fight is not begun anew.
        """
        memory = self.memory(key)
        before, memory.place = memory.place, (self.cluster_of(key, release), wanted.release)
        return before is not None and before != memory.place

    async def reach(self, key: Key, release: Release, wanted: Desired) -> Target:
        """Return the cluster of a Release; its eyes look after the release from now on."""
        self.cluster_of(key, release)
        target = await self._targets.reach(release)
        before = self._claims.put(key, target.id, wanted.release)
        self._let_be(before)
        if before:
            self.memory(key).moved()
        if before and before[1] != wanted.release and release.status.at_provider.revision:
            self.memory(key).left_behind = before[1]
        await target.attend(attention_to(release, wanted))
        return target

    def _let_be(self, claim: tuple[str, ReleaseName] | None) -> None:
        """What a Release stood for is looked after no longer, unless by another."""
        if claim and not self._claims.of_release(*claim):
            self._targets.disregard(*claim)

    async def observe(
        self, key: Key, release: Release, wanted: Desired, target: Target
    ) -> Observed:
        """Return what is there."""
        memory = self.memory(key)
        record = _newest(target, release, wanted)
        before = target.before(wanted.release, record.revision) if record else []
        before = [with_stamp(one, release.status.chart) for one in before]
        running = self._actions.running(key)
        owner_alive = None
        if record and record.pending and record.owner and not running:
            owner_alive = await self._instances.alive(record.owner)
        return Observed(
            record=record,
            objects=target.objects_of(wanted.release),
            decoded=memory.decoded,
            running=running,
            made_from=memory.made_from,
            namespace_missing=memory.namespace_missing,
            good=last_good(before),
            owner_alive=owner_alive,
            holder=await self._holder(key, release, target),
            patches_sha=release.status.patches_sha,
            stamps=stamps_of(before) if record and not record.digest else {},
            noted=release.status.chart,
            version_told=bool(release.status.at_provider.version),
            unchecked=unchecked(release, wanted, record, memory.checked),
        )

    async def deployed_version(
        self, key: Key, release: Release, wanted: Desired, target: Target
    ) -> str:
        """Return the version of that chart in Helm's record, if the status does not tell: it stands."""
        record = _newest(target, release, wanted)
        if record is None:
            return ""
        memory = self.memory(key)
        name, version = record.chart_name, record.chart_version
        if not version:
            if memory.decoded is None or memory.decoded.revision != record.revision:
                memory.decoded = await target.decode(wanted.release, record.revision)
            name, version = memory.decoded.chart_name, memory.decoded.chart_version
        if name != wanted.chart.name:
            return ""
        if not comes_from_elsewhere(release):
            return version
        # The status may only not tell yet what was done last; the stamp of the record does.
        asked = await self.wanted(key, release, version)
        return version if asked.digest == record.digest else ""

    async def _holder(self, key: Key, release: Release, target: Target) -> str:
        """Name the older Release that stands for the same Helm release on the same cluster."""
        others = [self._releases.get(one) for one in self._rivals.of(key)]
        elders = [one for one in others if one and seniority(one) < seniority(release)]
        for elder in sorted(elders, key=seniority):
            if await self._is_on(elder, target):
                return elder.metadata.name
        return ""

    async def _is_on(self, release: Release, target: Target) -> bool:
        try:
            theirs = await self._targets.reach(release)
            # Other credentials may still lead to the same cluster.
            return theirs.id == target.id or await theirs.identity() == await target.identity()
        except PilothouseError:
            return False  # it cannot reach any cluster, so it cannot hold anything there


def _newest(target: Target, release: Release, wanted: Desired) -> Record | None:
    record = target.record(wanted.release)
    return record and with_stamp(record, release.status.chart)
