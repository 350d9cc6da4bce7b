"""Many releases at once; whoever is slow or dead delays nobody else."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from road import detour, road_to
from stage import Stage, conditions, eventually

CROWD = 60
# More of each kind than there are places for it: workers for those without a version, actions for the rest.
FEW, MANY = 5, 25
# How much slower the crowd may be among the disturbers: what they cost, not what they wait for.
FACTOR, ALLOWANCE = 2.5, 5.0
# Other work on the machine may slow the crowd down too: so often it may try.
TURNS = 3
SMALL = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
"""
LONG_HOOK = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}
  annotations: {helm.sh/hook: pre-install}
spec:
  template:
    metadata:
      annotations: {dev.pilothouse.dev/pod: pending}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: registry.example/none}]
"""


@contextmanager
def silent() -> Iterator[str]:
    """An address that takes connections and never says a word."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1024)
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def nobody() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def apply(stage: Stage, manifests: list[dict[str, Any]]) -> None:
    for one in manifests:
        one["metadata"].setdefault("labels", {})["story"] = "parallel"
    items = {"apiVersion": "v1", "kind": "List", "items": manifests}
    stage.hub.kubectl("create", "-f", "-", input=json.dumps(items))


def crowd(stage: Stage, label: str) -> list[dict[str, Any]]:
    made = []
    for number in range(CROWD):
        config = "default" if number % 2 else "parallel-edge"
        one = stage.manifest(f"{label}-{number}", "small", "parallel", config=config)
        made.append(one | {"metadata": one["metadata"] | {"labels": {"crowd": label}}})
    return made


def seconds_for(stage: Stage, label: str) -> float:
    manifests = crowd(stage, label)
    began = time.monotonic()
    apply(stage, manifests)
    stage.hub.kubectl(
        "wait", "--for=condition=Ready", "release", "-l", f"crowd={label}", "--timeout=120s"
    )
    return time.monotonic() - began


def disturbers(stage: Stage, count: int, name: str, **how: Any) -> list[dict[str, Any]]:
    """Orphans, so that they can go although their clusters never answer."""
    chart = how.pop("chart", "small")
    made = []
    for number in range(count):
        one = stage.manifest(f"{name}-{number}", chart, "parallel", **how)
        one["spec"]["deletionPolicy"] = "Orphan"
        made.append(one)
    return made


@pytest.mark.timed
def test_the_slow_and_the_dead_delay_nobody(stage: Stage, hub, edge) -> None:
    stage.chart("small", {"cm.yaml": SMALL})
    stage.chart("lengthy", {"hook.yaml": LONG_HOOK})
    stage.config("parallel-edge", edge.kubeconfig.read_bytes())
    alone = seconds_for(stage, "alone")
    with silent() as mute, road_to(edge.server) as road:
        for name, address in (("dead", nobody()), ("mute", mute), ("hushed", road.address)):
            stage.config(f"parallel-{name}", detour(edge, address))
        # Once a cluster has been seen actions are begun on it: these are when it has fallen silent.
        apply(stage, disturbers(stage, 1, "hushed-later", config="parallel-hushed"))
        stage.wait("hushed-later-0", "Ready")
        road.silence()
        slow = [
            *disturbers(stage, FEW, "dead", config="parallel-dead"),
            *disturbers(stage, FEW, "mute", config="parallel-mute"),
            *disturbers(stage, MANY, "hushed", config="parallel-hushed"),
            *disturbers(stage, MANY, "no-chart", repository=f"http://{mute}"),
            *disturbers(stage, MANY, "no-version", repository=f"http://{mute}", version=""),
            *disturbers(stage, FEW, "hooked", chart="lengthy", waitTimeout="10m"),
        ]
        apply(stage, slow)
        kinds = ("dead", "hushed", "no-chart", "hooked")
        eventually(lambda: under_way(hub, *kinds) == 2 * (FEW + MANY))
        bar = alone * FACTOR + ALLOWANCE
        among: list[float] = []
        while len(among) < TURNS and min(among, default=bar) >= bar:
            among.append(seconds_for(stage, f"among-{len(among)}"))
        # All of them in one request.
        releases = "/apis/helm.crossplane.io/v1beta1/releases"
        hub.kubectl("delete", "--raw", f"{releases}?labelSelector=story%3Dparallel")
    told = ", ".join(f"{took:.1f}" for took in among)
    print(f"alone {alone:.1f} s, among the slow and the dead {told} s")
    assert min(among) < bar


def under_way(hub, *kinds: str) -> int:
    """How many of these kinds have been looked at."""
    found = json.loads(hub.kubectl("get", "releases.helm.crossplane.io", "-o", "json"))["items"]
    named = [one for one in found if one["metadata"]["name"].rsplit("-", 1)[0] in kinds]
    return len([one for one in named if "Synced" in conditions(one)])
