"""The controller under measurement, as a process of its own, the way an operator runs it."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kube import BenchError
from measure import Progress, Usage, usage

# A checkout may have to build its engine first.
START_SECONDS = 600.0
STOP_SECONDS = 60.0
_LOOK_SECONDS = 0.02
_TAIL_LINES = 10


@dataclass(frozen=True, slots=True)
class Controller:
    """A controller that runs."""

    process: "subprocess.Popen[bytes]"
    log: Path
    started: float

    def usage(self) -> Usage:
        """Return what it has used so far."""
        return usage(self.process.pid)

    def check(self) -> None:
        """Raise if it has ended."""
        if self.process.poll() is not None:
            tail = self.log.read_text(errors="replace").splitlines()[-_TAIL_LINES:]
            raise BenchError("\n".join(("the controller ended; its last words:", *tail)))

    def until_watching(self) -> None:
        """Wait for the log line that says that it sees all Releases."""
        until = time.monotonic() + START_SECONDS
        with Progress("starting the controller") as progress:
            while "event=watching" not in self.log.read_text(errors="replace"):
                self.check()
                if time.monotonic() > until:
                    raise BenchError(f"the controller was not watching in {START_SECONDS:.0f} s")
                progress.tell("")
                time.sleep(_LOOK_SECONDS)


@contextlib.contextmanager
def running_controller(kubeconfig: Path, place: Path, number: int = 1) -> Iterator[Controller]:
    """Run the controller for as long as the block lasts."""
    log = place / f"controller-{number}.log"
    started = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "pilothouse", "controller"),
                *("--kubeconfig", kubeconfig, "--archive", place / "archive.db"),
                *("--egress-allow", "127.0.0.1:*"),  # its clusters and charts are all there
            ],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            start_new_session=True,  # Ctrl-C is for us; it is told when it is its turn
        )
    try:
        yield Controller(process, log, started)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except BaseException:
            process.kill()  # the engine goes when its standard input closes
            process.wait()
            raise
