"""The archive keeps every entry once."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from make import NOW

from pilothouse.core.outcome import Entry
from pilothouse.errors import PilothouseError
from pilothouse.history.archive import SqliteArchive

ENTRY = Entry(
    release="uid-shop",
    cluster="default",
    helm_release="web/shop",
    action="Install",
    reason="not installed",
    digest="d" * 40,
    revision=1,
    chart="tiny 1.0.0",
    error="",
    started=NOW,
    finished=NOW,
)


async def test_an_entry_is_kept_once_and_survives(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "archive.db"
    async with SqliteArchive(path) as archive:
        await archive.append(ENTRY)
        await archive.append(ENTRY)
        await archive.append(replace(ENTRY, action="Upgrade", revision=2))
    async with SqliteArchive(path) as archive:
        entries = await archive.entries("web/shop")
    assert [(action, revision) for action, revision, _, _ in entries] == [
        ("Install", 1),
        ("Upgrade", 2),
    ]


async def test_a_file_that_is_no_archive_is_named(tmp_path: Path) -> None:
    path = tmp_path / "archive.db"
    path.write_bytes(b"certainly not a database, and long enough to be read as one" * 20)
    with pytest.raises(PilothouseError, match=r"archive\.db cannot be opened"):
        async with SqliteArchive(path):
            pass


async def test_it_is_a_plain_sqlite_file(tmp_path: Path) -> None:
    path = tmp_path / "archive.db"
    async with SqliteArchive(path) as archive:
        await archive.append(ENTRY)
    database = sqlite3.connect(path)
    assert database.execute("SELECT count(*) FROM entry").fetchone() == (1,)
    database.close()


async def test_a_file_of_an_earlier_version_is_used_on(tmp_path: Path) -> None:
    path = tmp_path / "archive.db"
    async with SqliteArchive(path) as archive:
        await archive.append(ENTRY)
    database = sqlite3.connect(path)
    for column in ("logs", "inventory"):
        database.execute(f"ALTER TABLE entry DROP COLUMN {column}")
    database.close()
    async with SqliteArchive(path) as archive:
        await archive.append(replace(ENTRY, revision=2, logs="Job migrate:\nno"))
    database = sqlite3.connect(path)
    rows = database.execute("SELECT revision, logs FROM entry ORDER BY id").fetchall()
    database.close()
    assert rows == [(1, ""), (2, "Job migrate:\nno")]
