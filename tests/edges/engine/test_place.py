"""The directory of an engine's sockets goes with its owner, however that ends."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from pilothouse.engine.place import PREFIX, private_directory

HOLD = """
from pilothouse.engine.place import private_directory
with private_directory() as directory:
    (directory / "1.sock").touch()
    print(directory, flush=True)
    input()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def age(directory: Path) -> None:
    """Let a directory look as if it had been made an hour ago."""
    then = time.time() - 3600
    os.utime(directory, (then, then))


def held() -> tuple[subprocess.Popen[str], Path]:
    """Let another process make a directory, and hold it."""
    owner = subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout
    directory = Path(owner.stdout.readline().strip())
    age(directory)
    return owner, directory


def test_it_is_private_and_goes_with_its_owner(temporary: Path) -> None:
    with private_directory() as directory:
        assert directory.parent == temporary
        assert directory.stat().st_mode & 0o777 == 0o700
    assert not directory.exists()


def test_what_a_killed_owner_left_is_removed_by_the_next(temporary: Path) -> None:
    owner, directory = held()
    assert directory.parent == temporary
    with private_directory():
        assert directory.exists(), "its owner is alive"
    owner.kill()
    owner.communicate()
    assert directory.exists(), "a killed owner cannot tidy up"
    with private_directory() as ours:
        assert list(temporary.iterdir()) == [ours]


def test_what_is_not_ours_to_judge_stays(temporary: Path) -> None:
    young = temporary / f"{PREFIX}young"
    young.mkdir()
    other = temporary / "other"
    other.mkdir()
    age(other)
    link = temporary / f"{PREFIX}link"
    link.symlink_to(other)
    with private_directory():
        pass
    assert set(temporary.iterdir()) == {young, other, link}
