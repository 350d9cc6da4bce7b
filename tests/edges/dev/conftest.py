"""Runs `pilothouse dev` as a user does: in a process of its own, with a state directory of its own."""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pilothouse.dev.binaries import KubeBinaries


@dataclass(frozen=True)
class Up:
    """A `pilothouse dev up` in the foreground."""

    process: subprocess.Popen[str]
    directory: Path

    def until_ready(self) -> None:
        assert self.process.stdout is not None
        seen = []
        for line in self.process.stdout:
            seen.append(line)
            if "get pods" in line:
                return
        pytest.fail(f"never ready: {''.join(seen)}")

    @property
    def supervisor(self) -> int:
        return int(json.loads((self.directory / "cluster.json").read_text())["pid"])


@dataclass(frozen=True)
class Dev:
    """The command, and where its clusters live."""

    state: Path

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(**self._how(arguments), capture_output=True, check=False)

    def up(self, name: str, *arguments: str) -> Up:
        process = subprocess.Popen(
            **self._how(("up", "--name", name, *arguments)),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        return Up(process, self.directory(name))

    def directory(self, name: str) -> Path:
        return self.state / "pilothouse" / "dev" / name

    def _how(self, arguments: tuple[str, ...]) -> dict[str, Any]:
        return {
            "args": [sys.executable, "-m", "pilothouse", "dev", *arguments],
            "env": {**os.environ, "XDG_STATE_HOME": str(self.state), "PYTHONUNBUFFERED": "1"},
            "text": True,
        }


@pytest.fixture
def dev(tmp_path: Path, kube_binaries: KubeBinaries) -> Iterator[Dev]:
    """Return the command; whatever a failed test leaves running is stopped."""
    dev = Dev(tmp_path / "state")
    yield dev
    for lock in (dev.state / "pilothouse" / "dev").glob("*/lock"):
        dev.run("down", "--name", lock.parent.name)


@dataclass(frozen=True)
class Watched:
    """Processes whose end can be waited for, without taking a later one of the same id for them."""

    descriptors: dict[int, int]

    def until_gone(self, seconds: float = 20) -> None:
        waiting = select.poll()
        for descriptor in self.descriptors.values():
            waiting.register(descriptor, select.POLLIN)
        left = dict(self.descriptors)
        deadline = time.monotonic() + seconds
        while left and (remaining := deadline - time.monotonic()) > 0:
            gone = {descriptor for descriptor, _ in waiting.poll(remaining * 1000)}
            for descriptor in gone:
                waiting.unregister(descriptor)
            left = {pid: descriptor for pid, descriptor in left.items() if descriptor not in gone}
        assert not left, f"still running: {sorted(left)}"


@pytest.fixture
def watch_session() -> Iterator[Any]:
    """Return a function that watches every process of a supervisor's session."""
    opened: list[int] = []

    def watch(supervisor: int) -> Watched:
        pids = [pid for pid in _all_pids() if _session(pid) == supervisor]
        descriptors = {pid: os.pidfd_open(pid) for pid in pids}
        opened.extend(descriptors.values())
        return Watched(descriptors)

    yield watch
    for descriptor in opened:
        os.close(descriptor)


def _all_pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None
