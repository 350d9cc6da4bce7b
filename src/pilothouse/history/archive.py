"""The archive on SQLite: one writer, appended to, never rewritten.

Appending the same entry again changes nothing, because a crash between here and the status makes the next
pass append it again.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self, TypeVar

from pilothouse.core.outcome import Entry
from pilothouse.errors import PilothouseError

T = TypeVar("T")

SCHEMA = """
CREATE TABLE IF NOT EXISTS entry (
    id INTEGER PRIMARY KEY,
    release TEXT NOT NULL,
    cluster TEXT NOT NULL,
    helm_release TEXT NOT NULL,
    action TEXT NOT NULL,
    reason TEXT NOT NULL,
    digest TEXT NOT NULL,
    revision INTEGER NOT NULL,
    chart TEXT NOT NULL,
    error TEXT NOT NULL,
    started TEXT NOT NULL,
    finished TEXT NOT NULL,
    logs TEXT NOT NULL DEFAULT '',
    inventory TEXT NOT NULL DEFAULT '',
    UNIQUE (release, action, digest, revision, started)
)
"""
INSERT = """
INSERT OR IGNORE INTO entry
    (release, cluster, helm_release, action, reason, digest, revision, chart, error, started, finished,
     logs, inventory)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
# A file of an earlier version has no such columns.
ADDED = {
    "logs": "ALTER TABLE entry ADD COLUMN logs TEXT NOT NULL DEFAULT ''",
    "inventory": "ALTER TABLE entry ADD COLUMN inventory TEXT NOT NULL DEFAULT ''",
}


class SqliteArchive:
    """Appends entries from one thread; implements ports.Archive."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="archive")
        self._database: sqlite3.Connection | None = None

    async def __aenter__(self) -> Self:
        await self._do(self._open)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._do(self._close)
        self._thread.shutdown()

    async def append(self, entry: Entry) -> None:
        """Keep one entry, once."""
        await self._do(self._append, entry)

    async def entries(self, helm_release: str) -> list[tuple[str, int, str, str]]:
        """Return (action, revision, reason, error) of one Helm release, oldest first."""
        return await self._do(self._entries, helm_release)

    async def _do(self, work: Callable[..., T], *arguments: object) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, work, *arguments)

    def _open(self) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._database = sqlite3.connect(self._path)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.execute(SCHEMA)
            columns = {row[1] for row in self._database.execute("PRAGMA table_info(entry)")}
            for name in ADDED.keys() - columns:
                self._database.execute(ADDED[name])
        except (sqlite3.Error, OSError) as error:
            msg = f"the archive {self._path} cannot be opened: {error}"
            raise PilothouseError(msg) from error

    def _append(self, entry: Entry) -> None:
        row = (
            entry.release,
            entry.cluster,
            entry.helm_release,
            entry.action,
            entry.reason,
            entry.digest,
            entry.revision,
            entry.chart,
            entry.error,
            entry.started.isoformat(),
            entry.finished.isoformat(),
            entry.logs,
            entry.inventory,
        )
        database = self._opened()
        with database:
            database.execute(INSERT, row)

    def _entries(self, helm_release: str) -> list[tuple[str, int, str, str]]:
        query = (
            "SELECT action, revision, reason, error FROM entry WHERE helm_release = ? ORDER BY id"
        )
        return list(self._opened().execute(query, (helm_release,)))

    def _close(self) -> None:
        if self._database:
            self._database.close()
            self._database = None

    def _opened(self) -> sqlite3.Connection:
        if self._database is None:
            msg = "the archive is not open"
            raise PilothouseError(msg)
        return self._database
