"""One pass over one Release, read top to bottom: resolve, observe, decide, announce, act, conclude.

A pass takes one step and never waits for an action: the action runs beside it and queues the key when it
ends. Whatever interrupts a pass, the next one starts by looking.
"""

import time
from dataclasses import replace
from datetime import timedelta

import msgspec
import structlog

from pilothouse.api.meta import Key
from pilothouse.api.release import EXTERNAL_NAME, FINALIZER, POLL_INTERVAL, Release
from pilothouse.core.conclude import (
    announce,
    attempts_of,
    conclude_action,
    conclude_fault,
    conclude_quiet,
)
from pilothouse.core.decide import decide, question
from pilothouse.core.desired import (
    Desired,
    Sources,
    desired,
    duration,
    needs_version,
)
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
    Rollback,
    Stop,
    Uninstall,
    Unlock,
    Upgrade,
    Wait,
    name_of,
)
from pilothouse.core.redact import redact
from pilothouse.core.state import State, StateName, classify
from pilothouse.core.versions import kept_to_deployed, must_look_inside, news, report
from pilothouse.errors import AlreadyExists, Conflict, EngineLost, Missing, PilothouseError
from pilothouse.faults import FaultKind
from pilothouse.loop.actions import Actions
from pilothouse.loop.commit import Committer
from pilothouse.loop.connection import gather
from pilothouse.loop.namespaces import create_namespace
from pilothouse.loop.queue import KeyedQueue
from pilothouse.loop.sources import SourceReader
from pilothouse.loop.triggers import Claims
from pilothouse.loop.upgrades import Upgrades
from pilothouse.ports import Clock, Instances, Target, Targets, Writer

log = structlog.get_logger(__name__)


class Memory:
    """What one process remembers of a key between passes; losing it costs a look, never a mistake."""

    __slots__ = ("connected", "decoded", "made_from", "namespace_missing")

    def __init__(self) -> None:
        self.decoded: Decoded | None = None
        self.made_from: Desired | None = None
        self.namespace_missing = False
        # What the connection secret was last made of.
        self.connected: object = None


class Reconciler:
    """Runs passes."""

    def __init__(
        self,
        *,
        targets: Targets,
        sources: SourceReader,
        instances: Instances,
        writer: Writer,
        committer: Committer,
        actions: Actions,
        queue: KeyedQueue,
        claims: Claims,
        upgrades: Upgrades,
        clock: Clock,
    ) -> None:
        self._upgrades = upgrades
        self._targets = targets
        self._sources = sources
        self._instances = instances
        self._writer = writer
        self._committer = committer
        self._actions = actions
        self._queue = queue
        self._claims = claims
        self._clock = clock
        self._memory: dict[Key, Memory] = {}
        self._let_go: dict[Key, str] = {}

    def forget(self, key: Key) -> None:
        """The object is gone."""
        self._memory.pop(key, None)
        self._let_go.pop(key, None)
        self._claims.drop(key)
        self._upgrades.forget(key)
        self._sources.forget(key)
        self._queue.forget_timer(key)

    async def run_pass(self, key: Key, release: Release) -> None:
        """Take one step for one Release."""
        began = time.perf_counter()
        ours = FINALIZER in release.metadata.finalizers
        if release.metadata.deletion_timestamp and not ours:
            return
        if self._let_go.get(key) == release.metadata.uid:
            return  # done with; the watch has only not said so yet
        wanted: Desired | None = None
        try:
            if not ours or not release.metadata.annotations.get(EXTERNAL_NAME):
                release = await self._writer.claim(release)
            wanted = await self._wanted(key, release)
            if wanted.absent and not wanted.policies.delete:
                # Left behind on purpose, so the cluster need not even be there.
                await self._release_object(key, release)
                return
            plan = await self._step(key, release, wanted)
        except (Conflict, EngineLost):
            # Someone wrote first, or the engine is being restarted: look again.
            self._queue.add(key)
            return
        except ValueError as error:
            await self._refuse(key, release, wanted, Fault(FaultKind.INVALID, str(error)))
            return
        except PilothouseError as error:
            await self._refuse(key, release, wanted, Fault(error.kind, error.message))
            return
        if not isinstance(plan, Rest | Wait | Stop):
            took = round((time.perf_counter() - began) * 1000, 1)
            reason = getattr(plan, "reason", "")
            log.info("pass", key=str(key), plan=name_of(plan), reason=reason, took_ms=took)

    async def _wanted(self, key: Key, release: Release, version: str = "") -> Desired:
        """Return what is asked; a deletion asks nothing of its references."""
        if release.metadata.deletion_timestamp:
            return desired(release, Sources(values={}))
        sources = await self._sources.resolve(key, release)
        return kept_to_deployed(release, desired(release, sources, version))

    async def _step(self, key: Key, release: Release, wanted: Desired) -> Plan:
        target = await self._targets.reach(release)
        self._claims.put(key, target.id, wanted.release)
        if not target.sees():
            return Wait("looking at the cluster")
        memory = self._memory.setdefault(key, Memory())
        if not wanted.absent and not wanted.paused:
            release, wanted = await self._with_version(key, release, wanted, target, memory)
        ended = self._actions.take_ended(key)
        if ended:
            release = await self._conclude(key, release, wanted, target, memory, ended)
            self._upgrades.deployed(key)
        observed = await self._observe(key, release, wanted, target, memory)
        now = self._clock.now()
        state = classify(wanted, observed, now)
        plan = decide(wanted, observed, state, attempts_of(release), now)
        await self._carry_out(key, release, wanted, target, plan, state, observed)
        return plan

    async def _with_version(
        self, key: Key, release: Release, wanted: Desired, target: Target, memory: Memory
    ) -> tuple[Release, Desired]:
        """Turn a range, or no version at all, into the one version that is wanted now."""
        record = target.record(wanted.release)
        if record and must_look_inside(release, record, memory.decoded):
            memory.decoded = await target.decode(wanted.release, record.revision)
        offer = await self._upgrades.settle(key, release, wanted, record, memory.decoded)
        if offer and offer.version:
            wanted = await self._wanted(key, release, offer.version)
        elif needs_version(wanted):
            release, wanted = await self._fill_in(key, release, wanted, target)
        return release, replace(wanted, offer=offer) if offer else wanted

    async def _fill_in(
        self, key: Key, release: Release, wanted: Desired, target: Target
    ) -> tuple[Release, Desired]:
        """Find the latest version, once: afterwards what is deployed stands."""
        found = await target.resolve_chart(wanted.chart)
        if wanted.policies.late_initialize:
            release = await self._writer.late_initialize(release, found.name, found.version)
            return release, await self._wanted(key, release)
        # As if it were deployed already: what is asked must be the same before and after.
        status = msgspec.structs.replace(
            release.status,
            at_provider=msgspec.structs.replace(release.status.at_provider, version=found.version),
        )
        return release, await self._wanted(key, msgspec.structs.replace(release, status=status))

    async def _observe(
        self, key: Key, release: Release, wanted: Desired, target: Target, memory: Memory
    ) -> Observed:
        record = target.record(wanted.release)
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
            good=target.good_before(wanted.release, record.revision) if record else None,
            owner_alive=owner_alive,
            patches_sha=release.status.patches_sha,
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
        observed = await self._observe(key, release, wanted, target, memory)
        conclusion = conclude_action(release, wanted, ended, observed, self._clock.now())
        try:
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
                status = announce(release, wanted, plan, self._clock.now())
                await self._writer.status(release, status)
                self._actions.start(key, target, wanted, plan)
            case Rest() | Wait() | Stop():
                self._wait(key, release, plan)
                if isinstance(plan, Rest) and state.name in {StateName.IN_SYNC, StateName.UNREADY}:
                    await self._connect(key, release, wanted, target, observed)
                now = self._clock.now()
                status = conclude_quiet(release, wanted, observed, state, plan, now)
                if status.synced and isinstance(plan, Rest):
                    status = report(status, wanted)
                await self._writer.status(release, status)
                for notice in news(release.status, status):
                    await self._writer.tell(release, notice)
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
                await self._release_object(key, release)

    async def _release_object(self, key: Key, release: Release) -> None:
        await self._writer.let_go(release)
        self._let_go[key] = release.metadata.uid

    async def _connect(
        self, key: Key, release: Release, wanted: Desired, target: Target, observed: Observed
    ) -> None:
        """Write the connection secret when what it is made of may have changed."""
        if release.spec.write_connection_secret_to_ref is None:
            return
        made_of = (release.metadata.generation, observed.record, observed.objects)
        memory = self._memory[key]
        if memory.connected == made_of:
            return
        data = await gather(release, wanted, target)
        await self._writer.connect_secret(release, data)
        memory.connected = made_of

    def _wait(self, key: Key, release: Release, plan: Rest | Wait | Stop) -> None:
        if isinstance(plan, Wait) and plan.until:
            self._queue.add_after(key, plan.until - self._clock.now() + timedelta(milliseconds=5))
            return
        interval = release.metadata.annotations.get(POLL_INTERVAL)
        if interval:
            self._queue.add_after(key, duration(interval, POLL_INTERVAL))

    async def _refuse(
        self, key: Key, release: Release, wanted: Desired | None, fault: Fault
    ) -> None:
        """Say why nothing can be done, unless it was said and the next try is not due yet."""
        if wanted:
            fault = Fault(fault.kind, redact(fault.message, wanted.secrets))
        asked = question(wanted) if wanted else f"generation {release.metadata.generation}"
        now = self._clock.now()
        attempts = attempts_of(release)
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
