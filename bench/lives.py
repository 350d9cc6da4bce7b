"""A controller that is ended and started again, by us, as a crash or a rollout does."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

from controller import Controller, running_controller
from kube import BenchError
from measure import descendants, say

# An API server that is away ends a controller that starts; its kubelet would start it again and again.
_STARTS = 20


class Lives:
    """The one controller, whichever process it is now."""

    def __init__(self, kubeconfig: Path, place: Path) -> None:
        self._kubeconfig, self._place = kubeconfig, place
        self._number = 0
        self._stack = contextlib.ExitStack()
        self._current: Controller | None = None
        # Held while the process is being replaced.
        self._replacing = threading.Lock()
        # Starts that ended before the controller watched.
        self.false_starts: list[str] = []

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def controller(self) -> Controller:
        """The controller that runs."""
        if self._current is None:
            raise BenchError("no controller runs")
        return self._current

    def pid(self) -> int | None:
        """Its process, unless it is being replaced."""
        return self._current.process.pid if self._current else None

    def check(self) -> None:
        """Raise if it has ended by itself."""
        if self._replacing.acquire(blocking=False):
            try:
                self.controller.check()
            finally:
                self._replacing.release()

    def replace(self, *, kill: bool) -> None:
        """End it, at once or as it likes, and return when another watches."""
        with self._replacing:
            process, self._current = self.controller.process, None
            if kill:
                process.kill()
                process.wait()
            self._stack.close()
            for _ in range(_STARTS):
                try:
                    self._start()
                except BenchError as error:
                    self.false_starts.append(str(error))
                    say(f"the controller did not start: {str(error).splitlines()[-1]}")
                    self._stack.close()
                else:
                    return
            raise BenchError(f"the controller did not start in {_STARTS} attempts")

    def kill_engine(self) -> bool:
        """Kill the engine; whether there was one at the moment."""
        pid = self.pid()
        engine = next(descendants(pid), None) if pid else None
        if engine is None:
            return False
        try:
            os.kill(engine, signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def cpu_seconds(self) -> Callable[[], float]:
        """Return a reader of what this life of it has used."""
        return lambda: self.controller.usage().cpu_s

    def _start(self) -> None:
        self._number += 1
        controller = self._stack.enter_context(
            running_controller(self._kubeconfig, self._place, self._number)
        )
        controller.until_watching()
        self._current = controller
