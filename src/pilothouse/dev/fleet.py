"""Several clusters as one: started together, stopped together, found again by name."""

import asyncio
import contextlib
import fcntl
import json
import os
import re
import signal
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pilothouse.dev.binaries import KubeBinaries
from pilothouse.dev.cluster import (
    STOP_SECONDS,
    ClusterProcess,
    ClusterReport,
    ClusterRequest,
    DevCluster,
)
from pilothouse.dev.errors import DevClusterError

MOST_CLUSTERS = 5
MEMORY = "/dev/shm"  # noqa: S108 - what the supervisor calls it; nothing is written here
_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Known:
    """A cluster that has a directory, whether it runs or not."""

    name: str
    directory: Path
    server: str
    kubeconfig: Path
    ephemeral: bool
    place: str
    """Where its data is: a directory, or a file system for data that is forgotten at the end."""
    pid: int | None
    """The supervisor's process id while it runs."""

    @property
    def data(self) -> str:
        """Say what its data is kept in: what is to be forgotten is in memory only where there is room for it."""
        if not self.ephemeral:
            return "disk"
        return "memory" if self.place == MEMORY else f"temporary ({self.place})"


@dataclass(frozen=True, slots=True)
class Fleet:
    """Clusters that run."""

    clusters: tuple[DevCluster, ...]
    processes: tuple[ClusterProcess, ...]

    async def until_one_ends(self) -> None:
        """Wait until a cluster ends; raises if it was not asked to."""
        async with asyncio.TaskGroup() as group:
            waits = [
                group.create_task(process.failure(), name=f"watch cluster {number}")
                for number, process in enumerate(self.processes, start=1)
            ]
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
        for wait in done:
            if failure := wait.result():
                raise failure


def check_name(name: str) -> str:
    """Return the name, if it can be a directory and a kubeconfig context."""
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?", name):
        raise DevClusterError(
            f"{name!r} cannot name a cluster: use lower-case letters, digits and dashes"
        )
    return name


def fleet_names(name: str, count: int) -> list[str]:
    """Return the names of a fleet: its own for one cluster, numbered ones for several."""
    check_name(name)
    return [name] if count == 1 else [f"{name}-{number}" for number in range(1, count + 1)]


@contextlib.asynccontextmanager
async def running_fleet(
    requests: Sequence[ClusterRequest], binaries: KubeBinaries, report: ClusterReport
) -> AsyncIterator[Fleet]:
    """Run clusters for as long as the block lasts; if one cannot start, none runs."""
    processes = tuple(ClusterProcess(request, binaries, report) for request in requests)
    try:
        yield Fleet(await _start(processes, detached=False), processes)
    finally:
        await _stop(processes)


async def start_detached(
    requests: Sequence[ClusterRequest], binaries: KubeBinaries, report: ClusterReport
) -> tuple[DevCluster, ...]:
    """Start clusters that go on after this process; if one cannot start, none is left."""
    processes = tuple(ClusterProcess(request, binaries, report) for request in requests)
    try:
        clusters = await _start(processes, detached=True)
    except BaseException:
        await _stop(processes)
        raise
    for process in processes:
        process.release()
    return clusters


async def _start(processes: Sequence[ClusterProcess], *, detached: bool) -> tuple[DevCluster, ...]:
    try:
        async with asyncio.TaskGroup() as group:
            starts = [
                group.create_task(process.start(detached=detached), name=f"cluster {number}")
                for number, process in enumerate(processes, start=1)
            ]
    except* DevClusterError as errors:
        raise errors.exceptions[0] from None
    return tuple(start.result() for start in starts)


async def _stop(processes: Sequence[ClusterProcess]) -> None:
    async with asyncio.TaskGroup() as group:
        for number, process in enumerate(processes, start=1):
            group.create_task(process.stop(), name=f"stop cluster {number}")


def known_clusters(state_root: Path) -> list[Known]:
    """List the clusters that have a directory."""
    if not state_root.is_dir():
        return []
    found = (_read(directory) for directory in sorted(state_root.iterdir()))
    return [known for known in found if known is not None]


def members(state_root: Path, name: str) -> list[Known]:
    """Return a fleet's clusters: the one of that name and the numbered ones."""
    check_name(name)
    pattern = re.compile(re.escape(name) + rf"(-[1-{MOST_CLUSTERS}])?")
    return [known for known in known_clusters(state_root) if pattern.fullmatch(known.name)]


async def stop_known(known: Known) -> None:
    """Stop a cluster started by another process, and wait until it is gone."""
    if known.pid is None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(known.pid, signal.SIGTERM)
    try:
        async with asyncio.timeout(STOP_SECONDS):
            while _holder(known.directory) == known.pid:  # noqa: ASYNC110 - the lock is another process's
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError as error:
        raise DevClusterError(
            f"cluster {known.name} (process {known.pid}) did not stop within {STOP_SECONDS:.0f} s"
        ) from error


def _read(directory: Path) -> Known | None:
    try:
        record = json.loads((directory / "cluster.json").read_text())
        return Known(
            name=directory.name,
            directory=directory,
            server=record["server"],
            kubeconfig=Path(record["kubeconfig"]),
            ephemeral=record["ephemeral"],
            place=record.get("data", MEMORY),
            pid=_holder(directory),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _holder(directory: Path) -> int | None:
    """Return the process that holds the lock on a cluster's directory, if one does."""
    try:
        with (directory / "lock").open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return int(lock.read())
    except (OSError, ValueError):
        pass
    return None
