"""Write a conclusion: archive, then status, then Event; each of them may be repeated without harm."""

from datetime import timedelta

from pilothouse.api.meta import Key
from pilothouse.api.release import Release
from pilothouse.core.outcome import Conclusion
from pilothouse.loop.queue import KeyedQueue
from pilothouse.loop.statuses import Statuses
from pilothouse.ports import Archive, Clock, Writer


class Committer:
    """Writes conclusions in the order that loses nothing."""

    def __init__(
        self,
        writer: Writer,
        statuses: Statuses,
        archive: Archive,
        queue: KeyedQueue,
        clock: Clock,
    ) -> None:
        self._writer = writer
        self._statuses = statuses
        self._archive = archive
        self._queue = queue
        self._clock = clock

    async def commit(self, key: Key, release: Release, conclusion: Conclusion) -> Release:
        """Write a conclusion; return the Release as it is then."""
        if conclusion.entry:
            await self._archive.append(conclusion.entry)
        release = await self._statuses.write(key, release, conclusion.status)
        if conclusion.notice:
            await self._writer.tell(release, conclusion.notice)
        if conclusion.again_at:
            delay = conclusion.again_at - self._clock.now() + timedelta(milliseconds=5)
            self._queue.add_after(key, delay)
        return release
