"""Kill anything at any moment: nothing is lost and nothing is done twice."""

import json
import os
import random
import re
import signal
import time
from collections import Counter
from typing import Any

import pytest
from aftermath import Record
from kube import Watch
from stage import (
    INJECTED,
    PATIENCE,
    ControllerProcess,
    Stage,
    await_crds,
    eventually,
    history,
    is_engine,
)
from templates import hook

from pilothouse.dev.charts import Repository

RELEASES, KILLS = 50, 6
# A kill comes at most so many seconds after an install was seen to begin.
MOMENT = 0.2
IDLE_SECONDS = 5.0
# The cluster has work of its own, such as what a stall of the machine has left: once nobody may have asked.
WINDOWS = 3
# What a cluster that nobody uses asks itself for, some times in that time: what it serves, and no object.
CLUSTERS_OWN = frozenset({"api", "apis", "openapi/v3"})
CROWD = "/api/v1/namespaces/crowd/secrets"
RECORDS = "labelSelector=owner%3Dhelm"


def test_a_killed_engine_is_replaced(stage: Stage, hub, helm4, namespace) -> None:
    stage.release("survivor", "hello", namespace)
    stage.wait("survivor", "Ready")
    stage.look_again("survivor")  # what is still to be told of its objects is told with it
    before = stage.get("survivor")["metadata"]["resourceVersion"]
    old = stage.controller.engine_pid()
    assert old
    os.kill(old, signal.SIGKILL)
    eventually(lambda: stage.controller.engine_pid() not in {None, old}, what="a new engine")
    stage.release("after", "hello", namespace)
    stage.wait("after", "Ready")
    assert stage.get("survivor")["metadata"]["resourceVersion"] == before
    assert len(history(helm4, hub, namespace, "survivor")) == 1


@pytest.fixture
def own_stage(make_cluster, repository: Repository, tmp_path):
    """A hub and a controller that may be killed."""
    hub = make_cluster("chaos")
    controller = ControllerProcess(hub, tmp_path)
    controller.start()
    await_crds(hub, controller)
    hub.kubectl("apply", "-f", "-", input=json.dumps(INJECTED))
    yield Stage(hub, repository, controller, tmp_path)
    controller.stop()


def test_random_kills_during_fifty_installs(own_stage: Stage, helm4) -> None:
    """Some more Releases come before each kill, so that each of them meets installs. Unlike provider-helm: Stuck."""
    seed = random.SystemRandom().randrange(2**32)
    chance = random.Random(seed)
    print(f"seed {seed}")
    names = [f"chaos-{number}" for number in range(RELEASES)]
    cut_short: dict[str, set[str]] = {"engine": set(), "controller": set()}
    with own_stage.kube.watching(CROWD) as watch:
        installs = Installs(own_stage, watch)
        for turn in range(KILLS):
            portion = names[turn::KILLS]
            manifests = "\n---\n".join(json.dumps(manifest(own_stage, name)) for name in portion)
            own_stage.hub.kubectl("apply", "-f", "-", input=manifests)
            installs.await_next()
            time.sleep(chance.uniform(0, MOMENT))  # the random moment, not a wait for anything
            victim = ("engine", "controller")[turn % 2]
            kill(own_stage.controller, victim)
            cut_short[victim] |= installs.cut_short()
            if victim == "controller":
                own_stage.controller.start()
    own_stage.hub.kubectl(
        "wait", "--for=condition=Ready", "releases.helm.crossplane.io", "--all", "--timeout=120s"
    )
    print("cut short:", {victim: sorted(found) for victim, found in cut_short.items()})
    unlocked = set(re.findall(r"/(chaos-\d+) plan=Unlock", own_stage.controller.log.read_text()))
    assert unlocked & set.union(*cut_short.values()), (unlocked, cut_short)
    listed = json.loads(helm4(own_stage.hub, "list", "-A", "-m", "500", "-o", "json"))
    found = {one["name"]: (one["revision"], one["status"]) for one in listed}
    assert found == dict.fromkeys(names, ("1", "deployed"))


class Installs:
    """Helm's records of the crowd, as they come."""

    def __init__(self, stage: Stage, watch: Watch) -> None:
        self._stage, self._watch = stage, watch
        self._known: set[str] = set()
        self._left: set[str] = set()

    def await_next(self) -> None:
        """Wait until an install has begun that had not before."""
        while True:
            seen = self._watch.next(PATIENCE)
            assert seen, "no install has begun"
            metadata = seen.object["metadata"]
            if metadata.get("labels", {}).get("owner") == "helm" and self._new(metadata["uid"]):
                return

    def _new(self, uid: str) -> bool:
        news = uid not in self._known
        self._known.add(uid)
        return news

    def cut_short(self) -> set[str]:
        """Name the releases whose install was under way when somebody was killed just now.

        Whatever has begun until now is no sign of life of who comes next, and is not cut short again.
        """
        while seen := self._watch.next(0):
            self._known.add(seen.object["metadata"]["uid"])
        found = [one["metadata"] for one in self._stage.read(f"{CROWD}?{RECORDS}")["items"]]
        self._known |= {one["uid"] for one in found}
        pending = [one for one in found if one["labels"]["status"] == "pending-install"]
        fresh = {one["labels"]["name"] for one in pending if one["uid"] not in self._left}
        self._left |= {one["uid"] for one in pending}
        return fresh


def kill(controller: ControllerProcess, victim: str) -> None:
    """Kill one of the two; an engine has ended afterwards, for one without a controller ends itself.

    The install that was seen may be the last one of the engine before: the next one may still be starting.
    """
    engine = eventually(controller.engine_pid, what="an engine")
    if victim == "controller":
        controller.kill()
    else:
        os.kill(engine, signal.SIGKILL)
    eventually(lambda: not is_engine(engine), what="the end of the engine")


def test_a_stop_in_the_middle_of_an_install_leaves_nothing_stuck(own_stage: Stage, helm4) -> None:
    """Unlike provider-helm: Waits."""
    own_stage.chart("halfway", {"hook.yaml": hook()})
    own_stage.release("cut-short", "halfway", "halves", {"pod": "pending"}, waitTimeout="10m")
    jobs = ("get", "jobs", "-n", "halves", "-o", "name")
    eventually(lambda: "cut-short" in own_stage.hub.kubectl(*jobs, check=False), what="the hook")
    assert own_stage.controller.stop() == 0
    own_stage.release("cut-short", "halfway", "halves", {"pod": "succeeded"}, waitTimeout="10m")
    own_stage.controller.start()
    own_stage.wait("cut-short", "Ready")
    statuses = [one["status"] for one in history(helm4, own_stage.hub, "halves", "cut-short")]
    assert statuses[-1] == "deployed"
    assert "pending" not in " ".join(statuses)


def test_a_restart_writes_nothing_and_then_nobody_is_asked(own_stage: Stage) -> None:
    """Unlike provider-helm: Looks."""
    names = [f"calm-{number}" for number in range(20)]
    manifests = "\n---\n".join(json.dumps(manifest(own_stage, name)) for name in names)
    own_stage.hub.kubectl("apply", "-f", "-", input=manifests)
    own_stage.hub.kubectl(
        "wait", "--for=condition=Ready", "releases.helm.crossplane.io", "--all", "--timeout=60s"
    )
    own_stage.look_again(*names)  # what is still to be told of their objects is told with it
    before = versions(own_stage)
    assert own_stage.controller.stop() == 0
    own_stage.controller.start()
    # Whatever a restart would write is written before a new Release is ready: they share one queue.
    own_stage.release("newcomer", "hello", "calm")
    own_stage.wait("newcomer", "Ready")
    after = versions(own_stage)
    after.pop("newcomer")
    assert after == before
    windows = [asked_while_idle(own_stage)]
    while not quiet(windows[-1]) and len(windows) < WINDOWS:
        windows.append(asked_while_idle(own_stage))
    assert quiet(windows[-1]), windows
    assert windows[-1].total() < len(names)


def quiet(asked: Counter[tuple[str, str]]) -> bool:
    """Whether nobody was asked; watches are renewed after minutes, by chance now or not."""
    return all(verb == "WATCH" or what in CLUSTERS_OWN for verb, what in asked)


def asked_while_idle(stage: Stage) -> Counter[tuple[str, str]]:
    """Count what the hub is asked for while nobody does anything, but for heartbeats: a Lease is renewed.

    Not a wait but the measurement: whoever looked at each release every few seconds would have to do it in here.
    """
    before = stage.kube.requests_at_rest()
    time.sleep(IDLE_SECONDS)
    asked = stage.kube.requests().since(before)
    stage.kube.close()
    return asked.by_kind()


def test_a_restart_of_the_api_server_leaves_nothing_undone(own_stage: Stage) -> None:
    """Edits are under way when it goes, an object is deleted before the eyes are open again."""
    hub, names = own_stage.hub, [f"outage-{number}" for number in range(20)]

    def write(message: str) -> None:
        manifests = [
            own_stage.manifest(name, "hello", "outage", {"message": message}) for name in names
        ]
        hub.kubectl("apply", "-f", "-", input="\n---\n".join(map(json.dumps, manifests)))

    def read(what: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = own_stage.read(f"/api/v1/namespaces/outage/{what}")["items"]
        return found

    def messages() -> list[str | None]:
        found = {one["metadata"]["name"]: one["data"].get("message") for one in read("configmaps")}
        return [found.get(name) for name in names]

    write("before")
    ready = ("wait", "--for=condition=Ready", "releases.helm.crossplane.io", "--all")
    hub.kubectl(*ready, "--timeout=120s")
    write("after")
    hub.restart_api_server()
    hub.kubectl("delete", "configmap", names[0], "-n", "outage", "--ignore-not-found")
    eventually(lambda: messages() == ["after"] * len(names), what="all as written")
    hub.kubectl(*ready, "--timeout=120s")
    records = [Record.of(one) for one in read(f"secrets?{RECORDS}")]
    good = sorted((one.name, one.message) for one in records if one.good)
    assert good == sorted((name, message) for name in names for message in ("before", "after"))
    assert "pass failed" not in own_stage.controller.log.read_text()


def manifest(stage: Stage, name: str) -> dict[str, object]:
    return {
        "apiVersion": "helm.crossplane.io/v1beta1",
        "kind": "Release",
        "metadata": {"name": name},
        "spec": {
            "forProvider": {
                "chart": {
                    "repository": stage.repository.url,
                    "name": "hello",
                    "version": "1.0.0",
                },
                "namespace": "crowd",
            }
        },
    }


def versions(stage: Stage) -> dict[str, str]:
    answer = json.loads(stage.hub.kubectl("get", "releases.helm.crossplane.io", "-o", "json"))
    return {one["metadata"]["name"]: one["metadata"]["resourceVersion"] for one in answer["items"]}
