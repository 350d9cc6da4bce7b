"""Ask repositories for newer versions: each of them once, for all Releases that use it.

A pass gets the newest answer at once; only the first of a kind waits. From then on every repository is asked
again when the shortest of its Releases' intervals has passed, and a different answer wakes whom it concerns.
"""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import timedelta

import structlog

from pilothouse.api.meta import Key
from pilothouse.api.release import RECONCILE_REQUESTED, Release
from pilothouse.core.access import Access
from pilothouse.core.desired import ChartAsk, Desired, Offer
from pilothouse.core.observed import Decoded, Record
from pilothouse.core.versions import (
    Follow,
    Found,
    Query,
    choose,
    follow,
    held_version,
    spread,
    without_answer,
)
from pilothouse.errors import EngineLost, PilothouseError
from pilothouse.loop.queue import KeyedQueue
from pilothouse.ports import VersionFinder

log = structlog.get_logger(__name__)


# What makes two Releases users of one repository: the address, and everything it is shown.
Place = tuple[str, bool, bool, Access]


@dataclass(slots=True)
class _Repository:
    ask: ChartAsk
    address: str
    members: dict[Key, tuple[Query, timedelta]] = field(default_factory=dict)
    answers: dict[Query, Found] = field(default_factory=dict)
    asking: dict[Query, "asyncio.Future[Found]"] = field(default_factory=dict)
    task: "asyncio.Task[None] | None" = None

    def interval(self) -> timedelta:
        return min(interval for _, interval in self.members.values())


class Upgrades:
    """Which version each Release is to have, as far as its repository has a say in it."""

    def __init__(self, tasks: asyncio.TaskGroup, finder: VersionFinder, queue: KeyedQueue) -> None:
        self._tasks = tasks
        self._finder = finder
        self._queue = queue
        self._repositories: dict[Place, _Repository] = {}
        self._places: dict[Key, Place] = {}

    async def settle(
        self,
        key: Key,
        release: Release,
        wanted: Desired,
        record: Record | None,
        decoded: Decoded | None,
    ) -> Offer | None:
        """Return what the repository has for a Release; None when it has no say."""
        wants = follow(release)
        if wants is None:
            self.forget(key)
            return None
        held = held_version(release, record, decoded)
        repository = self._join(
            key, wanted.chart, Query(wanted.chart.name, wants.query, held), wants
        )
        try:
            found = await self._look(repository, key, wants, now=_asked_for_now(release))
        except EngineLost:
            raise
        except PilothouseError:
            stands = without_answer(release, wants, held)
            if stands is None:
                raise
            return stands
        return choose(wants, held, found)

    def deployed(self, key: Key) -> None:
        """Another version may be deployed now, so another question is to be asked about it."""
        if key in self._places:
            self._queue.add(key)

    def forget(self, key: Key) -> None:
        """The Release is gone, or has another source."""
        place = self._places.pop(key, None)
        repository = self._repositories.get(place) if place else None
        if place is None or repository is None:
            return
        repository.members.pop(key, None)
        if not repository.members:
            del self._repositories[place]
            if repository.task:
                repository.task.cancel()

    def close(self) -> None:
        """Ask nobody any more."""
        for key in list(self._places):
            self.forget(key)

    def _join(self, key: Key, chart: ChartAsk, query: Query, wants: Follow) -> _Repository:
        place = (
            chart.git.url if chart.git else chart.repository,
            chart.plain_http,
            chart.insecure_skip_tls_verify,
            # Who must have signed its charts is nothing that a repository is shown.
            replace(chart.access, keyrings=(), public_keys=()),
        )
        if self._places.get(key) != place:
            self.forget(key)
            self._places[key] = place
        repository = self._repositories.setdefault(place, _Repository(chart, place[0]))
        repository.members[key] = (query, wants.interval)
        if repository.task is None:
            repository.task = self._tasks.create_task(
                self._ask_again(repository), name=f"versions in {place[0]}"
            )
        return repository

    async def _look(self, repository: _Repository, key: Key, wants: Follow, *, now: bool) -> Found:
        """Return the newest answer; raises what kept the repository from giving one."""
        query, _ = repository.members[key]
        if not now and query in repository.answers:
            return repository.answers[query]
        under_way = repository.asking.get(query)
        if under_way is None:
            under_way = asyncio.ensure_future(
                self._one(repository, query, timedelta() if now else wants.interval)
            )
            repository.asking[query] = under_way
            under_way.add_done_callback(lambda done: _answered(repository, query, done))
        return await asyncio.shield(under_way)

    async def _one(self, repository: _Repository, query: Query, max_age: timedelta) -> Found:
        (found,) = await self._finder.find_versions(repository.ask, [query], max_age)
        if found.fault:
            raise PilothouseError(found.fault.message, found.fault.kind)
        repository.answers[query] = found
        return found

    async def _ask_again(self, repository: _Repository) -> None:
        """Ask one repository about everything its Releases want to know, again and again."""
        number = 0
        while True:
            number += 1
            pause = spread(repository.interval(), f"{repository.address}/{number}")
            await asyncio.sleep(pause.total_seconds())
            queries = list(dict.fromkeys(query for query, _ in repository.members.values()))
            try:
                found = await self._finder.find_versions(repository.ask, queries, timedelta())
            except PilothouseError as error:
                log.info("cannot ask for versions", error=error.message)
                continue
            self._take(repository, dict(zip(queries, found, strict=True)))

    def _take(self, repository: _Repository, found: dict[Query, Found]) -> None:
        # What nobody asks any more is forgotten; what could not be answered stays as it was.
        before = repository.answers
        repository.answers = {
            query: before[query] if answer.fault and query in before else answer
            for query, answer in found.items()
            if answer.fault is None or query in before
        }
        for key, (query, _) in repository.members.items():
            if repository.answers.get(query) != before.get(query):
                self._queue.add(key)


def _answered(repository: _Repository, query: Query, done: "asyncio.Future[Found]") -> None:
    repository.asking.pop(query, None)
    if not done.cancelled():
        done.exception()  # whoever waited was told; nobody may be waiting any more


def _asked_for_now(release: Release) -> bool:
    request = release.metadata.annotations.get(RECONCILE_REQUESTED, "")
    return request != release.status.last_handled_reconcile_at
