"""Carry out what was planned for the releases, and wait until all is right again."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from aftermath import Aftermath, look
from kube import MERGE, BenchError, Kube, RefusedError
from lives import Lives
from measure import Progress, say, until_quiet
from unrest import Edit, End, Touch, Victim, Written, plan, release_path

from pilothouse.dev.cluster import DevCluster

T = TypeVar("T")
# The API server may be away for so long.
_PATIENCE_SECONDS = 180.0
_RETRY_SECONDS = 0.1
_LOOK_SECONDS = 3.0
_SHOWN = 20
_NOT_FOUND, _TOO_MANY, _SERVER_ERROR = 404, 429, 500


class Ordeal:
    """A soak's releases and what is done to them."""

    def __init__(
        self, kube: Kube, cluster: DevCluster, lives: Lives, releases: int, seed: int
    ) -> None:
        self._kube, self._cluster, self._lives = kube, cluster, lives
        self._seed = seed
        self._written = {
            f"s{number}": Written(f"m{number}", messages={f"m{number}"})
            for number in range(releases)
        }
        self._done: Counter[str] = Counter()
        self._away: list[float] = []
        self._failed = threading.Event()

    def endure(self, seconds: float, *, rate: float, ends: float) -> dict[str, Any]:
        """Disturb the releases for so long."""
        planned = plan(self._seed, list(self._written), seconds, rate=rate, ends=ends)
        began = time.monotonic()
        with ThreadPoolExecutor() as pool, Progress("disturbing") as progress:
            ending = [pool.submit(self._end_all, began, ends) for ends in _apart(planned.ends)]
            try:
                for deed in planned.deeds():
                    self._until(began + deed.at, progress)
                    self._edit(deed) if isinstance(deed, Edit) else self._touch(deed)
                    _check(ending)
                self._until(began + seconds, progress)
            except BaseException:
                self._failed.set()
                raise
            for one in ending:
                one.result()
        return {
            "deeds": dict(self._done.most_common()),
            "api_server_away_s": [round(one, 1) for one in self._away],
            "false_starts": list(self._lives.false_starts),
        }

    def settle(self, patience: float) -> dict[str, Any]:
        """Wait until all is as written, then until nothing stirs, and judge."""
        began = time.monotonic()
        seen = self._look()
        with Progress("settling") as progress:
            while not seen.settled and time.monotonic() - began < patience:
                time.sleep(_LOOK_SECONDS)
                self._lives.check()
                seen = self._look()
                left = len(seen.not_as_written), len(seen.not_ready)
                progress.tell(f"{left[0]} not as written, {left[1]} not ready")
        took = time.monotonic() - began
        quiet = until_quiet(self._lives.cpu_seconds(), what="waiting until nothing stirs")
        final = self._look()
        for problem in (*final.not_as_written, *final.not_ready, *final.unasked)[:_SHOWN]:
            say(problem)
        return {
            "settled_s": took,
            "came_to_rest": quiet is not None,
            "not_as_written": final.not_as_written,
            "not_ready": final.not_ready,
            "unasked": final.unasked,
            "cut_short": final.cut_short,
            "revisions": final.revisions,
            "edits": sum(len(one.messages) - 1 for one in self._written.values()),
        }

    def _look(self) -> Aftermath:
        ends = sum(self._done[str(victim)] for victim in Victim)
        return self._patiently(lambda: look(self._kube, self._written, ends))

    def _until(self, moment: float, progress: Progress) -> None:
        while (left := moment - time.monotonic()) > 0:
            time.sleep(min(left, 1.0))
            self._lives.check()
        progress.tell(", ".join(f"{n} {what}" for what, n in self._done.most_common(4)))

    def _edit(self, edit: Edit) -> None:
        for values in edit.values:
            patch = {"spec": {"forProvider": {"values": values}}}
            self._ask("PATCH", release_path(edit.release), patch, MERGE)
            self._written[edit.release].write(values)
            self._done["edits"] += 1

    def _touch(self, touch: Touch) -> None:
        method, path = ("PATCH" if touch.patch else "DELETE"), f"{touch.path}?fieldManager=hand"
        try:
            self._ask(method, path, touch.patch, touch.content)
        except RefusedError as refused:
            if refused.status != _NOT_FOUND:  # a hand was there before, and nobody put it back yet
                raise
            return
        kind = touch.path.removesuffix("/scale").rsplit("/", 2)[1]
        self._done[f"{kind} {touch.what}"] += 1

    def _end_all(self, began: float, ends: list[End]) -> None:
        for end in ends:
            if self._failed.wait(max(0.0, began + end.at - time.monotonic())):
                return
            if self._end(end.victim):
                self._done[str(end.victim)] += 1
                say(f"{time.monotonic() - began:.0f} s: {end.victim}")

    def _end(self, victim: Victim) -> bool:
        """End a process, and wait until it is back; whether there was one."""
        started = time.monotonic()
        match victim:
            case Victim.ENGINE:
                # While the brain is being replaced there may be none yet.
                while not self._lives.kill_engine():
                    if self._failed.wait(_RETRY_SECONDS):
                        return False
                    if time.monotonic() - started > _PATIENCE_SECONDS:
                        return False
            case Victim.API_SERVER:
                self._cluster.restart_api_server()
                self._away.append(time.monotonic() - started)
            case Victim.BRAIN_KILLED | Victim.BRAIN_STOPPED:
                self._lives.replace(kill=victim is Victim.BRAIN_KILLED)
        return True

    def _ask(self, method: str, path: str, body: object, content: str) -> None:
        """Ask until there is an answer: asking twice for the same changes nothing."""
        self._patiently(lambda: self._kube.request(method, path, body, content=content))

    def _patiently(self, call: Callable[[], T]) -> T:
        until = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                return call()
            except BenchError as error:
                status = error.status if isinstance(error, RefusedError) else _SERVER_ERROR
                if status < _SERVER_ERROR and status != _TOO_MANY:
                    raise
                if time.monotonic() > until:
                    raise
            time.sleep(_RETRY_SECONDS)


def _apart(ends: list[End]) -> list[list[End]]:
    """Let the end of one process not wait until another is back."""
    brains = (Victim.BRAIN_KILLED, Victim.BRAIN_STOPPED)
    groups = brains, (Victim.ENGINE,), (Victim.API_SERVER,)
    return [[one for one in ends if one.victim in group] for group in groups]


def _check(ending: list[Future[None]]) -> None:
    for one in ending:
        if one.done():
            one.result()
