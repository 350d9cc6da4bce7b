"""Comparing and putting back what others changed: beside the passes, a few at a time.

A comparison changes nothing, so a pass goes on without it; a repair is an action, and nothing else is done to
the release meanwhile. The end of either queues the key.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from datetime import datetime, timedelta

import structlog

from pilothouse.api.meta import Key
from pilothouse.api.release import Release
from pilothouse.api.status import ReleaseStatus
from pilothouse.core.decide import question
from pilothouse.core.desired import Desired
from pilothouse.core.drift import Standing, judge, worth_searching
from pilothouse.core.drift_known import Finding, Known, found, repaired, swept
from pilothouse.core.drift_report import Mended, conclude_repair, is_final, news, with_drift
from pilothouse.core.observed import ObjectRef, Observed, Record, Running, Suspect
from pilothouse.core.outcome import Errand
from pilothouse.core.plan import Repair
from pilothouse.core.redact import redact
from pilothouse.errors import EngineLost, PilothouseError
from pilothouse.faults import FaultKind
from pilothouse.loop.findings import finding_of, wrong_among
from pilothouse.loop.queue import KeyedQueue
from pilothouse.loop.slots import Slots
from pilothouse.loop.statuses import Statuses
from pilothouse.ports import Archive, Clock, Comparison, Meter, Target, Writer

log = structlog.get_logger(__name__)

AT_ONCE = 8
AFTER_LOSS = timedelta(seconds=1)
_NOTHING = Known()
# Somebody else is changing the release: what is drift must be judged anew.
_NOT_NOW = frozenset({FaultKind.BUSY, FaultKind.CONFLICT})


class Repairs:
    """What is known of each key's drift, and what is being done about it."""

    def __init__(
        self,
        tasks: asyncio.TaskGroup,
        queue: KeyedQueue,
        clock: Clock,
        writer: Writer,
        statuses: Statuses,
        archive: Archive,
        meter: Meter,
    ) -> None:
        self._tasks = tasks
        self._queue = queue
        self._clock = clock
        self._writer = writer
        self._statuses = statuses
        self._archive = archive
        self._meter = meter
        self._slots = Slots(AT_ONCE)
        self._known: dict[Key, Known] = {}
        # What searches found, by the revision they looked at.
        self._found: dict[Key, tuple[int, tuple[Suspect, ...]]] = {}
        self._comparing: dict[Key, asyncio.Task[None]] = {}
        self._repairing: dict[Key, tuple[Running, asyncio.Task[None]]] = {}
        self._ended: dict[Key, Mended] = {}

    def forget(self, key: Key) -> None:
        """The object is gone."""
        self._known.pop(key, None)
        self._found.pop(key, None)
        self._ended.pop(key, None)

    def moved(self, key: Key) -> None:
        """What was found, or fought over, in one place is neither in another."""
        self._known.pop(key, None)
        self._found.pop(key, None)
        if key in self._comparing:
            self._comparing[key].cancel()
            self._queue.add_after(key, AFTER_LOSS)

    async def drain(self, grace: float) -> None:
        """Let repairs finish, for at most `grace` seconds; comparisons are of no use any more."""
        for comparing in self._comparing.values():
            comparing.cancel()
        repairing = [task for _, task in self._repairing.values()]
        if repairing:
            await asyncio.wait(repairing, timeout=grace)
        for task in repairing:
            task.cancel()

    def look(
        self,
        key: Key,
        target: Target,
        wanted: Desired,
        observed: Observed,
        *,
        everything: bool = False,
        final: bool = False,
    ) -> Observed:
        """Judge what the eyes saw; what must be compared is, beside this pass: `everything` when asked to.

        What is deployed is not what is wanted, and yet `final`, when nothing more is tried.
        """
        if key in self._repairing:
            return replace(observed, running=observed.running or self._repairing[key][0])
        if wanted.paused or wanted.absent or observed.holder or observed.running:
            return observed
        made_from = observed.record.digest if observed.record else ""
        another = made_from and made_from != wanted.digest
        if another and wanted.policies.update and not final:
            return observed  # out of sync: an action is due, and applies everything
        seen = observed.objects.suspects if observed.objects else ()
        observed = self._with_found(key, observed)
        now, known = self._clock.now(), self._known.get(key, _NOTHING)
        if known is not _NOTHING:
            known = swept(known, observed.objects.suspects if observed.objects else None, now)
            self._remember(key, known)
        drift = judge(wanted.drift, wanted.policies, observed, known, now)
        if observed.record and key not in self._comparing:
            if everything and worth_searching(wanted.drift, observed.record):
                self._begin(key, self._search(key, target, wanted, observed.record, seen))
            elif drift.compare:
                log.debug("comparing", key=str(key), objects=len(drift.compare))
                revision = observed.record.revision
                self._begin(key, self._compare(key, target, wanted, revision, drift.compare))
        return replace(observed, drift=drift)

    def _begin(self, key: Key, work: Coroutine[None, None, None]) -> None:
        self._comparing[key] = self._tasks.create_task(work, name=f"Compare {key}")

    def _with_found(self, key: Key, observed: Observed) -> Observed:
        """Suspect also what a search has found that the eyes cannot see."""
        objects, (revision, found_there) = observed.objects, self._found.get(key, (0, ()))
        if objects is None or not found_there or revision != objects.revision:
            return observed
        seen = {one.ref for one in objects.suspects}
        more = tuple(one for one in found_there if one.ref not in seen)
        return replace(observed, objects=replace(objects, suspects=(*objects.suspects, *more)))

    def start(
        self,
        key: Key,
        errand: Errand,
        target: Target,
        wanted: Desired,
        observed: Observed,
        plan: Repair,
    ) -> None:
        """Begin a repair."""
        revision = observed.record.revision if observed.record else 0
        mended = Mended(wanted, plan.corrections, revision, self._clock.now(), {}, errand)
        task = self._tasks.create_task(self._repair(key, target, mended), name=f"Repair {key}")
        self._repairing[key] = (Running("Repair", question(wanted)), task)

    async def conclude(self, key: Key, release: Release) -> None:
        """Record and tell a repair that has ended, once."""
        mended = self._ended.get(key)
        if mended is None or mended.errand.uid != release.metadata.uid:
            self._ended.pop(key, None)
            return
        entry, notices = conclude_repair(release, mended, self._clock.now())
        await self._archive.append(entry)
        self._ended.pop(key, None)
        for notice in notices:
            await self._writer.tell(release, notice)

    async def write(
        self, key: Key, release: Release, wanted: Desired, observed: Observed, status: ReleaseStatus
    ) -> Release:
        """Write a status with what stands, and tell what is new of it."""
        drift = observed.drift
        if drift is None or not is_final(status):
            return await self._statuses.write(key, release, status)
        now = self._clock.now()
        if drift.until:
            self._queue.add_after(key, drift.until - now + timedelta(milliseconds=5))
        status = with_drift(release, status, drift, wanted.secrets, now)
        known = self._known.get(key, _NOTHING)
        told = news(release, drift, wanted.secrets, known.named)
        written = await self._statuses.write(key, release, status)
        fights = [one for one in drift.stands if one.why is Standing.FIGHT]
        if fights and not drift.unsettled:
            places = {(one.ref, place.path) for one in fights for place in one.differences}
            known = self._known.get(key, _NOTHING)  # a comparison may have ended meanwhile
            self._remember(key, replace(known, named=known.named | places))
        for notice in told:
            await self._writer.tell(written, notice)
        return written

    def _remember(self, key: Key, known: Known) -> None:
        if known == replace(_NOTHING, revision=known.revision):
            self._known.pop(key, None)
        else:
            self._known[key] = known

    async def _compare(
        self,
        key: Key,
        target: Target,
        wanted: Desired,
        revision: int,
        suspects: tuple[Suspect, ...],
    ) -> None:
        def done(findings: list[Finding]) -> None:
            self._known[key] = found(self._known.get(key, _NOTHING), revision, findings)

        try:
            async with self._slots.on(target.id):
                told = await target.compare(wanted.release, revision, suspects)
            now = self._clock.now()
            said = {one.ref: one for one in told}
            done([finding_of(one, said.get(one.ref), now) for one in suspects])
        except EngineLost:
            self._queue.add_after(key, AFTER_LOSS)
            return
        except PilothouseError as error:
            log.warning("cannot compare", key=str(key), error=redact(error.message, wanted.secrets))
            now = self._clock.now()
            done([Finding(one, now, fault=error.message) for one in suspects])
        finally:
            self._comparing.pop(key, None)
        self._queue.add(key)

    async def _search(
        self,
        key: Key,
        target: Target,
        wanted: Desired,
        record: Record,
        seen: tuple[Suspect, ...],
    ) -> None:
        """Compare every object, those too that look untouched; what the eyes have `seen` is anyway."""
        log.debug("searching", key=str(key))
        began = self._clock.now()
        try:
            async with self._slots.on(target.id):
                told = await target.compare(wanted.release, record.revision, ())
        except PilothouseError as error:
            log.warning("cannot search", key=str(key), error=redact(error.message, wanted.secrets))
            return
        finally:
            self._comparing.pop(key, None)
            # What the eyes saw meanwhile could not be compared.
            self._queue.add(key)
        if self._repaired_since(key, began):
            return  # what was read may be from before: the next search tells
        refs = {one.ref for one in seen}
        self._take_found(key, record.revision, [one for one in told if one.ref not in refs])

    def _repaired_since(self, key: Key, began: datetime) -> bool:
        findings = self._known.get(key, _NOTHING).findings.values()
        return key in self._repairing or any(one.mended and one.at >= began for one in findings)

    def _take_found(self, key: Key, revision: int, told: list[Comparison]) -> None:
        """Suspect what a search has found, and nothing any more that it found to be right."""
        held_revision, held = self._found.get(key, (0, ()))
        unsure = {one.ref for one in told if one.fault}
        kept = [one for one in held if held_revision == revision and one.ref in unsure]
        findings = wrong_among(told, self._clock.now())
        suspects = (*kept, *(one.suspect for one in findings))
        self._found.pop(key, None)
        if suspects:
            self._found[key] = (revision, suspects)
        if findings:
            self._known[key] = found(self._known.get(key, _NOTHING), revision, findings)

    async def _repair(self, key: Key, target: Target, mended: Mended) -> None:
        began = self._clock.now()
        try:
            async with self._slots.on(target.id):
                failed = await target.repair(
                    mended.desired.release, mended.revision, mended.corrections
                )
        except EngineLost:
            self._queue.add_after(key, AFTER_LOSS)
            return
        except PilothouseError as error:
            if error.kind in _NOT_NOW:
                self._queue.add_after(key, AFTER_LOSS)
                return
            failed = {one.ref: error.message for one in mended.corrections}
        finally:
            self._repairing.pop(key, None)
        self._end(key, mended, failed, began)

    def _end(self, key: Key, mended: Mended, failed: dict[ObjectRef, str], began: datetime) -> None:
        now = self._clock.now()
        known = self._known.get(key, _NOTHING)
        self._known[key] = repaired(known, mended.corrections, failed, now)
        self._ended[key] = replace(mended, failed=failed)
        self._meter.repaired(len(mended.corrections), len(failed))
        took = round((now - began).total_seconds() * 1000, 1)
        log.info("repaired", key=str(key), objects=len(mended.corrections), took_ms=took)
        self._queue.add(key)
