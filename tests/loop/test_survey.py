"""What a pass remembers is about one Helm release on one cluster."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from make import NOW, HandClock, record, release

from pilothouse.api.meta import Key
from pilothouse.api.references import ProviderConfigReference
from pilothouse.api.release import EXTERNAL_NAME, Release
from pilothouse.api.status import DeployedChart, ReleaseStatus
from pilothouse.core.conclude import conclude_elsewhere
from pilothouse.core.desired import Defaults, ReleaseName, desired
from pilothouse.core.observed import Decoded, Record
from pilothouse.core.outcome import Ended, Fault, Outcome
from pilothouse.core.plan import Install
from pilothouse.core.state import State, StateName, classify
from pilothouse.faults import FaultKind
from pilothouse.loop.actions import Actions
from pilothouse.loop.dependencies import Dependencies
from pilothouse.loop.queue import KeyedQueue
from pilothouse.loop.rivals import Rivals
from pilothouse.loop.sources import SourceReader
from pilothouse.loop.statuses import Statuses
from pilothouse.loop.survey import Surveyor
from pilothouse.loop.triggers import Claims
from pilothouse.loop.upgrades import Upgrades

SHOP = Key("releases.helm.crossplane.io", "", "shop")
HERE = {"message": "hello"}
THERE = {"message": "another's"}


class Cluster:
    """One where somebody else has installed every release as revision 1, with the same values."""

    def __init__(self, name: str, values: dict[str, Any]) -> None:
        self.id, self.values = name, values

    async def attend(self, _: object) -> None:
        """It looks after everything."""

    def record(self, _: ReleaseName) -> Record:
        return record(1, uid=f"record on {self.id}")

    def objects_of(self, _: ReleaseName) -> None:
        """Nobody has looked at them."""

    def before(self, *_: object) -> list[Record]:
        """It is the first."""
        return []

    async def decode(self, one: ReleaseName, revision: int) -> Decoded:
        values = THERE if one.name == "other" else self.values
        return Decoded(revision, "tiny", "1.0.0", values)


class Clusters:
    """Two of them, and nothing that anything refers to."""

    def __init__(self) -> None:
        self.by_name = {"here": Cluster("here", HERE), "there": Cluster("there", THERE)}

    def config_of(self, one: Release) -> str:
        return one.spec.provider_config_ref.name

    async def reach(self, one: Release) -> Cluster:
        return self.by_name[self.config_of(one)]

    def disregard(self, *_: object) -> None:
        """Nobody looks after it any more."""

    def used_by(self, *_: object) -> None:
        """It refers to nothing."""

    def get(self, _: Key) -> None:
        """Nobody has seen it yet."""


@asynccontextmanager
async def surveying() -> AsyncIterator[Surveyor]:
    queue, clusters = KeyedQueue(), Clusters()
    doors: Any = clusters
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        statuses = Statuses(doors, doors, queue, HandClock())
        yield Surveyor(
            releases=doors,
            targets=doors,
            sources=SourceReader(doors, doors, "default"),
            instances=doors,
            actions=Actions(tasks, 1, "us", queue.add, lambda _: None, doors),
            claims=Claims(),
            rivals=Rivals(),
            upgrades=Upgrades(tasks, doors, queue),
            dependencies=Dependencies(statuses, doors, queue),
            defaults=Defaults(),
        )
    queue.close()


def on(config: str, name: str = "shop") -> Release:
    one = release(HERE, annotations={EXTERNAL_NAME: name})
    named = ProviderConfigReference(name=config)
    spec = msgspec.structs.replace(one.spec, provider_config_ref=named)
    return msgspec.structs.replace(one, spec=spec)


async def seen(surveyor: Surveyor, one: Release, *, inspect: bool = False) -> State:
    wanted = await surveyor.wanted(SHOP, one)
    target = await surveyor.reach(SHOP, one, wanted)
    if inspect:
        surveyor.memory(SHOP).decoded = await target.decode(wanted.release, 1)
    return classify(wanted, await surveyor.observe(SHOP, one, wanted, target), NOW)


@pytest.mark.parametrize("moved", [on("there"), on("here", "other")], ids=["cluster", "name"])
async def test_a_revision_elsewhere_is_another_though_its_number_is_the_same(moved) -> None:
    async with surveying() as surveyor:
        assert (await seen(surveyor, on("here"))).name is StateName.UNMANAGED
        assert (await seen(surveyor, on("here"), inspect=True)).name is StateName.IN_SYNC
        assert (await seen(surveyor, on("here"))).name is StateName.IN_SYNC, "remembered"
        assert (await seen(surveyor, moved)).name is StateName.UNMANAGED, "yet to be read"
        assert (await seen(surveyor, moved, inspect=True)).name is StateName.OUT_OF_SYNC


async def test_the_status_tells_what_a_record_was_made_from_that_has_lost_its_stamp() -> None:
    async with surveying() as surveyor:
        for uid, state in (("record on here", StateName.IN_SYNC), ("x", StateName.UNMANAGED)):
            one = on("here")
            wanted = await surveyor.wanted(SHOP, one)
            noted = DeployedChart(record=uid, stamp=wanted.digest)
            one = msgspec.structs.replace(one, status=ReleaseStatus(chart=noted))
            assert (await seen(surveyor, one)).name is state


@pytest.mark.parametrize("moved", [on("there"), on("here", "other")], ids=["cluster", "name"])
async def test_an_action_is_about_the_place_it_was_done_in(moved) -> None:
    async with surveying() as surveyor:
        first = await surveyor.wanted(SHOP, on("here"))
        errand = surveyor.errand(SHOP, on("here"))
        ended = Ended(first, Install("not installed"), Outcome(), errand)
        for one, has_moved in ((on("here"), False), (on("here"), False), (moved, True)):
            wanted = await surveyor.wanted(SHOP, one)
            assert surveyor.has_moved(SHOP, one, wanted) is has_moved
            assert surveyor.is_about(SHOP, one, wanted, ended) is not has_moved
        assert not surveyor.has_moved(SHOP, moved, await surveyor.wanted(SHOP, moved))


def test_what_ended_elsewhere_is_recorded_and_tells_nothing_of_here() -> None:
    """Neither its revision nor its failure is that of the release that the spec names now."""
    one = release(HERE)
    failed = Outcome(record(1, "failed"), Fault(FaultKind.TIMEOUT, "not ready in time"))
    for outcome in (failed, Outcome(record(1, "deployed"))):
        said = conclude_elsewhere(one, Ended(desired(one), Install("first"), outcome), NOW)
        assert said.status == one.status
        assert said.again_now
        assert said.entry
        assert said.entry.error == (outcome.fault.message if outcome.fault else "")
