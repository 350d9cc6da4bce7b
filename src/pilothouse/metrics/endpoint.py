"""Where Prometheus reads: nothing is gathered until it asks.

The server answers in threads of its own, and what it tells belongs to the event loop: each answer is gathered
there, so that nothing changes while it is counted.
"""

import asyncio
import concurrent.futures
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import structlog

from pilothouse.errors import PilothouseError
from pilothouse.metrics.counts import Snapshot

if TYPE_CHECKING:
    from prometheus_client import Metric

log = structlog.get_logger(__name__)

_PATIENCE_SECONDS = 10.0


@asynccontextmanager
async def serving(address: tuple[str, int], gather: Callable[[], Snapshot]) -> AsyncIterator[int]:
    """Serve metrics on an address until left; yields the port."""
    try:
        from prometheus_client import CollectorRegistry, start_http_server
    except ImportError:
        msg = "--metrics needs the library prometheus-client: install pilothouse[server]"
        raise PilothouseError(msg) from None
    registry = CollectorRegistry()
    registry.register(_Collector(asyncio.get_running_loop(), gather))
    host, port = address
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        msg = f"--metrics: cannot listen on {host}:{port}: {error.strerror or error}"
        raise PilothouseError(msg) from None
    try:
        log.info("metrics", address=f"{host}:{server.server_port}")
        yield server.server_port
    finally:
        # In a thread: an answer under way still needs the loop.
        await asyncio.to_thread(server.shutdown)
        server.server_close()
        await asyncio.to_thread(thread.join)


class _Collector:
    """Asks the loop, and puts its answer into Prometheus' words."""

    def __init__(self, loop: asyncio.AbstractEventLoop, gather: Callable[[], Snapshot]) -> None:
        self._loop = loop
        self._gather = gather

    def describe(self) -> list["Metric"]:
        """Name nothing beforehand: there is no other collector to clash with."""
        return []

    def collect(self) -> Iterator["Metric"]:
        """Gather on the loop, tell here."""
        answer: concurrent.futures.Future[Snapshot] = concurrent.futures.Future()

        def gather() -> None:
            try:
                answer.set_result(self._gather())
            except Exception as error:  # noqa: BLE001 - the thread that waits is to raise it
                answer.set_exception(error)

        self._loop.call_soon_threadsafe(gather)
        return _families(answer.result(_PATIENCE_SECONDS))


def _families(seen: Snapshot) -> Iterator["Metric"]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    releases = GaugeMetricFamily(
        "pilothouse_releases",
        "Releases by condition, its status and its reason.",
        labels=["condition", "status", "reason"],
    )
    for labels, count in sorted(seen.releases.items()):
        releases.add_metric(labels, count)
    yield releases
    watched = GaugeMetricFamily(
        "pilothouse_watch_mode",
        "Helm releases by ProviderConfig and how closely its credentials let them be watched.",
        labels=["cluster", "mode"],
    )
    for config_and_mode, count in sorted(seen.watched.items()):
        watched.add_metric(config_and_mode, count)
    yield watched
    yield GaugeMetricFamily(
        "pilothouse_queue_depth", "Releases that want a pass and wait for a worker.", seen.queued
    )
    actions = CounterMetricFamily(
        "pilothouse_actions",
        "Helm actions that have ended, by verb and result: succeeded, or the kind of failure.",
        labels=["action", "result"],
    )
    for action_and_result, count in sorted(seen.actions.items()):
        actions.add_metric(action_and_result, count)
    yield actions
    repairs = CounterMetricFamily(
        "pilothouse_drift_repairs",
        "Objects put back after others changed them, by result.",
        labels=["result"],
    )
    for result, count in sorted(seen.repairs.items()):
        repairs.add_metric([result], count)
    yield repairs
