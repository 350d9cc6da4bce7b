"""One pass over one Release, read top to bottom: resolve, observe, decide, announce, act, conclude.

A pass takes one step and never waits for an action: the action runs beside it and queues the key when it
ends. Whatever interrupts a pass, the next one starts by looking.
"""

import time
from datetime import timedelta

import structlog

from pilothouse.api.meta import Key
from pilothouse.api.release import EXTERNAL_NAME, FINALIZER, Release
from pilothouse.core.conclude import (
    announce,
    attempts_of,
    conclude_action,
    conclude_fault,
    conclude_quiet,
)
from pilothouse.core.decide import decide, question
from pilothouse.core.desired import Desired, desired
from pilothouse.core.observed import Decoded, Observed
from pilothouse.core.outcome import Conclusion, Ended, Fault
from pilothouse.core.plan import (
    CreateNamespace,
    Inspect,
    Install,
    Interrupt,
    LetGo,
    Plan,
    Rest,
    Uninstall,
    Unlock,
    Upgrade,
    Wait,
    name_of,
)
from pilothouse.core.state import State, classify
from pilothouse.errors import AlreadyExists, Conflict, EngineLost, Missing, PilothouseError
from pilothouse.faults import FaultKind
from pilothouse.loop.actions import Actions
from pilothouse.loop.commit import Committer
from pilothouse.loop.namespaces import create_namespace
from pilothouse.loop.queue import KeyedQueue
from pilothouse.loop.triggers import Claims
from pilothouse.ports import Clock, Target, Targets, Writer

log = structlog.get_logger(__name__)


class Memory:
    """What one process remembers of a key between passes; losing it costs a look, never a mistake."""

    __slots__ = ("decoded", "made_from", "namespace_missing")

    def __init__(self) -> None:
        self.decoded: Decoded | None = None
        self.made_from: Desired | None = None
        self.namespace_missing = False


class Reconciler:
    """Runs passes."""

    def __init__(
        self,
        *,
        targets: Targets,
        writer: Writer,
        committer: Committer,
        actions: Actions,
        queue: KeyedQueue,
        claims: Claims,
        clock: Clock,
    ) -> None:
        self._targets = targets
        self._writer = writer
        self._committer = committer
        self._actions = actions
        self._queue = queue
        self._claims = claims
        self._clock = clock
        self._memory: dict[Key, Memory] = {}

    def forget(self, key: Key) -> None:
        """The object is gone."""
        self._memory.pop(key, None)
        self._claims.drop(key)
        self._queue.forget_timer(key)

    async def run_pass(self, key: Key, release: Release) -> None:
        """Take one step for one Release."""
        began = time.perf_counter()
        ours = FINALIZER in release.metadata.finalizers
        if release.metadata.deletion_timestamp and not ours:
            return
        wanted: Desired | None = None
        try:
            wanted = desired(release)
            if not ours or not release.metadata.annotations.get(EXTERNAL_NAME):
                release = await self._writer.claim(release)
            plan = await self._step(key, release, wanted)
        except (Conflict, EngineLost):
            # Someone wrote first, or the engine is being restarted: look again.
            self._queue.add(key)
            return
        except ValueError as error:
            fault = Fault(FaultKind.INVALID, str(error))
            await self._refuse(key, release, f"generation {release.metadata.generation}", fault)
            return
        except PilothouseError as error:
            asked = question(wanted) if wanted else ""
            await self._refuse(key, release, asked, Fault(error.kind, error.message))
            return
        if not isinstance(plan, Rest | Wait):
            took = round((time.perf_counter() - began) * 1000, 1)
            reason = getattr(plan, "reason", "")
            log.info("pass", key=str(key), plan=name_of(plan), reason=reason, took_ms=took)

    async def _step(self, key: Key, release: Release, wanted: Desired) -> Plan:
        target = await self._targets.reach(release.spec.provider_config_ref.name)
        self._claims.put(key, target.id, wanted.release)
        if not target.sees():
            return Wait("looking at the cluster")
        memory = self._memory.setdefault(key, Memory())
        ended = self._actions.take_ended(key)
        if ended:
            release = await self._conclude(key, release, wanted, target, memory, ended)
        observed = self._observe(key, wanted, target, memory)
        now = self._clock.now()
        state = classify(wanted, observed, now)
        plan = decide(wanted, observed, state, attempts_of(release.status), now)
        await self._carry_out(key, release, wanted, target, plan, state, observed)
        return plan

    def _observe(self, key: Key, wanted: Desired, target: Target, memory: Memory) -> Observed:
        return Observed(
            record=target.record(wanted.release),
            objects=target.objects_of(wanted.release),
            decoded=memory.decoded,
            running=self._actions.running(key),
            made_from=memory.made_from,
            namespace_missing=memory.namespace_missing,
        )

    async def _conclude(
        self,
        key: Key,
        release: Release,
        wanted: Desired,
        target: Target,
        memory: Memory,
        ended: Ended,
    ) -> Release:
        """Write what the ended action came to; return the Release as it is then."""
        fault = ended.outcome.fault
        memory.namespace_missing = bool(fault and fault.kind is FaultKind.NAMESPACE_MISSING)
        if fault is None and isinstance(ended.plan, Install | Upgrade):
            memory.made_from = ended.desired
        observed = self._observe(key, wanted, target, memory)
        conclusion = conclude_action(release, wanted, ended, observed, self._clock.now())
        return await self._committer.commit(key, release, conclusion)

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
            case Install() | Upgrade() | Uninstall() | Unlock():
                status = announce(release, wanted, plan, self._clock.now())
                await self._writer.status(release, status)
                self._actions.start(key, target, wanted, plan)
            case Rest() | Wait():
                self._wait(key, plan)
                now = self._clock.now()
                status = conclude_quiet(release, wanted, observed, state, plan, now)
                await self._writer.status(release, status)
            case CreateNamespace(name=name):
                await create_namespace(target.objects, name)
                self._memory[key].namespace_missing = False
                self._queue.add(key)
            case Inspect(revision=revision):
                self._memory[key].decoded = await target.decode(wanted.release, revision)
                self._queue.add(key)
            case Interrupt():
                self._actions.interrupt(key)
            case LetGo():
                await self._writer.let_go(release)

    def _wait(self, key: Key, plan: Rest | Wait) -> None:
        if isinstance(plan, Wait) and plan.until:
            self._queue.add_after(key, plan.until - self._clock.now() + timedelta(milliseconds=5))

    async def _refuse(self, key: Key, release: Release, asked: str, fault: Fault) -> None:
        """Say why nothing can be done, unless it was said and the next try is not due yet."""
        now = self._clock.now()
        attempts = attempts_of(release.status)
        if not attempts.due(asked, now) and attempts.error == fault.message and attempts.next_at:
            self._queue.add_after(key, attempts.next_at - now + timedelta(milliseconds=5))
            return
        deleting = release.metadata.deletion_timestamp is not None
        action = "Uninstall" if deleting else "Upgrade" if release.status.synced else "Install"
        conclusion: Conclusion = conclude_fault(release, asked, fault, now, action)
        try:
            await self._committer.commit(key, release, conclusion)
        except (Conflict, EngineLost):
            self._queue.add(key)
        except (Missing, AlreadyExists):
            return
        log.warning("refused", key=str(key), reason=str(fault.kind), error=fault.message)
