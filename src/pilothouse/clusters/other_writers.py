"""Notice another controller that writes the status of Releases while this one works.

Two controllers on one kind undo each other for ever. Field management tells who wrote: an object whose status
changed without us is looked at once, and only now and then, since our own writes look so too for a moment.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import structlog

from pilothouse.api.meta import FIELD_MANAGER, Key
from pilothouse.clusters.managers import Entry, notes_on
from pilothouse.clusters.objects import Objects
from pilothouse.errors import PilothouseError

log = structlog.get_logger(__name__)

BETWEEN_LOOKS_SECONDS = 5.0
# People who edit a status by hand are not a controller.
PEOPLE = ("kubectl", "k9s", "lens", "headlamp")


class OtherWriters:
    """Looks at Releases whose status changed, and tells the first foreign controller it finds."""

    def __init__(self, objects: Objects, found: Callable[[str], None]) -> None:
        self._objects = objects
        self._found = found
        self._started = datetime.now(UTC).replace(microsecond=0)
        self._suspect: Key | None = None
        self._news = asyncio.Event()

    def suspect(self, key: Key) -> None:
        """The status of a Release changed, and the watch was the first to say so."""
        self._suspect = key
        self._news.set()

    async def run(self) -> None:
        """Look at suspects until one is guilty, or cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            manager = await self._manager(self._suspect) if self._suspect else ""
            if manager:
                self._found(manager)
                return
            await asyncio.sleep(BETWEEN_LOOKS_SECONDS)

    async def _manager(self, key: Key) -> str:
        try:
            noted = await notes_on(self._objects, key.name, key.namespace)
        except PilothouseError as error:
            log.debug("cannot look who wrote", key=str(key), error=error.message)
            return ""
        return next((one.manager for one in noted.managed_fields if self._guilty(one)), "")

    def _guilty(self, entry: Entry) -> bool:
        if entry.subresource != "status" or entry.manager.startswith((FIELD_MANAGER, *PEOPLE)):
            return False
        recent = entry.time is not None and entry.time > self._started
        return recent and "conditions" in entry.at("status")
