"""Actions under way: each runs as a task of its own and holds no worker.

When one ends its outcome waits here, and its key is queued: the next pass concludes. An action that only
waits (for readiness, for a hook) gives its slot to others, so a ten-minute hook delays nobody; nor does a cluster
that does not answer (see slots.py).
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import structlog

from pilothouse.api.meta import Key
from pilothouse.core.decide import question
from pilothouse.core.desired import Desired
from pilothouse.core.masking import masked
from pilothouse.core.observed import Running
from pilothouse.core.outcome import Ended, Errand, Fault, Outcome
from pilothouse.core.plan import Action, Install, Uninstall, Unlock, Upgrade, name_of
from pilothouse.core.redact import redact
from pilothouse.errors import EngineLost, PilothouseError
from pilothouse.faults import FaultKind
from pilothouse.loop.slots import Slot, Slots
from pilothouse.ports import Meter, Order, Progress, Target

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Underway:
    running: Running
    task: asyncio.Task[None]


class Actions:
    """What is being done, by key."""

    def __init__(
        self,
        tasks: asyncio.TaskGroup,
        at_once: int,
        owner: str,
        wake: Callable[[Key], None],
        begun: Callable[[Key], None],
        meter: Meter,
    ) -> None:
        self._tasks = tasks
        self._slots = Slots(at_once)
        self._owner = owner
        self._wake = wake
        self._begun = begun
        self._meter = meter
        self._underway: dict[Key, _Underway] = {}
        self._ended: dict[Key, Ended] = {}

    def running(self, key: Key) -> Running | None:
        """Return the action under way, if there is one."""
        underway = self._underway.get(key)
        return underway.running if underway else None

    def take_ended(self, key: Key, uid: str) -> Ended | None:
        """Return, once, the action that has ended; one of another Release of that name is dropped."""
        ended = self._ended.pop(key, None)
        return ended if ended and ended.errand.uid == uid else None

    def forget(self, key: Key) -> None:
        """The object is gone: nobody waits for what is done for it, nor for what that came to."""
        self._ended.pop(key, None)
        self.interrupt(key)

    def put_back(self, key: Key, ended: Ended) -> None:
        """Keep an ended action for the next pass, unless a newer one has ended meanwhile."""
        self._ended.setdefault(key, ended)

    def start(
        self, key: Key, errand: Errand, target: Target, desired: Desired, plan: Action
    ) -> None:
        """Begin an action."""
        task = self._tasks.create_task(
            self._run(key, errand, target, desired, plan), name=f"{name_of(plan)} {key}"
        )
        # Until it has a slot nothing has been done, so a newer spec may take its place.
        running = Running(name_of(plan), question(desired), waiting=True)
        self._underway[key] = _Underway(running, task)

    def interrupt(self, key: Key) -> None:
        """End the wait of an action; an apply under way is never cut."""
        underway = self._underway.get(key)
        if underway and underway.running.waiting:
            underway.running = replace(underway.running, stopping=True)
            underway.task.cancel()

    async def drain(self, grace: float) -> None:
        """End all waits and let applies finish, for at most `grace` seconds."""
        for key in list(self._underway):
            self.interrupt(key)
        tasks = [underway.task for underway in self._underway.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=grace)
        for underway in list(self._underway.values()):
            underway.task.cancel()

    async def _run(
        self, key: Key, errand: Errand, target: Target, desired: Desired, plan: Action
    ) -> None:
        outcome = Outcome(fault=Fault(FaultKind.CANCELLED, "ended by a newer spec"))
        try:
            # Here everything that Helm says passes, and the eyes remember it for later passes.
            outcome = masked(await self._outcome(key, target, desired, plan), desired.secrets)
            removed = isinstance(plan, Uninstall | Unlock) and outcome.fault is None
            target.learn(desired.release, outcome, removed=removed)
        except asyncio.CancelledError:
            underway = self._underway.get(key)
            if underway is None or not underway.running.stopping:
                raise
            # An interrupt of ours: the outcome above stands, and the pass decides anew.
            current = asyncio.current_task()
            if current:
                current.uncancel()
        finally:
            self._underway.pop(key, None)
            self._ended[key] = Ended(desired, plan, outcome, errand)
            self._meter.acted(name_of(plan), str(outcome.fault.kind) if outcome.fault else "")
            self._wake(key)

    async def _outcome(self, key: Key, target: Target, desired: Desired, plan: Action) -> Outcome:
        slot = self._slots.on(target.id)
        try:
            if not isinstance(plan, Install | Upgrade):
                async with slot:
                    self._begin(key)
                    order = Order(desired, plan, owner=self._owner)
                    return await self._follow(key, target, order, slot)
            # Before the slot: a chart server that does not answer holds nobody else up.
            chart = await target.resolve_chart(desired.chart)
            order = Order(desired, plan, chart_digest=chart.digest, owner=self._owner)
            async with slot:
                self._begin(key)
                outcome = await self._follow(key, target, order, slot)
            return replace(
                outcome,
                chart_digest=chart.digest,
                republished=chart.republished,
                warnings=chart.warnings,
            )
        except EngineLost as lost:
            return Outcome(fault=Fault(FaultKind.ENGINE_LOST, lost.message))
        except PilothouseError as error:
            return Outcome(
                record=target.record(desired.release), fault=Fault(error.kind, error.message)
            )

    async def _follow(self, key: Key, target: Target, order: Order, slot: Slot) -> Outcome:
        async with contextlib.aclosing(target.run(order)) as events:
            async for event in events:
                if isinstance(event, Outcome):
                    return event
                said = redact(event.message, order.desired.secrets)
                self._progress(key, replace(event, message=said), slot)
        msg = "the engine ended an action without an outcome"
        raise EngineLost(msg, FaultKind.ENGINE_LOST)

    def _begin(self, key: Key) -> None:
        underway = self._underway.get(key)
        if underway:
            underway.running = replace(underway.running, waiting=False)
            self._begun(key)

    def _progress(self, key: Key, progress: Progress, slot: Slot) -> None:
        underway = self._underway.get(key)
        if underway is None:
            return
        said = progress.message if progress.waiting else ""
        if (underway.running.waiting, underway.running.progress) == (progress.waiting, said):
            return
        underway.running = replace(
            underway.running, waiting=progress.waiting, progress=said, hooks=progress.hooks
        )
        log.debug("progress", key=str(key), message=progress.message)
        if progress.waiting:
            slot.release()
            # A newer spec may have been waiting for this moment.
            self._wake(key)
