"""A build that is interrupted ends at once, compilers included."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pilothouse import gobuild

ROOT = Path(__file__).resolve().parents[3]


def at_work(place: Path) -> list[str]:
    """Name the processes whose Go cache is in a place."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(place).encode() in (process / "environ").read_bytes():
                found.append((process / "comm").read_text().strip())
        except OSError:
            continue  # it has ended, or is someone else's
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda one: one.name)
def test_an_interrupted_build_leaves_nobody_at_work(tmp_path: Path, number: signal.Signals) -> None:
    empty = {"GOCACHE": str(tmp_path / "go"), "PILOTHOUSE_CACHE": str(tmp_path / "built")}
    with subprocess.Popen(
        [sys.executable, ROOT / "scripts" / "build.py"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **empty},
    ) as build:
        assert build.stdout
        assert "building" in build.stdout.readline()
        while "go" not in at_work(tmp_path):
            assert build.poll() is None
        build.send_signal(number)
        assert build.wait(timeout=20) == 128 + number
        assert "Traceback" not in build.stdout.read()
    # Killed, and given a moment to be gone.
    deadline = time.monotonic() + 10
    while left := at_work(tmp_path):
        assert time.monotonic() < deadline, left
    assert [one.name for one in (tmp_path / "built").iterdir()] == ["pilothouse-engine.lock"]


def test_a_signal_while_the_compiler_starts_comes_once_it_is_known() -> None:
    started = []

    def start() -> None:
        with gobuild._signals_held():
            signal.raise_signal(signal.SIGINT)
            started.append("go")

    with pytest.raises(KeyboardInterrupt):
        start()
    assert started == ["go"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
