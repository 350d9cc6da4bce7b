"""What becomes of actions and of tests whose Release is gone, or which come to nothing again and again."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import msgspec
from make import HandClock, objects, record, release
from structlog.testing import capture_logs

from pilothouse.api.meta import Key
from pilothouse.api.release import TEST_REQUESTED, Release
from pilothouse.api.status import ReleaseStatus
from pilothouse.core.desired import ReleaseName, Sources, desired
from pilothouse.core.observed import Observed
from pilothouse.core.outcome import Entry, Errand, Fault, Notice, Outcome
from pilothouse.core.plan import Rest, Uninstall
from pilothouse.core.state import classify
from pilothouse.faults import FaultKind
from pilothouse.loop.actions import Actions
from pilothouse.loop.commit import Committer
from pilothouse.loop.helm_tests import HelmTests
from pilothouse.loop.queue import KeyedQueue
from pilothouse.loop.statuses import Statuses
from pilothouse.ports import Order, Progress

SHOP = Key("releases.helm.crossplane.io", "", "shop")
REMOVE = Uninstall("the Release was deleted")


@dataclass
class Cluster:
    """One that answers every order alike, at once or only when it is let."""

    outcome: Outcome = field(default_factory=Outcome)
    waits_for: str = "waiting"
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    id: str = "edge"
    runs: int = 0
    learned: list[Outcome] = field(default_factory=list)

    async def run(self, _: Order) -> AsyncIterator[Progress | Outcome]:
        self.runs += 1
        yield Progress(self.waits_for, waiting=True)
        await self.answers.wait()
        yield self.outcome

    def learn(self, _: ReleaseName, outcome: Outcome, **__: Any) -> None:
        self.learned.append(outcome)

    def record(self, _: ReleaseName) -> None:
        """It holds nothing."""


class Books:
    """What is written, and what is counted, in memory."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.notices: list[Notice] = []

    async def append(self, entry: Entry) -> None:
        self.entries.append(entry)

    def get(self, _: Key) -> Release | None:
        """Nobody has seen it yet."""

    async def status(self, one: Release, status: ReleaseStatus) -> Release:
        return msgspec.structs.replace(one, status=status)

    async def tell(self, _: Release, notice: Notice) -> None:
        self.notices.append(notice)

    def acted(self, *_: str) -> None:
        """Not of interest here."""


@asynccontextmanager
async def acting(wake: Callable[[Key], None]) -> AsyncIterator[Actions]:
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        yield Actions(tasks, 4, "us", wake, lambda _: None, Books())  # type: ignore[arg-type] # the parts that are used


async def next_key(queue: KeyedQueue) -> None:
    queue.done(await queue.get())


async def test_what_was_done_for_another_release_of_that_name_is_dropped() -> None:
    queue, cluster = KeyedQueue(), Cluster()
    cluster.answers.set()
    async with acting(queue.add) as actions:
        for uid, found in (("uid-before", False), ("uid-shop", True)):
            actions.start(SHOP, Errand(uid), cluster, desired(release()), REMOVE)  # type: ignore[arg-type]
            while actions.running(SHOP):
                await next_key(queue)
            assert bool(actions.take_ended(SHOP, "uid-shop")) == found
            assert actions.take_ended(SHOP, uid) is None, "once"


async def test_the_eyes_learn_nothing_of_a_secret() -> None:
    """They remember it for later passes, which tell it."""
    said = "spec.type: Unsupported value: hunter2"
    failed = Outcome(record(1, "failed", description=said), Fault(FaultKind.INVALID, said))
    queue, cluster = KeyedQueue(), Cluster(failed)
    cluster.answers.set()
    wanted = desired(release(), Sources(values={}, secrets=frozenset({"hunter2"})))
    async with acting(queue.add) as actions:
        actions.start(SHOP, Errand("uid-shop"), cluster, wanted, REMOVE)  # type: ignore[arg-type]
        while actions.running(SHOP):
            await next_key(queue)
        ended = actions.take_ended(SHOP, "uid-shop")
    assert ended
    assert cluster.learned == [ended.outcome]
    assert ended.outcome.record
    assert ended.outcome.record.description == "spec.type: Unsupported value: ***"
    assert "hunter2" not in str(ended.outcome)


async def test_nobody_is_told_a_secret_while_an_action_waits() -> None:
    queue, cluster = KeyedQueue(), Cluster(waits_for="hook Job hunter2-up")
    wanted = desired(release(), Sources(values={}, secrets=frozenset({"hunter2"})))
    with capture_logs() as logged:
        async with acting(queue.add) as actions:
            actions.start(SHOP, Errand("uid-shop"), cluster, wanted, REMOVE)  # type: ignore[arg-type]
            await next_key(queue)
            running = actions.running(SHOP)
            cluster.answers.set()
    assert running
    assert running.progress == "hook Job ***-up"
    assert [one["message"] for one in logged] == ["hook Job ***-up"]


async def test_nothing_is_kept_of_a_release_that_is_gone() -> None:
    queue, cluster = KeyedQueue(), Cluster()
    async with acting(queue.add) as actions:
        actions.start(SHOP, Errand("uid-shop"), cluster, desired(release()), REMOVE)  # type: ignore[arg-type]
        while actions.running(SHOP):
            await next_key(queue)
            actions.forget(SHOP)  # ends the wait, which queues the key once more
        assert actions.take_ended(SHOP, "uid-shop") is None


async def test_tests_that_always_conflict_fail_after_a_few_runs() -> None:
    clock, queue, books = HandClock(), KeyedQueue(), Books()
    cluster = Cluster(Outcome(fault=Fault(FaultKind.CONFLICT, "another has that field")))
    cluster.answers.set()
    one = release(annotations={TEST_REQUESTED: "now"})
    wanted = desired(one)
    seen = Observed(record=record(1, "deployed", wanted.digest), objects=objects(1))
    state = classify(wanted, seen, clock.now())
    async with acting(queue.add) as actions:

        def errand(_: Key, one: Release) -> Errand:
            return Errand(one.metadata.uid, "edge")

        statuses = Statuses(books, books, queue, clock)  # type: ignore[arg-type]
        committer = Committer(books, statuses, books, queue, clock)  # type: ignore[arg-type]
        tests = HelmTests(actions, committer, statuses, queue, clock, errand)

        async def step(one: Release) -> Release:
            one = await tests.conclude(SHOP, one)
            return await tests.begin(SHOP, one, wanted, cluster, seen, state, Rest())  # type: ignore[arg-type]

        for run, wait in ((1, 1), (2, 2), (3, 0)):
            one = await step(one)
            while actions.running(SHOP):
                await next_key(queue)
            assert (cluster.runs, one.status.test.phase) == (run, "Running")
            one = await step(one)
            one = await step(one)
            assert cluster.runs == run, "not at once"
            clock.moment += timedelta(seconds=wait)
        one = await step(one)
        assert one.status.test.phase == "Failed"
        assert one.status.test.message == "another has that field"
        assert [notice.reason for notice in books.notices] == ["TestsFailed"]
        assert [entry.cluster for entry in books.entries] == ["edge"]
        queue.close()
