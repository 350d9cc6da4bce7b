"""Passes that only look: what would be done is told, nothing is written anywhere."""

from pilothouse.api.meta import Key
from pilothouse.api.release import Release
from pilothouse.core.conclude import attempts_of
from pilothouse.core.decide import decide
from pilothouse.core.dependencies import gate
from pilothouse.core.desired import needs_version
from pilothouse.core.outcome import Fault
from pilothouse.core.plan import Inspect
from pilothouse.core.redact import redact
from pilothouse.core.state import classify
from pilothouse.core.verdict import Verdict, cannot_judge, summary, verdict
from pilothouse.errors import EngineLost, PilothouseError
from pilothouse.faults import FaultKind
from pilothouse.loop.queue import KeyedQueue
from pilothouse.loop.survey import Surveyor
from pilothouse.ports import Clock, Releases, Say


class Lookout:
    """Judges Releases and tells each answer when it is new."""

    def __init__(
        self, surveyor: Surveyor, releases: Releases, queue: KeyedQueue, clock: Clock, say: Say
    ) -> None:
        self._surveyor = surveyor
        self._releases = releases
        self._queue = queue
        self._clock = clock
        self._say = say
        self._verdicts: dict[Key, Verdict] = {}
        self._summed_up = False

    def forget(self, key: Key) -> None:
        """The object is gone."""
        self._verdicts.pop(key, None)
        self._surveyor.forget(key)

    async def run_pass(self, key: Key, release: Release) -> None:
        """Judge one Release."""
        try:
            found = await self._judge(key, release)
        except EngineLost:
            self._queue.add(key)
            return
        except ValueError as error:
            found = self._cannot_judge(key, release, FaultKind.INVALID, str(error))
        except PilothouseError as error:
            found = self._cannot_judge(key, release, error.kind, error.message)
        if found:
            self._tell(key, release, found)

    async def _judge(self, key: Key, release: Release) -> Verdict | None:
        needs = await self._surveyor.dependencies.look(key, release)
        wanted = await self._surveyor.wanted(key, release)
        target = await self._surveyor.reach(key, release, wanted)
        if not target.sees(wanted.release):
            return None  # the cluster's first sight wakes this key
        if not wanted.absent:
            wanted = await self._surveyor.with_offer(key, release, wanted, target)
        if needs_version(wanted) and not wanted.absent:
            version = await self._surveyor.deployed_version(key, release, wanted, target)
            version = version or (await target.resolve_chart(wanted.chart)).version
            wanted = await self._surveyor.wanted(key, release, version)
        observed = await self._surveyor.observe(key, release, wanted, target)
        now = self._clock.now()
        state = classify(wanted, observed, now)
        plan = gate(decide(wanted, observed, state, attempts_of(release), now), needs, now)
        if isinstance(plan, Inspect):
            decoded = await target.decode(wanted.release, plan.revision)
            self._surveyor.memory(key).decoded = decoded
            self._queue.add(key)
            return None
        if observed.record and observed.objects is None:
            return None  # its objects are being looked at, which wakes this key
        judged = verdict(release, state, plan)
        why = redact(judged.why, wanted.secrets)
        return Verdict(judged.would, why, judged.ready_there, judged.ready_here)

    def _cannot_judge(self, key: Key, release: Release, kind: FaultKind, why: str) -> Verdict:
        secrets = self._surveyor.memory(key).hidden.secrets
        return cannot_judge(release, Fault(kind, redact(why, secrets)))

    def _tell(self, key: Key, release: Release, found: Verdict) -> None:
        if self._verdicts.get(key) == found:
            return
        self._verdicts[key] = found
        self._say(f"{release.metadata.name}: {found}")
        if not self._summed_up and len(self._verdicts) >= len(self._releases):
            self._summed_up = True
            self._say(summary(list(self._verdicts.values())))
