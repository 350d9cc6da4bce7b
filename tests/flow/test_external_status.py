"""Objects that kstatus cannot judge, and objects of other controllers."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from stage import SOONER_THAN_READ, Stage, conditions, eventually

GROUP = "example.test"
SCHEMA = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"gauges.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {
            "kind": "Gauge",
            "listKind": "GaugeList",
            "plural": "gauges",
            "singular": "gauge",
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                    },
                },
                "schema": {"openAPIV3Schema": SCHEMA},
            }
        ],
    },
}
GAUGE = f"""\
apiVersion: {GROUP}/v1
kind: Gauge
metadata:
  name: {{{{ .Release.Name }}}}
"""
KIND = {"apiVersion": f"{GROUP}/v1", "kind": "Gauge"}
CHECK = {**KIND, "current": 'status.phase == "Up"', "failed": 'status.phase == "Broken"'}


@pytest.fixture(scope="module")
def gauges(hub) -> Iterator[None]:
    hub.kubectl("apply", "-f", "-", input=json.dumps(CRD))
    hub.kubectl("wait", "--for=condition=Established", f"crd/gauges.{GROUP}", "--timeout=60s")
    yield
    hub.kubectl("delete", "crd", f"gauges.{GROUP}", "--wait=false")


def set_status(hub, name: str, namespace: str, status: dict[str, Any]) -> None:
    hub.kubectl(
        *("patch", "gauge", name, "-n", namespace, "--subresource=status", "--type=merge"),
        *("-p", json.dumps({"status": status})),
    )


def said(stage: Stage, name: str) -> str:
    return str(conditions(stage.get(name)).get("Ready", {}).get("message", ""))


@pytest.mark.usefixtures("gauges")
def test_an_expression_says_when_an_object_is_current(stage: Stage, hub, namespace) -> None:
    stage.chart("gauge", {"all.yaml": GAUGE})
    stage.release("judged", "gauge", namespace, beside={"healthChecks": [CHECK]})
    release = stage.wait("judged", "Synced")
    eventually(lambda: "spec.healthChecks[0].current: no such key: phase" in said(stage, "judged"))
    set_status(hub, "judged", namespace, {"phase": "Up"})
    stage.wait("judged", "Ready")
    set_status(hub, "judged", namespace, {"phase": "Broken"})
    release = stage.wait("judged", "Ready=False")
    assert release["status"]["resources"][0]["state"] == "Failed"
    assert "spec.healthChecks[0].failed is true" in said(stage, "judged")
    # Without the check it is as good as any object that says nothing.
    hub.kubectl(
        *("patch", "release", "judged", "--type=merge", "-p"), '{"spec":{"healthChecks":null}}'
    )
    stage.wait("judged", "Ready")
    # It can be scaled, so who scales it counts, whatever its kind is.
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "judged", "namespace": namespace},
        "spec": {"maxReplicas": 2, "scaleTargetRef": {**KIND, "name": "judged"}},
    }
    hub.kubectl("apply", "-f", "-", input=json.dumps(scaler))
    (found,) = eventually(lambda: stage.get("judged")["status"].get("external"))
    assert (found["kind"], found["name"]) == ("HorizontalPodAutoscaler", "judged")
    hub.kubectl("delete", "hpa", "judged", "-n", namespace)
    eventually(lambda: not stage.get("judged")["status"].get("external"))


def test_an_expression_that_is_none_is_refused_by_name(stage: Stage, hub, namespace) -> None:
    bad = {**KIND, "current": "status.phase =="}
    stage.release("mistyped", "hello", namespace, beside={"healthChecks": [bad]})
    message = stage.refused("mistyped", "InvalidInput")
    assert message.startswith("spec.healthChecks[0].current: ")
    assert "Syntax error" in message
    assert hub.kubectl("get", "cm", "mistyped", "-n", namespace, check=False).count("NotFound")
    hub.kubectl("delete", "release", "mistyped", "--timeout=60s")


@pytest.mark.usefixtures("gauges")
def test_the_state_of_a_foreign_object_is_part_of_the_releases(
    stage: Stage, hub, namespace
) -> None:
    beside = {"externalStatus": [{**KIND, "name": "canary"}]}
    stage.release("beholden", "hello", namespace, beside=beside)
    eventually(lambda: "Gauge canary is NotFound" in said(stage, "beholden"))
    manifest = {**KIND, "metadata": {"name": "canary", "namespace": namespace}}
    hub.kubectl("apply", "-f", "-", input=json.dumps(manifest))
    release = stage.wait("beholden", "Ready")
    assert [(one["name"], one["state"]) for one in release["status"]["external"]] == [
        ("canary", "Current")
    ]
    promoted = {"type": "Promoted", "status": "False", "reason": "Failed", "message": "too slow"}
    set_status(hub, "canary", namespace, {"conditions": [promoted]})
    stage.wait("beholden", "Ready=False", seconds=SOONER_THAN_READ)
    assert "Gauge canary is InProgress: Promoted is False, Failed: too slow" in said(
        stage, "beholden"
    )
    set_status(hub, "canary", namespace, {"conditions": [{**promoted, "status": "True"}]})
    stage.wait("beholden", "Ready", seconds=SOONER_THAN_READ)
    assert stage.get("beholden")["status"]["summary"] == "4/4", "it is not one of its own"


def test_an_autoscaler_is_found_without_being_asked_for(stage: Stage, hub, namespace) -> None:
    stage.release("stretchy", "hello", namespace)
    stage.wait("stretchy", "Ready")
    hub.kubectl("autoscale", "deployment", "stretchy", "-n", namespace, "--max=2")

    def external() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = stage.get("stretchy")["status"].get("external", [])
        return found

    (scaler,) = eventually(external)
    assert (scaler["kind"], scaler["name"]) == ("HorizontalPodAutoscaler", "stretchy")
    # Nobody serves metrics here, so it cannot scale, and says so.
    stage.wait("stretchy", "Ready=False", seconds=60)
    assert "HorizontalPodAutoscaler stretchy is InProgress" in said(stage, "stretchy")
    hub.kubectl("delete", "hpa", "stretchy", "-n", namespace)
    stage.wait("stretchy", "Ready", seconds=SOONER_THAN_READ)
    eventually(lambda: not external())
