"""Clusters for code that has no event loop of its own, such as test fixtures.

Owns a thread with a loop, so that a caller's loops, if it has any, are never touched.
"""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from pilothouse.dev.binaries import KubeBinaries
from pilothouse.dev.cluster import ClusterProcess, ClusterReport, ClusterRequest, DevCluster

T = TypeVar("T")


class ClusterPool:
    """Clusters that run until `close`, or until this process ends."""

    def __init__(self, binaries: KubeBinaries, report: ClusterReport) -> None:
        self._binaries = binaries
        self._report = report
        self._processes: list[ClusterProcess] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="development clusters", daemon=True
        )
        self._thread.start()

    def start(self, request: ClusterRequest) -> DevCluster:
        """Start a cluster and return when a pod can run on it."""
        process = ClusterProcess(request, self._binaries, self._report)
        self._processes.append(process)
        return self._wait(process.start())

    def close(self) -> None:
        """Stop every cluster, together, also those that failed to start."""
        self._wait(self._stop_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _stop_all(self) -> None:
        async with asyncio.TaskGroup() as group:
            for number, process in enumerate(self._processes, start=1):
                group.create_task(process.stop(), name=f"stop cluster {number}")
        self._processes.clear()

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
