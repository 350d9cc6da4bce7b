"""Notice another controller that writes the status of Releases while this one works.

Two controllers on one kind undo each other for ever. Field management tells who wrote: an object whose status
changed without us is looked at once, and only now and then, since our own writes look so too for a moment.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import structlog

from pilothouse.api.kinds import RELEASE
from pilothouse.api.meta import Key
from pilothouse.engine.client import EngineClient
from pilothouse.errors import PilothouseError
from pilothouse.ports import Credentials

log = structlog.get_logger(__name__)

BETWEEN_LOOKS_SECONDS = 5.0
OURS = "pilothouse"
# People who edit a status by hand are not a controller.
PEOPLE = ("kubectl", "k9s", "lens", "headlamp")


class OtherWriters:
    """Looks at Releases whose status changed, and tells the first foreign controller it finds."""

    def __init__(self, engine: EngineClient, at: Credentials, found: Callable[[str], None]) -> None:
        self._engine = engine
        self._at = at
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
            raw = await self._engine.get(self._at, RELEASE, key.name, key.namespace)
        except PilothouseError as error:
            log.debug("cannot look who wrote", key=str(key), error=error.message)
            return ""
        entries: list[dict[str, Any]] = msgspec.json.decode(raw)["metadata"].get(
            "managedFields", []
        )
        return next((one["manager"] for one in entries if self._guilty(one)), "")

    def _guilty(self, entry: dict[str, Any]) -> bool:
        manager = str(entry.get("manager", ""))
        if entry.get("subresource") != "status" or manager.startswith((OURS, *PEOPLE)):
            return False
        if "f:conditions" not in entry.get("fieldsV1", {}).get("f:status", {}):
            return False
        return datetime.fromisoformat(entry.get("time", "1970-01-01T00:00:00Z")) > self._started
