"""What Prometheus reads is what there is, gathered on the loop when it asks."""

import asyncio
import threading
import urllib.error
import urllib.request
from collections import Counter

import click
import msgspec
import pytest
from make import release
from prometheus_client.parser import text_string_to_metric_families

from pilothouse.api.meta import Condition
from pilothouse.cli.controller import _address
from pilothouse.errors import PilothouseError
from pilothouse.metrics.counts import Counts, Snapshot, by_condition
from pilothouse.metrics.endpoint import serving

LOOPBACK = ("127.0.0.1", 0)


def read(port: int) -> dict[tuple[str, ...], float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    return {
        (one.name, *(one.labels[label] for label in sorted(one.labels))): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def snapshot(**more) -> Snapshot:
    empty = {one: Counter() for one in ("actions", "repairs", "releases", "watched")}
    return Snapshot(**(empty | {"queued": 0} | more))


def with_conditions(*told: Condition):
    one = release()
    return msgspec.structs.replace(
        one, status=msgspec.structs.replace(one.status, conditions=list(told))
    )


async def test_everything_counted_is_read() -> None:
    counts = Counts()
    counts.acted("Install", "")
    counts.acted("Upgrade", "HookFailed")
    counts.acted("Upgrade", "HookFailed")
    counts.repaired(3, 1)
    watched = Counter({("prod", "Namespace"): 2, ("default", "Cluster"): 5})
    releases = Counter({("Ready", "True", "Available"): 4})
    seen = snapshot(
        actions=counts.actions,
        repairs=counts.repairs,
        watched=watched,
        releases=releases,
        queued=7,
    )
    where: list[int] = []

    def gather() -> Snapshot:
        where.append(threading.get_ident())
        return seen

    async with serving(LOOPBACK, gather) as port:
        found = await asyncio.to_thread(read, port)
        assert where == [threading.get_ident()], "gathered once, on the loop"
    assert found == {
        ("pilothouse_actions_total", "Install", "succeeded"): 1,
        ("pilothouse_actions_total", "Upgrade", "HookFailed"): 2,
        ("pilothouse_drift_repairs_total", "succeeded"): 2,
        ("pilothouse_drift_repairs_total", "failed"): 1,
        ("pilothouse_watch_mode", "prod", "Namespace"): 2,
        ("pilothouse_watch_mode", "default", "Cluster"): 5,
        ("pilothouse_releases", "Ready", "Available", "True"): 4,
        ("pilothouse_queue_depth",): 7,
    }
    with pytest.raises(urllib.error.URLError):
        await asyncio.to_thread(read, port)


def test_releases_are_counted_by_condition_and_never_by_message() -> None:
    secret = "hunter2"  # noqa: S105 - it is to be hidden
    told = {"status": "True", "message": secret, "last_transition_time": "2026-01-01T00:00:00Z"}
    ready = Condition(type="Ready", reason="Available", **told)
    drifted = Condition(type="Drifted", reason="Fighting", **told)
    counted = by_condition([with_conditions(ready), with_conditions(ready, drifted), release()])
    assert counted == {
        ("Ready", "True", "Available"): 2,
        ("Drifted", "True", "Fighting"): 1,
        ("Ready", "Unknown", ""): 1,
        ("Synced", "Unknown", ""): 3,
    }


async def test_an_address_that_is_taken_is_named() -> None:
    async with serving(LOOPBACK, snapshot) as port:
        with pytest.raises(PilothouseError, match=f"--metrics: cannot listen on 127.0.0.1:{port}"):
            async with serving(("127.0.0.1", port), snapshot):
                pass


@pytest.mark.parametrize("text", ["9090", ":9090", "localhost", "localhost:http", "a:70000"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(click.UsageError, match="HOST:PORT"):
        _address(text)


def test_addresses() -> None:
    assert _address("127.0.0.1:9090") == ("127.0.0.1", 9090)
    assert _address("[::1]:9090") == ("::1", 9090)
