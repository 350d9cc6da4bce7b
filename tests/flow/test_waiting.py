"""Waiting costs nothing, and a newer spec wins over it."""

import sqlite3

from stage import Stage, conditions, eventually, history
from templates import deployment, hook


def test_a_newer_spec_ends_the_wait_for_an_older_one(stage: Stage, hub, helm4, namespace) -> None:
    """Unlike provider-helm: Waits."""
    stage.chart("patient", {"all.yaml": deployment()})
    stage.release("eager", "patient", namespace, {"pod": "pending"}, wait=True, waitTimeout="5m")
    eventually(
        lambda: "eager" in hub.kubectl("get", "deployments", "-n", namespace, "-o", "name"),
        what="the first spec applied",
    )
    stage.release("eager", "patient", namespace, {"pod": "running"}, wait=True, waitTimeout="5m")
    stage.wait("eager", "Ready")
    assert history(helm4, hub, namespace, "eager")[-1]["status"] == "deployed"
    with sqlite3.connect(stage.controller.directory / "archive.db") as archive:
        told = "SELECT action, revision FROM entry WHERE helm_release = ? AND error LIKE ?"
        found = archive.execute(told, (f"{namespace}/eager", "%superseded by generation 2"))
        assert found.fetchall() == [("Install", 1)]


def test_another_place_ends_the_wait_in_the_one_before(stage: Stage, hub, namespace) -> None:
    """What is asked for there is the same, but it is not there."""
    there = f"{namespace}-there"
    stage.chart("calm", {"all.yaml": deployment()})

    def put(where: str, pod: str) -> None:
        stage.release("mover", "calm", where, {"pod": pod}, wait=True, waitTimeout="5m")

    def applied(where: str) -> bool:
        return "mover" in hub.kubectl("get", "deployments", "-n", where, "-o", "name", check=False)

    put(namespace, "pending")
    eventually(lambda: applied(namespace), what="the first place")
    put(there, "pending")
    eventually(lambda: applied(there), what="the other place")
    put(there, "running")
    assert stage.wait("mover", "Ready")["status"]["atProvider"]["revision"] > 1
    with sqlite3.connect(stage.controller.directory / "archive.db") as archive:
        told = "SELECT helm_release, error FROM entry WHERE helm_release LIKE ? ORDER BY rowid"
        found = archive.execute(told, (f"{namespace}%/mover",)).fetchall()
    assert [place for place, _ in found[:2]] == [f"{namespace}/mover", f"{there}/mover"]
    assert found[0][1].endswith("superseded by generation 2")


def test_a_wait_that_runs_out_names_what_was_not_ready(stage: Stage, namespace) -> None:
    stage.chart("stuck", {"all.yaml": deployment()})
    stage.release("slow", "stuck", namespace, {"pod": "pending"}, wait=True, waitTimeout="2s")
    message = stage.refused("slow", "TimedOut")
    assert "Deployment" in message
    assert "slow" in message


def test_a_release_that_waits_delays_nobody(stage: Stage, namespace) -> None:
    """Unlike provider-helm: Waits."""
    stage.chart("slowly-hooked", {"hook.yaml": hook("pre-install")})
    crowd = [f"waits-{number}" for number in range(25)]
    for name in crowd:
        stage.release(name, "slowly-hooked", namespace, {"pod": "pending"}, waitTimeout="3m")
    for name in crowd:
        # Whoever looks sees which hook it is.
        said = f"installing: not installed; waiting for hook Job {name}-1"
        eventually(
            lambda name=name, said=said: (
                conditions(stage.get(name)).get("Ready", {}).get("message") == said
            )
        )
    (one,) = stage.get("waits-0")["status"]["hooks"]
    assert (one["name"], one["events"], one["phase"]) == ("waits-0-1", ["pre-install"], "Running")
    assert one["started"]
    assert "finished" not in one
    stage.release("overtakes", "hello", namespace)
    # All of the crowd wait for longer than this.
    stage.wait("overtakes", "Ready", seconds=60)


def test_a_hook_that_fails_says_so(stage: Stage, hub, namespace) -> None:
    stage.chart("unlucky", {"hook.yaml": hook("pre-install")})
    stage.release("hookless", "unlucky", namespace, {"pod": "failed"}, waitTimeout="60s")
    message = stage.refused("hookless", "HookFailed")
    assert "Job" in message
