"""The command line needs only what its command needs."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pilothouse.cli import COMMANDS
from pilothouse.dev.cluster import DevCluster

PATIENCE_SECONDS = 120
# Says which loop it runs on.
SERVICE = """\
import asyncio
from pilothouse.cli.service import serve

async def service():
    return type(asyncio.get_running_loop()).__module__

print(serve(service()))
"""

Python = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def python_without(tmp_path: Path) -> Python:
    """Return a function that runs Python where libraries are not installed."""

    def run(libraries: set[str], *arguments: str) -> "subprocess.CompletedProcess[str]":
        hidden = f"import sys\nsys.modules.update(dict.fromkeys({libraries!r}))\n"
        (tmp_path / "sitecustomize.py").write_text(hidden)
        path = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
        return subprocess.run(
            [sys.executable, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
            check=False,
        )

    return run


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)], ids=" ".join)
def test_help_needs_no_large_library(python_without: Python, command: list[str]) -> None:
    large = {"grpc", "google.protobuf", "msgspec", "structlog"}
    done = python_without(large, "-m", "pilothouse", *command, "--help")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(" ".join(["Usage: pilothouse", *command, "["]))


@pytest.mark.parametrize(
    ("missing", "loop"),
    [
        pytest.param(set(), "uvloop", id="with uvloop"),
        pytest.param({"uvloop"}, "asyncio.unix_events", id="without uvloop"),
    ],
)
def test_a_service_runs_on_the_best_loop_there_is(
    python_without: Python, missing: set[str], loop: str
) -> None:
    done = python_without(missing, "-c", SERVICE)
    assert (done.returncode, done.stdout) == (0, f"{loop}\n"), done.stderr


def test_metrics_say_which_library_is_missing(
    python_without: Python, hub: DevCluster, tmp_path: Path
) -> None:
    """The controller comes as far as there without the server extra."""
    done = python_without(
        {"uvloop", "prometheus_client"},
        *("-m", "pilothouse", "controller", "--kubeconfig", str(hub.kubeconfig), "--observe-only"),
        *("--archive", str(tmp_path / "archive.db"), "--metrics", "127.0.0.1:0"),
    )
    assert done.returncode == 1, done.stderr
    last = done.stderr.splitlines()[-1]
    assert last == (
        "pilothouse: --metrics needs the library prometheus-client: install pilothouse[server]"
    )
    assert "Traceback" not in done.stderr
