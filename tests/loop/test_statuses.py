"""What a pass concludes is known at once, told in time, and never lost while somebody listens."""

import asyncio
from datetime import timedelta

import msgspec
import pytest
from make import HandClock, release

from pilothouse.api.meta import Condition, Key
from pilothouse.api.release import Release
from pilothouse.api.status import LastAttempt, ReleaseStatus
from pilothouse.core.pace import AGAIN, BEGUN, DETAILS, ENDED, IN_LINE, LONGEST
from pilothouse.errors import Missing, Unavailable
from pilothouse.faults import FaultKind
from pilothouse.loop.queue import KeyedQueue
from pilothouse.loop.statuses import AFTER_OUTAGE, Statuses

SHOP = Key("releases.helm.crossplane.io", "", "shop")
A_MOMENT = timedelta(milliseconds=1)


def status(reason: str, *, synced: bool, ready: bool, finished: str | None = None) -> ReleaseStatus:
    def said(kind: str, *, true: bool) -> Condition:
        return Condition(
            type=kind, status=str(true), reason=reason, last_transition_time="2026-11-15T12:00:00Z"
        )

    return ReleaseStatus(
        conditions=[said("Synced", true=synced), said("Ready", true=ready)],
        last_attempt=LastAttempt(finished=finished),
    )


INSTALLING = status("Reconciling", synced=False, ready=False)
INSTALLED = status("ReconcileSuccess", synced=True, ready=False, finished="2026-11-15T12:00:00Z")
RUNS = status("ReconcileSuccess", synced=True, ready=True, finished="2026-11-15T12:00:00Z")
FAILED = status("HookFailed", synced=False, ready=False, finished="2026-11-15T12:00:00Z")
DETAIL = msgspec.structs.replace(RUNS, summary="1/2")


class Cluster:
    """Where Releases are; what is written is seen."""

    def __init__(self) -> None:
        self.one: Release | None = release()
        self.written: list[ReleaseStatus] = []
        self.refuses: Exception | None = None
        self.heard = asyncio.Event()

    def get(self, _: Key) -> Release | None:
        return self.one

    async def status(self, one: Release, new: ReleaseStatus) -> Release:
        if self.refuses:
            raise self.refuses
        assert self.one
        assert one.status == self.one.status, "what differs is counted from what everybody can read"
        self.written.append(new)
        self.one = msgspec.structs.replace(one, status=new)
        self.heard.set()
        return self.one


class Told:
    """Statuses over a cluster, a queue and a clock."""

    def __init__(self) -> None:
        self.cluster, self.queue, self.clock = Cluster(), KeyedQueue(), HandClock()
        self.statuses = Statuses(self.cluster, self.cluster, self.queue, self.clock)  # type: ignore[arg-type]

    async def write(self, new: ReleaseStatus) -> Release:
        assert self.cluster.one
        one = self.statuses.known(SHOP, self.cluster.one)
        written = await self.statuses.write(SHOP, one, new)
        assert written.status == new
        assert self.statuses.known(SHOP, self.cluster.one).status == new, "known at once"
        return written

    async def after(self, wait: timedelta) -> list[ReleaseStatus]:
        self.clock.moment += wait
        await self.statuses.tell_due(SHOP)
        return self.cluster.written


async def test_a_short_install_is_told_when_it_runs() -> None:
    told = Told()
    await told.write(INSTALLING)
    told.clock.moment += BEGUN / 2
    await told.write(INSTALLED)
    told.clock.moment += ENDED / 2
    await told.write(RUNS)
    assert await told.after(LONGEST) == [RUNS]


async def test_a_long_one_is_told_step_by_step() -> None:
    told = Told()
    await told.write(INSTALLING)
    told.statuses.begun(SHOP)
    assert await told.after(BEGUN - A_MOMENT) == []
    assert await told.after(A_MOMENT) == [INSTALLING]
    told.clock.moment += timedelta(minutes=1)
    await told.write(INSTALLED)
    assert await told.after(ENDED - A_MOMENT) == [INSTALLING]
    assert await told.after(A_MOMENT) == [INSTALLING, INSTALLED]


async def test_whoever_waits_in_the_line_is_told_so() -> None:
    told = Told()
    await told.write(INSTALLING)
    assert await told.after(IN_LINE - A_MOMENT) == []
    told.statuses.begun(SHOP)
    assert await told.after(A_MOMENT) == [INSTALLING], "its turn makes nobody wait longer"


async def test_an_upgrade_is_told_within_a_second() -> None:
    told = Told()
    await told.write(RUNS)
    await told.write(INSTALLING)
    told.statuses.begun(SHOP)
    assert await told.after(AGAIN - A_MOMENT) == [RUNS]
    assert await told.after(A_MOMENT) == [RUNS, INSTALLING]


async def test_a_verdict_waits_for_nothing_and_takes_the_rest_along() -> None:
    for verdict in (FAILED, RUNS):
        told = Told()
        await told.write(INSTALLING)
        await told.write(verdict)
        assert told.cluster.written == [verdict]
        assert await told.after(LONGEST) == [verdict]


async def test_a_detail_waits_once_however_often_it_changes() -> None:
    told = Told()
    await told.write(RUNS)
    await told.write(DETAIL)
    told.clock.moment += DETAILS / 2
    newest = msgspec.structs.replace(RUNS, summary="2/2")
    await told.write(newest)
    assert await told.after(DETAILS / 2) == [RUNS, newest]


async def test_what_is_as_before_is_not_told() -> None:
    told = Told()
    await told.write(RUNS)
    await told.write(DETAIL)
    await told.write(RUNS)
    assert await told.after(LONGEST) == [RUNS]


async def test_no_flood_of_edits_holds_it_for_ever() -> None:
    told = Told()
    began = told.clock.moment
    for _ in range(100):
        await told.write(INSTALLING)
        told.clock.moment += ENDED / 2
        await told.write(INSTALLED)
        if told.cluster.written:
            break
        told.clock.moment += ENDED / 2
    assert told.clock.moment - began <= LONGEST + ENDED


async def test_the_key_comes_again() -> None:
    told = Told()
    await told.write(INSTALLING)
    await told.write(INSTALLED)
    async with asyncio.timeout(10):
        assert await told.queue.get() == SHOP


async def test_a_clock_that_was_set_back_holds_nothing() -> None:
    told = Told()
    await told.write(INSTALLING)
    assert await told.after(timedelta(hours=-1)) == [INSTALLING]


async def test_another_release_of_that_name_is_told_nothing_of_it() -> None:
    told = Told()
    await told.write(INSTALLING)
    another = release()
    metadata = msgspec.structs.replace(another.metadata, uid="uid-another")
    told.cluster.one = msgspec.structs.replace(another, metadata=metadata)
    assert told.statuses.known(SHOP, told.cluster.one).status == ReleaseStatus()
    assert await told.after(LONGEST) == []


async def test_who_cannot_be_told_now_is_told_later() -> None:
    told = Told()
    await told.write(INSTALLING)
    told.cluster.refuses = Unavailable("away", FaultKind.UNREACHABLE)
    assert await told.after(IN_LINE) == []
    told.cluster.refuses = None
    assert await told.after(AFTER_OUTAGE) == [INSTALLING]


async def test_a_verdict_that_cannot_be_told_leaves_what_was_known() -> None:
    told = Told()
    await told.write(INSTALLING)
    told.cluster.refuses = Unavailable("away", FaultKind.UNREACHABLE)
    with pytest.raises(Unavailable):
        await told.write(FAILED)
    assert told.cluster.one
    assert told.statuses.known(SHOP, told.cluster.one).status == INSTALLING


async def test_all_is_told_before_the_end() -> None:
    told = Told()
    await told.write(INSTALLING)
    await told.write(INSTALLED)
    await told.statuses.tell_all()
    assert told.cluster.written == [INSTALLED]
    await told.write(INSTALLING)
    told.cluster.refuses = Missing("gone", FaultKind.UNKNOWN_CLUSTER)
    await told.statuses.tell_all()
    assert await told.after(LONGEST) == [INSTALLED]


async def test_what_is_due_in_a_long_pass_is_told_meanwhile() -> None:
    told = Told()
    told.queue.add(SHOP)
    assert await told.queue.get() == SHOP
    await told.write(INSTALLED)
    told.clock.moment += ENDED
    async with asyncio.timeout(10):
        await told.cluster.heard.wait()
    assert told.cluster.written == [INSTALLED]
    told.queue.done(SHOP)


async def test_an_edit_that_comes_with_the_answer_is_for_the_next_pass() -> None:
    told = Told()
    assert told.cluster.one
    began_with = told.cluster.one
    edited = msgspec.structs.replace(began_with.metadata, generation=2)
    told.cluster.one = msgspec.structs.replace(began_with, metadata=edited)
    written = await told.statuses.write(SHOP, began_with, RUNS)
    assert (written.metadata.generation, written.status) == (1, RUNS)


async def test_a_pass_that_ends_badly_knows_what_it_concluded() -> None:
    told = Told()
    assert told.cluster.one
    began_with = told.cluster.one
    await told.write(INSTALLING)
    await told.write(INSTALLED)
    assert told.statuses.current(SHOP, began_with).status == INSTALLED
    await told.write(RUNS)
    assert told.statuses.current(SHOP, began_with).status == RUNS
    held = told.statuses.get(SHOP)
    assert held
    assert held.status == RUNS


async def test_nothing_is_told_when_somebody_else_has_the_word() -> None:
    told = Told()
    await told.write(INSTALLING)
    told.statuses.forget_all()
    await told.statuses.tell_all()
    assert await told.after(LONGEST) == []
