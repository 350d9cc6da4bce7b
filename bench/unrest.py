"""What happens to the releases of a soak: edits, hands in their objects, and ends of processes.

All of it is planned beforehand from one seed, so that a run can be repeated; only the moments at which the
processes come to it differ.
"""

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kube import MERGE
from releases import CONFIG_MAPS, NAMESPACE, RELEASES

STRATEGIC = "application/strategic-merge-patch+json"
SERVICES = f"/api/v1/namespaces/{NAMESPACE}/services"
ACCOUNTS = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
# Five corrections of one place in five minutes are a fight, which rightly ends with a place not put back.
_MOST_TOUCHES, _WINDOW_SECONDS = 3, 330.0
# So often, in ten minutes, each process ends.
_BRAIN_ENDS, _ENGINE_ENDS, _API_ENDS = 4, 10, 6
_BURST = 3


class Victim(StrEnum):
    """A process that ends."""

    BRAIN_KILLED = "brain killed"
    BRAIN_STOPPED = "brain stopped"
    ENGINE = "engine killed"
    API_SERVER = "API server killed"


@dataclass(frozen=True, slots=True)
class Edit:
    """New values of one Release, written one right after another."""

    at: float
    release: str
    values: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Touch:
    """A hand in one object of a release; without a patch the object is deleted."""

    at: float
    release: str
    what: str
    path: str
    patch: dict[str, Any] | None = None
    content: str = MERGE


@dataclass(frozen=True, slots=True)
class End:
    """The end of a process."""

    at: float
    victim: Victim


@dataclass(slots=True)
class Plan:
    """All that will happen, each part in order of time."""

    edits: list[Edit] = field(default_factory=list)
    touches: list[Touch] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)

    def deeds(self) -> list[Edit | Touch]:
        """What is done to releases, in order."""
        return sorted([*self.edits, *self.touches], key=lambda deed: deed.at)


def plan(seed: int, names: list[str], seconds: float, *, rate: float, ends: float = 1.0) -> Plan:
    """Plan so many deeds a second, half of them edits and half drift, and the ends of processes."""
    chance = random.Random(seed)  # noqa: S311 - to be repeatable, not secret
    made, touched = Plan(), defaultdict[tuple[str, str], list[float]](list)
    for number in range(int(seconds * rate)):
        at, release = number / rate, chance.choice(names)
        if chance.random() < 1 / 2:
            made.edits.append(_edit(chance, at, release, number))
            continue
        touch = _touch(chance, at, release, number)
        before = touched[release, touch.path.removesuffix("/scale")]
        if sum(at - one < _WINDOW_SECONDS for one in before) < _MOST_TOUCHES:
            before.append(at)
            made.touches.append(touch)
    made.ends = sorted(_ends(chance, seconds, ends), key=lambda end: end.at)
    return made


def _edit(chance: random.Random, at: float, release: str, number: int) -> Edit:
    """Every value is written once only, so that a revision tells which edit asked for it."""
    times = _BURST if chance.random() < 1 / 4 else 1
    values = tuple(
        {"message": f"edit {number}.{part}", "replicas": chance.choice((1, 1, 1, 2))}
        for part in range(times)
    )
    return Edit(at, release, values)


def _touch(chance: random.Random, at: float, release: str, number: int) -> Touch:
    config_map, service = f"{CONFIG_MAPS}/{release}", f"{SERVICES}/{release}"
    deployment, account = f"{DEPLOYMENTS}/{release}", f"{ACCOUNTS}/{release}"
    image = {"containers": [{"name": "main", "image": f"registry.example/by-hand:{number}"}]}
    scale = {"spec": {"replicas": 3}}
    return chance.choice(
        (
            Touch(at, release, "data edited", config_map, {"data": {"message": f"hand {number}"}}),
            Touch(at, release, "data removed", config_map, {"data": {"message": None}}),
            Touch(at, release, "scaled", deployment, scale),
            Touch(at, release, "scaled", f"{deployment}/scale", scale),
            Touch(
                at,
                release,
                "image changed",
                deployment,
                {"spec": {"template": {"spec": image}}},
                STRATEGIC,
            ),
            # Not its port: an element of a list that another manager put in the place of the chart's is not
            # removed by server-side apply, and the API server refuses what both would make together.
            Touch(
                at, release, "selector changed", service, {"spec": {"selector": {"app": "other"}}}
            ),
            *(
                Touch(at, release, "deleted", path)
                for path in (config_map, service, deployment, account)
            ),
        )
    )


def _ends(chance: random.Random, seconds: float, times: float) -> Iterator[End]:
    """Spread the ends so that memory can be compared: early and late, nothing is started anew.

    In the first two tenths and the last four brain and engine live on; the brain, from four tenths on.
    """
    share = times * seconds / 600

    def moments(count: int, begin: float, end: float) -> Iterator[float]:
        for _ in range(max(1, round(count * share))):
            yield chance.uniform(begin, end) * seconds

    for at in moments(_BRAIN_ENDS, 0.2, 0.4):
        yield End(at, chance.choice((Victim.BRAIN_KILLED, Victim.BRAIN_STOPPED)))
    for at in moments(_ENGINE_ENDS, 0.2, 0.6):
        yield End(at, Victim.ENGINE)
    for at in moments(_API_ENDS, 0.05, 0.95):
        yield End(at, Victim.API_SERVER)


@dataclass(slots=True)
class Written:
    """What a Release asks for by now, and everything that it ever asked for."""

    message: str
    replicas: int = 1
    messages: set[str] = field(default_factory=set)

    def write(self, values: dict[str, Any]) -> None:
        """Take in an edit that was accepted."""
        self.message, self.replicas = values["message"], values["replicas"]
        self.messages.add(self.message)


def release_path(name: str) -> str:
    """Where a Release is."""
    return f"{RELEASES}/{name}"
