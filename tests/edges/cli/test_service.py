"""A service gives way to others where it may, and runs wherever it may not."""

import os

import pytest

from pilothouse.cli.service import serve

Chosen = list[tuple[int, int]]


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> Chosen:
    """What a service would make of this process, which it must not become."""
    chosen: Chosen = []

    def choose(process: int, policy: int, _: os.sched_param) -> None:
        chosen.append((process, policy))

    monkeypatch.setattr(os, "sched_setscheduler", choose)
    return chosen


async def answer() -> str:
    return "answer"


@pytest.mark.parametrize(
    ("found", "chooses"),
    [
        pytest.param(os.SCHED_OTHER, [(0, os.SCHED_BATCH)], id="what every process has"),
        pytest.param(os.SCHED_IDLE, [], id="an operator's choice"),
        pytest.param(os.SCHED_RR, [], id="a real-time policy"),
    ],
)
def test_only_who_has_no_policy_of_an_operator_becomes_a_batch_process(
    monkeypatch: pytest.MonkeyPatch, chosen: Chosen, found: int, chooses: Chosen
) -> None:
    monkeypatch.setattr(os, "sched_getscheduler", lambda _: found)
    assert serve(answer()) == "answer"
    assert chosen == chooses


@pytest.mark.parametrize("forbidden", ["sched_getscheduler", "sched_setscheduler"])
def test_it_runs_where_policies_are_forbidden(
    monkeypatch: pytest.MonkeyPatch, chosen: Chosen, forbidden: str
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_getscheduler", lambda _: os.SCHED_OTHER)
    monkeypatch.setattr(os, forbidden, refuse)
    assert serve(answer()) == "answer"
    assert chosen == []


def test_it_runs_where_policies_are_unknown(
    monkeypatch: pytest.MonkeyPatch, chosen: Chosen
) -> None:
    monkeypatch.delattr(os, "sched_getscheduler")
    assert serve(answer()) == "answer"
    assert chosen == []
