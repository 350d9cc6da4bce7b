"""What a Release depends on: whether it is ready, who waits for whom, what goes first.

Dependencies hold back installs and upgrades, nothing else: what runs stays as it is, and stays Ready, when
something it depends on falls.
"""

import hashlib
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from pilothouse.api.release import Release
from pilothouse.api.status import DependencyState, ReleaseStatus
from pilothouse.core.attention import Attention, HealthCheck
from pilothouse.core.conditions import READY, SYNCED, condition, find, merge, moment
from pilothouse.core.desired import Desired, ReleaseName
from pilothouse.core.observed import Health, ObjectRef
from pilothouse.core.plan import CreateNamespace, Install, Plan, Stop, Uninstall, Upgrade, Wait
from pilothouse.core.spelling import spelled
from pilothouse.faults import FaultKind

DEPENDENCIES_READY = "DependenciesReady"
NOT_READY, IN_A_CYCLE, DEPENDED_ON = "DependencyNotReady", "DependencyCycle", "DependedOn"
# Dependants that are deleted in the same breath may be a moment behind.
DELETION_GRACE = timedelta(seconds=5)
# How soon to look again when a dependency is about to be looked at.
SHORTLY = timedelta(milliseconds=50)
LONGEST_MESSAGE = 300
_API_VERSION, _GROUP, _KIND = "helm.crossplane.io/v1beta1", "helm.crossplane.io", "Release"
# What the engine calls the expression, which it knows as a health check.
_ORIGIN = "dependsOn"
_CALLED = f"{_ORIGIN}.current"
# What a dependency may be about to bring: a Secret, the cluster itself, a chart repository.
_MAY_COME = frozenset(
    {
        FaultKind.NOT_FOUND,
        FaultKind.UNREACHABLE,
        FaultKind.UNAUTHORIZED,
        FaultKind.CHART_NOT_FOUND,
        FaultKind.CHART_UNAVAILABLE,
    }
)


@dataclass(frozen=True, slots=True)
class Dependency:
    """One object that must be ready; `origin` is its field."""

    origin: str
    ref: ObjectRef
    # The ProviderConfig of its cluster; empty: the cluster that Releases are on.
    config: str = ""
    ready: str = ""

    @property
    def release(self) -> str:
        """Its name if it is one of our Releases."""
        ours = self.ref.api_version.split("/")[0] == _GROUP and self.ref.kind == _KIND
        return self.ref.name if ours and not self.config else ""

    def attention(self) -> Attention:
        """Return how the engine is to look at it; the same for everyone who asks the same."""
        ref = self.ref
        said = [ref.api_version, ref.kind, ref.namespace, ref.name, self.ready]
        name = f"{_ORIGIN}-{hashlib.sha256(spelled(said).encode()).hexdigest()[:16]}"
        check = HealthCheck(_ORIGIN, ref.api_version, ref.kind, current=self.ready)
        checks = (check,) if self.ready else ()
        return Attention(ReleaseName("", name), checks=checks, external=(ref,))

    def in_its_words(self, message: str) -> str:
        """Put what the engine said of the expression into the words of the field."""
        return message.replace(_CALLED, f"{self.origin}.ready")

    def __str__(self) -> str:
        where = f"{self.ref.namespace}/{self.ref.name}" if self.ref.namespace else self.ref.name
        at = f' on ProviderConfig "{self.config}"' if self.config else ""
        return f'{self.ref.kind} "{where}"{at}'


@dataclass(frozen=True, slots=True)
class Standing:
    """How one dependency is."""

    dependency: Dependency
    health: Health
    message: str = ""


@dataclass(frozen=True, slots=True)
class Needs:
    """Everything one Release depends on."""

    standings: tuple[Standing, ...] = ()
    # The names from this Release back to itself; empty when there is no such way.
    cycle: tuple[str, ...] = ()
    # A dependency is about to be looked at: what is known of it may be yesterday's.
    unsettled: bool = False

    @property
    def ready(self) -> bool:
        """Whether nothing is missing."""
        return not self.cycle and all(one.health is Health.CURRENT for one in self.standings)

    def why(self) -> tuple[str, str]:
        """Return the reason and the sentence for what is missing."""
        if self.cycle:
            way = " → ".join(self.cycle)
            return IN_A_CYCLE, f"spec.dependsOn: {way} depend on each other: remove one of them"
        missing = [one for one in self.standings if one.health is not Health.CURRENT]
        if not missing:
            return "Available", ""
        first, more = missing[0], len(missing) - 1
        said = f"waiting for {first.dependency}, which is {first.health}"
        return NOT_READY, said + (f", and {more} more" if more else "")


NOTHING_NEEDED = Needs()


@dataclass(frozen=True, slots=True)
class Dependants:
    """Other Releases that depend on one, by name: those being deleted too, and those that are not."""

    leaving: tuple[str, ...] = ()
    staying: tuple[str, ...] = ()


def dependencies_of(release: Release) -> tuple[Dependency, ...]:
    """Read what a Release depends on. Raises ValueError, naming the field."""
    found = []
    for number, one in enumerate(release.spec.depends_on):
        origin = f"spec.dependsOn[{number}]"
        if bool(one.api_version) != bool(one.kind):
            msg = f"{origin}: give apiVersion and kind, or neither for a Release"
            raise ValueError(msg)
        api_version, kind = one.api_version or _API_VERSION, one.kind or _KIND
        config = one.provider_config_ref.name if one.provider_config_ref else ""
        ours = Dependency(origin, ObjectRef(api_version, kind, "", one.name), config, one.ready)
        if ours.release:
            found.append(ours)
            continue
        namespace = one.namespace or release.spec.for_provider.namespace
        ref = ObjectRef(api_version, kind, namespace, one.name)
        found.append(Dependency(origin, ref, config, one.ready))
    return tuple(found)


def judge(release: Release | None) -> tuple[Health, str]:
    """Say how a Release is as a dependency: ready only for its newest spec."""
    if release is None:
        return Health.NOT_FOUND, ""
    if release.metadata.deletion_timestamp:
        return Health.TERMINATING, "it is being deleted"
    ready = find(release.status.conditions, READY)
    if ready is None or ready.observed_generation != release.metadata.generation:
        return Health.IN_PROGRESS, "its newest spec has not been carried out yet"
    if ready.status == "True":
        return Health.CURRENT, ""
    synced = find(release.status.conditions, SYNCED)
    # Only the reasons: a message may change with every Pod, and each change would wake all dependants.
    if synced and synced.status != "True":
        return Health.IN_PROGRESS, f"it is not synced: {synced.reason}"
    return Health.IN_PROGRESS, f"it is not ready: {ready.reason}"


def cycle_through(start: str, edges: Callable[[str], Collection[str]]) -> tuple[str, ...]:
    """Return the shortest way along the edges from a name back to itself; empty when there is none."""
    came_from: dict[str, str] = {}
    ahead = deque([start])
    while ahead:
        here = ahead.popleft()
        for there in sorted(edges(here)):
            if there == start:
                way = [start, here]
                while way[-1] != start:
                    way.append(came_from[way[-1]])
                return tuple(reversed(way))
            if there not in came_from:
                came_from[there] = here
                ahead.append(there)
    return ()


def gate(plan: Plan, needs: Needs, now: datetime) -> Plan:
    """Hold back what must wait for dependencies."""
    if not isinstance(plan, Install | Upgrade | CreateNamespace):
        return plan
    if not needs.ready:
        return Stop(*needs.why())
    if needs.unsettled:
        return Wait("a dependency is being looked at", until=now + SHORTLY)
    return plan


def in_order(
    plan: Plan, desired: Desired, release: Release, dependants: Dependants, now: datetime
) -> Plan:
    """Let dependants that are being deleted too go first; others only for a moment."""
    if not isinstance(plan, Uninstall) or not desired.absent:
        return plan
    if dependants.leaving:
        said = f"to be removed after {_releases(dependants.leaving)}, which depends on it"
        return Stop(DEPENDED_ON, said)
    if not dependants.staying:
        return plan
    others = _releases(dependants.staying)
    until = (moment(release.metadata.deletion_timestamp) or now) + DELETION_GRACE
    if now < until:
        seconds = int(DELETION_GRACE.total_seconds())
        said = f"{others} depends on it and stays: it is removed {seconds} s after its deletion"
        return Stop(DEPENDED_ON, said, until=until)
    return Uninstall(f"{plan.reason}, though {others} depends on it")


def conclude_waiting(release: Release, needs: Needs, now: datetime) -> ReleaseStatus:
    """Return the status of a Release that cannot even be judged before its dependencies are there."""
    reason, said = needs.why()
    generation = release.metadata.generation
    both = [
        condition(kind, true=False, reason=why, message=said, generation=generation, now=now)
        for kind, why in ((SYNCED, reason), (READY, "Unavailable"))
    ]
    return msgspec.structs.replace(
        release.status,
        conditions=merge(release.status.conditions, *both),
        observed_generation=generation,
        synced=False,
        next_attempt=None,
    )


def excuses(release: Release, needs: Needs, kind: FaultKind) -> bool:
    """Whether what a first install lacks may be what its dependencies are about to bring."""
    unborn = not release.status.at_provider.revision and not release.metadata.deletion_timestamp
    return unborn and not needs.ready and kind in _MAY_COME


def with_dependencies(
    release: Release, status: ReleaseStatus, needs: Needs, now: datetime
) -> ReleaseStatus:
    """Return the status with what the Release depends on."""
    if release.metadata.deletion_timestamp:
        return status
    if not needs.standings:
        kept = [one for one in status.conditions if one.type != DEPENDENCIES_READY]
        return msgspec.structs.replace(status, conditions=kept, dependencies=[])
    reason, said = needs.why()
    told = condition(
        DEPENDENCIES_READY,
        true=needs.ready,
        reason=reason,
        message=said,
        generation=release.metadata.generation,
        now=now,
    )
    return msgspec.structs.replace(
        status,
        conditions=merge(status.conditions, told),
        dependencies=[_state(one) for one in needs.standings],
    )


def _state(one: Standing) -> DependencyState:
    ref, message = one.dependency.ref, one.message
    if len(message) > LONGEST_MESSAGE:
        message = message[: LONGEST_MESSAGE - 1] + "…"
    return DependencyState(
        api_version=ref.api_version,
        kind=ref.kind,
        namespace=ref.namespace,
        name=ref.name,
        provider_config=one.dependency.config,
        state=str(one.health),
        message=message,
    )


def _releases(names: tuple[str, ...]) -> str:
    """Name the first, and count the others: a list could be long."""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f'Release "{names[0]}"{more}'
