"""Check the chart that is deployed, when what it is checked for has changed."""

from pilothouse.api.meta import Key
from pilothouse.api.release import Release
from pilothouse.core.desired import Desired
from pilothouse.core.observed import Observed
from pilothouse.core.outcome import Fault
from pilothouse.core.state import State
from pilothouse.core.trust import Checked, passed
from pilothouse.core.trust_report import conclude_check
from pilothouse.errors import EngineLost, PilothouseError
from pilothouse.faults import NO_CHART
from pilothouse.loop.commit import Committer
from pilothouse.loop.queue import KeyedQueue
from pilothouse.loop.survey import Surveyor
from pilothouse.ports import Clock, Target


class Checks:
    """Asks the engine to find and verify a chart once more; nothing is deployed."""

    def __init__(
        self, surveyor: Surveyor, committer: Committer, queue: KeyedQueue, clock: Clock
    ) -> None:
        self._surveyor = surveyor
        self._committer = committer
        self._queue = queue
        self._clock = clock

    async def run(
        self,
        key: Key,
        release: Release,
        wanted: Desired,
        target: Target,
        observed: Observed,
        state: State,
    ) -> None:
        """Check, and remember that it was good or tell that it was not."""
        found = await self._check(release, wanted, target, observed)
        denied = isinstance(found, Fault) and found.kind in NO_CHART
        self._surveyor.memory(key).denied_with = wanted.chart.way if denied else None
        if isinstance(found, Checked):
            self._surveyor.memory(key).checked = found
            self._queue.add(key)
            return
        now = self._clock.now()
        conclusion = conclude_check(release, wanted, observed, state, found, now)
        await self._committer.commit(key, release, conclusion)

    async def _check(
        self, release: Release, wanted: Desired, target: Target, observed: Observed
    ) -> Checked | Fault:
        record = observed.record
        if record is None:
            raise AssertionError("only what is deployed is checked")
        try:
            chart = await target.resolve_chart(wanted.chart)
        except EngineLost:
            raise
        except PilothouseError as error:
            return Fault(error.kind, error.message)
        return passed(release, wanted, record, chart.digest)
