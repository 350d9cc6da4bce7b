"""Passes that came to nothing: why, told once, and when to try again."""

from dataclasses import replace
from datetime import timedelta

import structlog

from pilothouse.api.meta import Key
from pilothouse.api.release import Release
from pilothouse.core.conclude import attempts_of, conclude_fault
from pilothouse.core.decide import question
from pilothouse.core.desired import Desired
from pilothouse.core.outcome import Conclusion, Fault
from pilothouse.core.redact import redact
from pilothouse.errors import AlreadyExists, Conflict, EngineLost, Missing, Unavailable
from pilothouse.loop.commit import Committer
from pilothouse.loop.queue import KeyedQueue
from pilothouse.loop.statuses import AFTER_OUTAGE
from pilothouse.loop.survey import Surveyor
from pilothouse.ports import Clock

log = structlog.get_logger(__name__)


class Refusals:
    """Tells why nothing can be done."""

    def __init__(
        self, surveyor: Surveyor, committer: Committer, queue: KeyedQueue, clock: Clock
    ) -> None:
        self._surveyor = surveyor
        self._committer = committer
        self._queue = queue
        self._clock = clock

    async def refuse(
        self, key: Key, release: Release, wanted: Desired | None, fault: Fault
    ) -> None:
        """Say why nothing can be done, unless it was said and the next try is not due yet."""
        # Also without a new answer to what is wanted: an earlier one may be quoted.
        secrets = self._surveyor.memory(key).hidden.secrets
        fault = Fault(fault.kind, redact(fault.message, secrets))
        asked = question(wanted) if wanted else f"generation {release.metadata.generation}"
        now = self._clock.now()
        waiting = self._surveyor.dependencies.excuse(key, release, fault.kind, now)
        attempts = attempts_of(release)
        told = not attempts.due(asked, now) and attempts.error == fault.message
        if told and attempts.next_at and not waiting:
            self._queue.add_after(key, attempts.next_at - now + timedelta(milliseconds=5))
            return
        deleting = release.metadata.deletion_timestamp is not None
        action = "Uninstall" if deleting else "Upgrade" if release.status.synced else "Install"
        conclusion = conclude_fault(release, asked, fault, now, action)
        if waiting:
            conclusion = Conclusion(status=waiting)
        status = self._surveyor.dependencies.told(key, release, conclusion.status, now)
        await self.say(key, release, replace(conclusion, status=status))
        log.warning("refused", key=str(key), reason=str(fault.kind), error=fault.message)

    async def say(self, key: Key, release: Release, conclusion: Conclusion) -> None:
        """Write a conclusion of a pass that came to nothing; who wrote first, or is gone, has the last word."""
        try:
            await self._committer.commit(key, release, conclusion)
        except (Conflict, EngineLost):
            self._queue.add(key)
        except (Missing, AlreadyExists):
            return
        except Unavailable as error:
            # The cluster that Releases are on is away: there is nobody to tell, and all is told when it is back.
            log.warning("cannot write", key=str(key), error=error.message)
            self._queue.add_after(key, AFTER_OUTAGE)
