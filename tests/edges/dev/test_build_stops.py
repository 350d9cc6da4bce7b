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


PILOTHOUSE = ("-m", "pilothouse")
CONTROLLER = (*PILOTHOUSE, "controller", "--kubeconfig", os.devnull)
# Click takes Ctrl-C for an abort, which is 1.
ENDS = [
    pytest.param(("scripts/build.py",), signal.SIGINT, 128 + signal.SIGINT, id="build, Ctrl-C"),
    pytest.param(("scripts/build.py",), signal.SIGTERM, 128 + signal.SIGTERM, id="build, SIGTERM"),
    pytest.param(CONTROLLER, signal.SIGINT, 1, id="controller, Ctrl-C"),
    pytest.param(CONTROLLER, signal.SIGTERM, 128 + signal.SIGTERM, id="controller, SIGTERM"),
    pytest.param(
        (*CONTROLLER, "--stop-on-eof"), None, 128 + signal.SIGTERM, id="controller, parent gone"
    ),
    pytest.param((*PILOTHOUSE, "version"), signal.SIGINT, 1, id="version, Ctrl-C"),
    pytest.param((*PILOTHOUSE, "dev", "up"), signal.SIGTERM, 128 + signal.SIGTERM, id="dev up"),
    pytest.param(
        (*PILOTHOUSE, "demo"), signal.SIGHUP, 128 + signal.SIGHUP, id="demo, terminal closed"
    ),
]


def first_time(tmp_path: Path) -> dict[str, str]:
    """Return the environment of someone who has built nothing yet and names no program."""
    places = {"GOCACHE": "go", "PILOTHOUSE_CACHE": "built", "XDG_STATE_HOME": "state"}
    named = ("PILOTHOUSE_ENGINE", "PILOTHOUSE_KUBE_BINARIES", "KUBEBUILDER_ASSETS")
    kept = {name: value for name, value in os.environ.items() if name not in named}
    return {**kept, **{name: str(tmp_path / place) for name, place in places.items()}}


@pytest.mark.parametrize(("command", "number", "code"), ENDS)
def test_an_interrupted_build_leaves_nobody_at_work(
    tmp_path: Path, command: tuple[str, ...], number: signal.Signals | None, code: int
) -> None:
    with subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**first_time(tmp_path), "PYTHONUNBUFFERED": "1"},
    ) as build:
        assert build.stdin
        assert build.stdout
        assert "building" in build.stdout.readline()
        while "go" not in at_work(tmp_path):
            assert build.poll() is None
        if number:
            build.send_signal(number)
        else:
            build.stdin.close()
        assert build.wait(timeout=20) == code
        assert "Traceback" not in build.stdout.read()
    # Killed, and given a moment to be gone.
    deadline = time.monotonic() + 10
    while left := at_work(tmp_path):
        assert time.monotonic() < deadline, left
    assert {one.suffix for one in (tmp_path / "built").iterdir()} == {".lock"}


def test_a_build_under_nohup_outlives_the_terminal() -> None:
    code = (
        "import signal; from pilothouse.cli.signals import exit_on_terminate\n"
        "exit_on_terminate(); signal.raise_signal(signal.SIGHUP); print('goes on')\n"
    )
    done = subprocess.run(
        ["nohup", sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "goes on\n"


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
