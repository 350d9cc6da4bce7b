"""Passes under way: one that takes long goes on by itself, and its worker takes the next key.

A pass may have to ask a chart server or a cluster that does not answer. That is bounded by time-outs, but
some of them are half a minute, and a handful of such Releases must not hold up all the others.
"""

import asyncio
from collections.abc import Coroutine
from datetime import timedelta


class Passes:
    """Runs passes, at most one per key (the queue sees to that), each as a task of its own."""

    def __init__(self, tasks: asyncio.TaskGroup, patience: timedelta) -> None:
        self._tasks = tasks
        self._patience = patience.total_seconds()
        self._underway: set[asyncio.Task[None]] = set()

    async def run(self, work: Coroutine[None, None, None], name: str) -> None:
        """Run a pass; return when it is done or has taken longer than anybody should wait for it."""
        task = self._tasks.create_task(work, name=name)
        self._underway.add(task)
        task.add_done_callback(self._underway.discard)
        await asyncio.wait({task}, timeout=self._patience)

    async def stop(self) -> None:
        """End every pass: whatever interrupts one, the next starts by looking."""
        underway = list(self._underway)
        for task in underway:
            task.cancel()
        if underway:
            await asyncio.wait(underway)
