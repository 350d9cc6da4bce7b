"""The latest version is found once for each attempt, and is no other one until that has ended."""

from datetime import timedelta

import msgspec
import pytest
from make import HandClock, record, release

from pilothouse.api.meta import Key
from pilothouse.api.release import Release
from pilothouse.core.desired import ChartAsk, Desired, desired
from pilothouse.core.outcome import Ended, Fault, Outcome
from pilothouse.core.plan import Install, Rollback
from pilothouse.core.versions import DEFAULT_INTERVAL
from pilothouse.errors import Conflict, NotPermitted
from pilothouse.faults import FaultKind
from pilothouse.loop.late_versions import LateVersions
from pilothouse.loop.survey import Memory
from pilothouse.ports import ResolvedChart

SHOP = Key("releases.helm.crossplane.io", "", "shop")
OPEN = release(version="")


class Scene:
    """A repository where a new version is published every time it is asked, and what is on the cluster."""

    def __init__(self) -> None:
        self.remembered, self.clock = Memory(), HandClock()
        self.acting, self.deployed, self.asked = False, "", 0
        self.refuses: Exception | None = None
        self.written: list[dict[str, str]] = []
        self.versions = LateVersions(self, self, self.clock)  # type: ignore[arg-type]

    def memory(self, _: Key) -> Memory:
        return self.remembered

    def is_acting(self, _: Key) -> bool:
        return self.acting

    async def with_offer(self, _: Key, __: Release, wanted: Desired, ___: object) -> Desired:
        return wanted

    async def deployed_version(self, *_: object) -> str:
        return self.deployed

    async def wanted(self, _: Key, one: Release, version: str) -> Desired:
        return desired(one, version=version)

    async def resolve_chart(self, chart: ChartAsk) -> ResolvedChart:
        self.asked += 1
        return ResolvedChart(name=chart.name, version=f"1.{self.asked}.0", digest="d")

    async def late_initialize(self, one: Release, chart: dict[str, str]) -> Release:
        if self.refuses:
            raise self.refuses
        self.written.append(chart)
        return one

    async def settle(self, one: Release = OPEN) -> Desired:
        return await self.versions.settle(SHOP, one, desired(one), self)  # type: ignore[arg-type]

    async def version(self) -> str:
        return (await self.settle()).chart.version


def ended(made: Desired, kind: FaultKind | None = None, *, revision: bool = True) -> Ended:
    fault = Fault(kind, "it broke") if kind else None
    kept = record(1, "failed" if kind else "deployed", made.digest, chart_name="tiny")
    return Ended(made, Install("x"), Outcome(record=kept if revision else None, fault=fault))


async def test_it_stays_from_the_look_to_the_end_of_the_action() -> None:
    scene = Scene()
    assert await scene.version() == "1.1.0"
    assert await scene.version() == "1.1.0"
    scene.acting = True
    scene.clock.moment += 2 * DEFAULT_INTERVAL
    assert await scene.version() == "1.1.0", "what is under way is about it"
    assert scene.written == [], "nothing is deployed yet"


async def test_what_is_held_up_for_long_gets_what_is_the_latest_then() -> None:
    scene = Scene()
    assert await scene.version() == "1.1.0"
    scene.clock.moment += DEFAULT_INTERVAL + timedelta(seconds=1)
    assert await scene.version() == "1.2.0"


async def test_what_is_deployed_stands() -> None:
    scene = Scene()
    scene.deployed = "1.0.5"
    assert await scene.version() == "1.0.5"
    assert scene.asked == 0


async def test_after_an_attempt_without_a_revision_the_latest_is_looked_for_again() -> None:
    scene = Scene()
    made = await scene.settle()
    scene.versions.attempted(SHOP, ended(made, FaultKind.RENDER, revision=False))
    assert await scene.version() == "1.2.0"


async def test_failed_revisions_are_counted_of_one_version() -> None:
    scene = Scene()
    made = await scene.settle()
    scene.versions.attempted(SHOP, ended(made, FaultKind.HOOK))
    undone = Ended(made, Rollback(1, "d", "x"), Outcome(record=record(2, digest="d")))
    scene.versions.attempted(SHOP, undone)
    scene.clock.moment += 2 * DEFAULT_INTERVAL
    assert await scene.version() == "1.1.0"
    edited = msgspec.structs.replace(OPEN.metadata, generation=OPEN.metadata.generation + 1)
    newer = await scene.settle(msgspec.structs.replace(OPEN, metadata=edited))
    assert newer.chart.version == "1.2.0", "who edits the spec asks anew"


async def test_what_was_found_is_filled_in_when_it_is_deployed() -> None:
    scene = Scene()
    made = await scene.settle()
    for kind in (FaultKind.RENDER, FaultKind.HOOK):
        await scene.versions.fill_in(OPEN, made, ended(made, kind))
    assert scene.written == []
    scene.refuses = Conflict("written by another", FaultKind.CONFLICT)
    with pytest.raises(Conflict):
        await scene.versions.fill_in(OPEN, made, ended(made))
    scene.refuses = NotPermitted("refused by a policy", FaultKind.FORBIDDEN)
    assert await scene.versions.fill_in(OPEN, made, ended(made)) is OPEN, "it stands without it"
    scene.refuses = None
    await scene.versions.fill_in(OPEN, made, ended(made))
    assert scene.written == [{"version": "1.1.0"}]
