"""The status says how every object is, and says it at once."""

import json
import time
from collections.abc import Callable

import pytest
from stage import Stage, conditions, eventually, followed

TRIES = 10
# What is broken here by hand is to stay broken.
LEFT = {"drift": {"mode": "Ignore"}}
BAR_SECONDS = 1.0
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
spec:
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata:
      labels: {app: {{ .Release.Name }}}
      annotations: {dev.pilothouse.dev/pod: pending}
    spec:
      containers: [{name: main, image: registry.example/none}]
"""
AWAY = '{"spec":{"template":{"spec":{"nodeSelector":{"no":"such-node"}}}}}'
ROLLOUT = (
    "{.metadata.generation} {.status.observedGeneration} {.spec.replicas} {.status.replicas} "
    "{.status.updatedReplicas} {.status.availableReplicas} {.status.readyReplicas}"
)
BACK = '{"spec":{"template":{"spec":{"nodeSelector":null}}}}'


def test_every_object_is_listed_and_the_worst_comes_first(stage: Stage, hub, namespace) -> None:
    stage.release("plain", "hello", namespace, beside=LEFT)
    release = stage.wait("plain", "Ready")
    listed = release["status"]["resources"]
    assert release["status"]["summary"] == f"{len(listed)}/{len(listed)}"
    assert {one["state"] for one in listed} == {"Current"}
    assert {one["kind"] for one in listed} >= {"Deployment", "ConfigMap"}
    hub.kubectl("delete", "cm", "plain", "-n", namespace)
    stage.wait("plain", "Ready=False")
    first = stage.get("plain")["status"]["resources"][0]
    assert (first["kind"], first["name"], first["state"]) == ("ConfigMap", "plain", "NotFound")
    row = hub.kubectl("get", "release", "plain")
    assert f"{len(listed) - 1}/{len(listed)}" in row
    assert "ConfigMap plain is NotFound" in row


@pytest.mark.timed
def test_ready_falls_and_returns_within_a_second(stage: Stage, hub, namespace) -> None:
    stage.release("beat", "hello", namespace, beside=LEFT)
    stage.wait("beat", "Ready")
    where = ("deployment", "beat", "-n", namespace)
    ready = "{.status.conditions[?(@.type=='Ready')].status}"
    falls, returns = [], []
    with (
        followed(hub, *where, shown=ROLLOUT) as rollout,
        followed(hub, "release", "beat", shown=ready) as release,
    ):
        for patch, ends, took in ((AWAY, "False", falls), (BACK, "True", returns)) * TRIES:
            begin = time.monotonic()
            hub.kubectl("patch", *where, "--type=merge", "-p", patch)
            told = eventually(lambda: first(release, begin, lambda said: said == ends))  # noqa: B023
            done = ends == "True"
            seen = eventually(lambda: first(rollout, begin, lambda said: rolled_out(said) == done))  # noqa: B023
            took.append(told - seen)
    # One of ten may be unlucky: that is what the 95th percentile of ten is about.
    assert sorted(falls)[-2] <= BAR_SECONDS, falls
    assert sorted(returns)[-2] <= BAR_SECONDS, returns


def first(
    seen: list[tuple[float, str]], since: float, wanted: Callable[[str], bool]
) -> float | None:
    return next((moment for moment, said in seen if moment > since and wanted(said)), None)


def rolled_out(said: str) -> bool:
    """Whether the numbers of ROLLOUT are those of a Deployment that is as it should be."""
    generation, observed, wanted, *counts = (said + " ").split(" ")[:7]
    return generation == observed and set(counts) == {wanted}


def test_the_failing_pod_tells_why(stage: Stage, hub, namespace) -> None:
    stage.chart("waits", {"all.yaml": DEPLOYMENT})
    stage.release("sick", "waits", namespace)
    stage.wait("sick", "Ready=False")
    pod = eventually(
        lambda: hub.kubectl("get", "pods", "-n", namespace, "-l", "app=sick", "-o", "name").strip()
    )
    waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
    container = {
        "name": "main",
        "image": "registry.example/none",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {"waiting": waiting},
    }
    status = {"status": {"phase": "Pending", "containerStatuses": [container]}}
    hub.kubectl(
        *("patch", pod, "-n", namespace, "--subresource=status", "--type=merge"),
        *("-p", json.dumps(status)),
    )
    said = f"pod {pod.removeprefix('pod/')} ImagePullBackOff: no such image"
    eventually(
        lambda: (stage.get("sick")["status"].get("resources") or [{}])[0].get("message") == said,
        what=f"{said}: {stage.get('sick')['status']}",
    )
    eventually(lambda: said in conditions(stage.get("sick")).get("Ready", {}).get("message", ""))


def test_a_release_may_be_ready_as_helm_says(stage: Stage, hub, namespace) -> None:
    stage.release("lenient", "hello", namespace, beside=LEFT)
    stage.wait("lenient", "Ready")
    hub.kubectl("delete", "cm", "lenient", "-n", namespace)
    stage.wait("lenient", "Ready=False")
    hub.kubectl(
        *("patch", "release", "lenient", "--type=merge", "-p"), '{"spec":{"readiness":"Helm"}}'
    )
    stage.wait("lenient", "Ready")
    # Still told, though it does not count.
    missing = eventually(
        lambda: [
            one["name"]
            for one in stage.get("lenient")["status"]["resources"]
            if one["state"] == "NotFound"
        ]
    )
    assert missing == ["lenient"]
    assert conditions(stage.get("lenient"))["Synced"]["status"] == "True"
