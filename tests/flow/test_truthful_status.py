"""The status says how every object is, and says it at once."""

import json
from typing import Any

import pytest
from moments import TIMES, assert_prompt, watched
from stage import RELEASES, Stage, conditions, eventually
from templates import deployment

# What is broken here by hand is to stay broken.
LEFT = {"drift": {"mode": "Ignore"}}
# No node is like this, so the new pod cannot run.
AWAY = {"spec": {"template": {"spec": {"nodeSelector": {"no": "such-node"}}}}}
BACK = {"spec": {"template": {"spec": {"nodeSelector": None}}}}
COUNTS = ("replicas", "updatedReplicas", "availableReplicas", "readyReplicas")


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
    with (
        watched(stage.kube, f"/apis/apps/v1/namespaces/{namespace}/deployments") as runs,
        watched(stage.kube, RELEASES) as releases,
    ):

        def moved(patch: dict[str, Any], *, good: bool) -> float:
            runs.patch("beat", patch)
            so = runs.first("beat", lambda one: rolled_out(one) == good, what="rollout")
            told = releases.first("beat", lambda one: says_ready(one) == good, what="told")
            return told.moment - so.moment

        def series() -> dict[str, list[float]]:
            pairs = [(moved(AWAY, good=False), moved(BACK, good=True)) for _ in range(TIMES)]
            falls, returns = map(list, zip(*pairs, strict=True))
            return {
                "Deployment unavailable to Ready=False": falls,
                "Deployment available to Ready=True": returns,
            }

        assert_prompt(series)


def rolled_out(deployment: dict[str, Any]) -> bool:
    status = deployment.get("status", {})
    observed = status.get("observedGeneration") == deployment["metadata"]["generation"]
    return observed and {status.get(one) for one in COUNTS} == {deployment["spec"]["replicas"]}


def says_ready(release: dict[str, Any]) -> bool:
    return conditions(release).get("Ready", {}).get("status") == "True"


def test_the_failing_pod_tells_why(stage: Stage, hub, namespace) -> None:
    stage.chart("waits", {"all.yaml": deployment("pending")})
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
    stage.release("easygoing", "hello", namespace, beside=LEFT)
    stage.wait("easygoing", "Ready")
    hub.kubectl("delete", "cm", "easygoing", "-n", namespace)
    stage.wait("easygoing", "Ready=False")
    hub.kubectl(
        *("patch", "release", "easygoing", "--type=merge", "-p"), '{"spec":{"readiness":"Helm"}}'
    )
    stage.wait("easygoing", "Ready")
    # Still told, though it does not count.
    missing = eventually(
        lambda: [
            one["name"]
            for one in stage.get("easygoing")["status"]["resources"]
            if one["state"] == "NotFound"
        ]
    )
    assert missing == ["easygoing"]
    assert conditions(stage.get("easygoing"))["Synced"]["status"] == "True"
