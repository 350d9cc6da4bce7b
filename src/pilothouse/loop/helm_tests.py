"""The chart's tests, beside the passes: meanwhile the release is looked at as ever, and anything newer ends them."""

from collections.abc import Callable
from datetime import datetime, timedelta

from pilothouse.api.meta import Key
from pilothouse.api.release import Release
from pilothouse.core.desired import Desired
from pilothouse.core.helm_tests import (
    announced,
    conclude,
    due,
    in_the_way,
    may_wait,
    refused,
    run_again,
    unanswered,
)
from pilothouse.core.observed import Observed
from pilothouse.core.outcome import Errand
from pilothouse.core.plan import Plan, Wait
from pilothouse.core.state import State
from pilothouse.errors import PilothouseError
from pilothouse.loop.actions import Actions
from pilothouse.loop.commit import Committer
from pilothouse.loop.queue import KeyedQueue
from pilothouse.loop.statuses import Statuses
from pilothouse.ports import Clock, Target


class HelmTests:
    """Which tests run, and what is written about them."""

    def __init__(
        self,
        running: Actions,
        committer: Committer,
        statuses: Statuses,
        queue: KeyedQueue,
        clock: Clock,
        errand: Callable[[Key, Release], Errand],
    ) -> None:
        # Actions of their own: tests under way are no reason to look at a release less closely.
        self._running = running
        self._committer = committer
        self._statuses = statuses
        self._queue = queue
        self._clock = clock
        self._errand = errand
        # How many runs in a row came to nothing, and when the next one may begin.
        self._in_vain: dict[Key, tuple[int, datetime]] = {}

    def forget(self, key: Key) -> None:
        """The object is gone."""
        self._in_vain.pop(key, None)
        self._running.forget(key)

    async def conclude(self, key: Key, release: Release) -> Release:
        """Write what tests that have ended came to; return the Release as it is then."""
        ended = self._running.take_ended(key, release.metadata.uid)
        if ended is None:
            return release
        now = self._clock.now()
        runs = self._in_vain.get(key, (0, now))[0] + 1
        wait = run_again(ended, runs)
        if wait is not None:
            self._in_vain[key] = (runs, now + wait)
            return release
        try:
            release = await self._committer.commit(key, release, conclude(release, ended, now))
        except PilothouseError:
            self._running.put_back(key, ended)  # the next pass writes it
            raise
        self._in_vain.pop(key, None)
        return release

    def first(self, key: Key, plan: Plan) -> Plan:
        """Return the plan, or the wait for the tests to end that it would disturb."""
        if self._running.running(key) is None:
            return plan
        if in_the_way(plan):
            self._running.interrupt(key)
            return Wait("ending the tests first")
        return Wait("tests are running") if may_wait(plan) else plan

    async def begin(
        self,
        key: Key,
        release: Release,
        wanted: Desired,
        target: Target,
        observed: Observed,
        state: State,
        plan: Plan,
    ) -> Release:
        """Run tests when it is time; return the Release as it is then."""
        if not unanswered(release) or self._running.running(key):
            return release
        tests = due(release, wanted, observed, state, plan)
        if tests is None:
            return release
        now = self._clock.now()
        not_before = self._in_vain.get(key, (0, now))[1]
        if now < not_before:
            self._queue.add_after(key, not_before - now + timedelta(milliseconds=5))
            return release
        if not wanted.policies.update:
            return await self._committer.commit(key, release, refused(release, now))
        release = await self._statuses.write(key, release, announced(release, tests, now))
        self._running.start(key, self._errand(key, release), target, wanted, tests)
        return release
