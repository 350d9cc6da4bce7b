"""One pass over one Release, read top to bottom: resolve, observe, decide, announce, act, conclude.

A pass takes one step and never waits for an action: the action runs beside it and queues the key when it
ends. Whatever interrupts a pass, the next one starts by looking.
"""

import time
from datetime import timedelta

import structlog

from pilothouse.api.meta import Key
from pilothouse.api.release import FINALIZER, Release
from pilothouse.core.abandon import ABANDON
from pilothouse.core.conclude import (
    announce,
    conclude_action,
    conclude_elsewhere,
)
from pilothouse.core.decide import decide, has_given_up
from pilothouse.core.dependencies import gate, in_order
from pilothouse.core.desired import Desired
from pilothouse.core.observed import Observed
from pilothouse.core.outcome import Conclusion, Ended, Fault
from pilothouse.core.plan import (
    Check,
    CreateNamespace,
    Inspect,
    Install,
    Interrupt,
    LetGo,
    Plan,
    Repair,
    Rest,
    Rollback,
    Stop,
    Uninstall,
    Unlock,
    Upgrade,
    Wait,
    name_of,
)
from pilothouse.core.progress import with_progress
from pilothouse.core.resting import conclude_quiet, is_paused, paused
from pilothouse.core.state import State, StateName, classify
from pilothouse.core.telling import left_behind
from pilothouse.core.trust import noted
from pilothouse.core.trust_report import still_ready
from pilothouse.core.versions import news, report
from pilothouse.errors import (
    Conflict,
    EngineLost,
    PilothouseError,
)
from pilothouse.faults import FaultKind
from pilothouse.loop.actions import Actions
from pilothouse.loop.checks import Checks
from pilothouse.loop.commit import Committer
from pilothouse.loop.connection import ConnectionSecrets
from pilothouse.loop.departures import Departures, abandoned
from pilothouse.loop.helm_tests import HelmTests
from pilothouse.loop.late_versions import LateVersions
from pilothouse.loop.namespaces import create_namespace
from pilothouse.loop.polls import Polls
from pilothouse.loop.queue import KeyedQueue
from pilothouse.loop.refusals import Refusals
from pilothouse.loop.repairs import Repairs
from pilothouse.loop.statuses import Statuses
from pilothouse.loop.survey import Surveyor
from pilothouse.loop.triggers import Connections
from pilothouse.loop.usages import Usages
from pilothouse.ports import Clock, Target, Writer

log = structlog.get_logger(__name__)


class Reconciler:
    """Runs passes."""

    def __init__(
        self,
        *,
        surveyor: Surveyor,
        writer: Writer,
        statuses: Statuses,
        committer: Committer,
        actions: Actions,
        repairs: Repairs,
        tests: HelmTests,
        queue: KeyedQueue,
        clock: Clock,
        connections: Connections,
        abandon_after: timedelta | None,
    ) -> None:
        self._surveyor = surveyor
        self._dependencies = surveyor.dependencies
        self._writer = writer
        self._statuses = statuses
        self._committer = committer
        self._actions = actions
        self._repairs = repairs
        self._tests = tests
        self._queue = queue
        self._clock = clock
        self._connection = ConnectionSecrets(surveyor, writer, connections)
        self._refusals = Refusals(surveyor, committer, queue, clock)
        self._departures = Departures(
            surveyor, writer, committer, self._refusals, queue, clock, abandon_after
        )
        self._usages = Usages(surveyor, writer)
        self._versions = LateVersions(surveyor, writer, clock)
        self._checks = Checks(surveyor, committer, queue, clock)
        self._polls = Polls(queue, clock)

    def forget(self, key: Key) -> None:
        """The object is gone."""
        self._departures.forget(key)
        self._statuses.forget(key)
        self._polls.forget(key)
        self._repairs.forget(key)
        self._tests.forget(key)
        self._actions.forget(key)
        self._surveyor.forget(key)
        self._queue.forget_timer(key)

    async def run_pass(self, key: Key, release: Release) -> None:
        """Take one step for one Release."""
        try:
            await self._pass(key, self._statuses.known(key, release))
        except Exception:
            await self._statuses.tell_due(key)
            raise
        await self._statuses.tell_due(key)

    async def _pass(self, key: Key, release: Release) -> None:
        began = time.perf_counter()
        ours = FINALIZER in release.metadata.finalizers
        if release.metadata.deletion_timestamp and not ours:
            return
        if self._departures.is_over(key, release):
            return  # done with; the watch has only not said so yet
        wanted: Desired | None = None
        try:
            if abandoned(release):
                await self._departures.abandon(key, release, f"the annotation {ABANDON}")
                return
            release = await self._versions.take_back(await self._usages.keep(key, release))
            release = self._statuses.known(key, release)
            await self._dependencies.look(key, release)
            wanted = await self._surveyor.wanted(key, release)
            if wanted.absent and not wanted.policies.delete and not wanted.paused:
                # Left behind on purpose, so the cluster need not even be there.
                await self._departures.let_go(key, release)
                return
            plan = await self._step(key, release, wanted)
        except (Conflict, EngineLost):
            # Someone wrote first, or the engine is being restarted: look again.
            self._queue.add(key)
            return
        except ValueError as error:
            release = self._statuses.current(key, release)
            await self._refusals.refuse(key, release, wanted, Fault(FaultKind.INVALID, str(error)))
            return
        except PilothouseError as error:
            release = self._statuses.current(key, release)
            if is_paused(release):
                # What cannot be reached is nobody's concern now.
                await self._refusals.say(
                    key, release, Conclusion(paused(release, self._clock.now()))
                )
            elif release.metadata.deletion_timestamp:
                await self._departures.cannot_remove(key, release, wanted, error)
            else:
                await self._refusals.refuse(key, release, wanted, Fault(error.kind, error.message))
            return
        if not isinstance(plan, Rest | Wait | Stop):
            took = round((time.perf_counter() - began) * 1000, 1)
            reason = getattr(plan, "reason", "")
            log.info("pass", key=str(key), plan=name_of(plan), reason=reason, took_ms=took)

    async def _step(self, key: Key, release: Release, wanted: Desired) -> Plan:
        if self._surveyor.has_moved(key, release, wanted):
            self._repairs.moved(key)
            self._actions.interrupt(key)
        target = await self._surveyor.reach(key, release, wanted)
        if not target.sees(wanted.release):
            return Wait("looking at the cluster")
        self._departures.reached(key)
        await self._tell_left_behind(key, release, wanted)
        if not wanted.absent and not wanted.paused:
            wanted = await self._versions.settle(key, release, wanted, target)
        ended = self._actions.take_ended(key, release.metadata.uid)
        if ended:
            release = await self._conclude(key, release, wanted, target, ended)
            self._versions.attempted(key, ended)
            self._surveyor.deployed(key)
        await self._repairs.conclude(key, release)
        release = await self._tests.conclude(key, release)
        observed = await self._surveyor.observe(key, release, wanted, target)
        asked = not wanted.absent and self._polls.due(key, release)
        if asked:
            self._surveyor.memory(key).connected = None
        attempts = self._surveyor.attempts(key, release, wanted)
        final = has_given_up(wanted, attempts)
        observed = self._repairs.look(key, target, wanted, observed, everything=asked, final=final)
        now = self._clock.now()
        state = classify(wanted, observed, now)
        plan = decide(wanted, observed, state, attempts, now)
        plan = gate(plan, self._dependencies.latest(key), now)
        plan = in_order(plan, wanted, release, self._dependencies.dependants(key), now)
        plan = self._tests.first(key, plan)
        release = await self._tests.begin(key, release, wanted, target, observed, state, plan)
        await self._carry_out(key, release, wanted, target, plan, state, observed)
        return plan

    async def _conclude(
        self,
        key: Key,
        release: Release,
        wanted: Desired,
        target: Target,
        ended: Ended,
    ) -> Release:
        """Write what the ended action came to; return the Release as it is then."""
        try:
            if not self._surveyor.is_about(key, release, wanted, ended):
                conclusion = conclude_elsewhere(release, ended, self._clock.now())
                return await self._committer.commit(key, release, conclusion)
            self._surveyor.learn(key, ended)
            observed = await self._surveyor.observe(key, release, wanted, target)
            release = await self._versions.fill_in(release, wanted, ended)
            release = self._statuses.known(key, release)
            conclusion = conclude_action(release, wanted, ended, observed, self._clock.now())
            return await self._committer.commit(key, release, conclusion)
        except PilothouseError:
            self._actions.put_back(key, ended)  # the next pass writes it
            raise

    async def _carry_out(
        self,
        key: Key,
        release: Release,
        wanted: Desired,
        target: Target,
        plan: Plan,
        state: State,
        observed: Observed,
    ) -> None:
        match plan:
            case Install() | Upgrade() | Rollback() | Uninstall() | Unlock():
                now = self._clock.now()
                status = announce(release, wanted, plan, now)
                status = self._dependencies.told(key, release, status, now)
                release = await self._statuses.write(key, release, status)
                self._actions.start(key, self._surveyor.errand(key, release), target, wanted, plan)
            case Rest() | Wait() | Stop():
                self._wait(key, plan)
                if isinstance(plan, Rest) and state.name in {StateName.IN_SYNC, StateName.UNREADY}:
                    await self._connection.keep(key, release, wanted, target, observed)
                now = self._clock.now()
                status = conclude_quiet(release, wanted, observed, state, plan, now)
                if status.synced and isinstance(plan, Rest):
                    status = noted(report(status, wanted), wanted, observed)
                elif isinstance(plan, Wait):
                    status = still_ready(release, wanted, observed, state, status, now)
                    status = with_progress(status, observed.running, wanted)
                status = self._dependencies.told(key, release, status, now)
                await self._repairs.write(key, release, wanted, observed, status)
                for notice in news(release.status, status):
                    await self._writer.tell(release, notice)
            case Check():
                await self._checks.run(key, release, wanted, target, observed, state)
            case Repair():
                errand = self._surveyor.errand(key, release)
                self._repairs.start(key, errand, target, wanted, observed, plan)
            case CreateNamespace(name=name):
                await create_namespace(target.objects, name)
                self._surveyor.memory(key).namespace_missing = False
                self._queue.add(key)
            case Inspect(revision=revision):
                memory = self._surveyor.memory(key)
                memory.decoded = await target.decode(wanted.release, revision)
                self._queue.add(key)
            case Interrupt():
                self._actions.interrupt(key)
            case LetGo():
                await self._departures.let_go(key, release)

    async def _tell_left_behind(self, key: Key, release: Release, wanted: Desired) -> None:
        memory = self._surveyor.memory(key)
        if memory.left_behind:
            await self._writer.tell(release, left_behind(memory.left_behind, wanted.release))
            memory.left_behind = None

    def _wait(self, key: Key, plan: Rest | Wait | Stop) -> None:
        if isinstance(plan, Wait | Stop) and plan.until:
            self._queue.add_after(key, plan.until - self._clock.now() + timedelta(milliseconds=5))
