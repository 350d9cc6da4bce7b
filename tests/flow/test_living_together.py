"""Policies, rollbacks, connection secrets, usages: how a Release lives among others."""

import base64
import json
from typing import Any

from stage import Stage, conditions, eventually, history
from templates import hook

NAMESPACED = "releases.helm.m.crossplane.io"
MESSAGE = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data: {message: {{ .Values.message | quote }}}
"""


def patch(hub, name: str, spec: dict[str, object]) -> None:
    hub.kubectl("patch", "release", name, "--type=merge", "-p", json.dumps({"spec": spec}))


def test_an_orphaned_release_stays(stage: Stage, hub, helm4, namespace) -> None:
    """With the older name of the policy too, and both of its words."""
    wishes = {
        "keeper": {"deletionPolicy": "Orphan"},
        "retainer": {"reclaimPolicy": "Retain"},
        "orphaner": {"reclaimPolicy": "Orphan"},
        "goner": {"reclaimPolicy": "Delete"},
    }
    for name, policy in wishes.items():
        stage.release(name, "hello", namespace)
        stage.wait(name, "Ready")
        patch(hub, name, policy)
        stage.delete(name)
    kept = ["keeper", "orphaner", "retainer"]
    assert sorted(helm4(hub, "list", "-n", namespace, "-q").split()) == kept
    found = stage.read(f"/apis/apps/v1/namespaces/{namespace}/deployments")["items"]
    assert sorted(one["metadata"]["name"] for one in found) == kept


def test_an_orphan_lets_go_of_a_cluster_that_is_gone(stage: Stage, hub) -> None:
    stage.release("exile", "hello", "nowhere", config="never-there")
    stage.refused("exile", "NotFound")
    patch(hub, "exile", {"deletionPolicy": "Orphan"})
    stage.delete("exile")


def test_observe_only_touches_nothing(stage: Stage, hub, helm4, namespace) -> None:
    helm4(
        *(hub, "install", "seen", "hello", "--repo", stage.repository.url, "--version", "1.0.0"),
        *("-n", namespace, "--set", "message=by hand"),
    )
    stage.release("seen", "hello", namespace, {"message": "as written"}, policies=("Observe",))
    release = stage.wait("seen", "Ready")
    assert release["status"]["atProvider"]["revision"] == 1
    assert len(history(helm4, hub, namespace, "seen")) == 1
    message = hub.kubectl("get", "cm", "seen", "-n", namespace, "-o", "jsonpath={.data.message}")
    assert message == "by hand"


def test_the_latest_version_without_late_initialisation(
    stage: Stage, hub, helm4, namespace
) -> None:
    allowed = ("Observe", "Create", "Update", "Delete")
    stage.release("terse", "hello", namespace, version="", policies=allowed, takeOwnership=True)
    release = stage.wait("terse", "Ready")
    assert "version" not in release["spec"]["forProvider"]["chart"]
    assert release["status"]["atProvider"]["version"] == "1.1.0"
    hub.kubectl("annotate", "release", "terse", "crossplane.io/reconcile-requested-at=again")
    hub.kubectl(
        *("wait", "--for=jsonpath={.status.lastHandledReconcileAt}=again"),
        *("release/terse", "--timeout=60s"),
    )
    assert len(history(helm4, hub, namespace, "terse")) == 1


def test_observe_only_needs_no_chart_and_says_what_is_there(
    stage: Stage, hub, helm4, namespace
) -> None:
    manifest = {
        "apiVersion": "helm.crossplane.io/v1beta1",
        "kind": "Release",
        "metadata": {"name": "watcher"},
        "spec": {
            "managementPolicies": ["Observe"],
            "forProvider": {"chart": {}, "namespace": namespace},
        },
    }
    hub.kubectl("apply", "-f", "-", input=json.dumps(manifest))
    stage.applied.append("watcher")
    assert "not installed" in stage.refused("watcher", "NotAllowed")
    assert json.loads(helm4(hub, "list", "-n", namespace, "-o", "json")) == []
    helm4(
        *(hub, "install", "watcher", "hello", "-n", namespace, "--create-namespace"),
        *("--repo", stage.repository.url, "--version", "1.0.0", "--set", "message=by hand"),
    )
    seen = stage.wait("watcher", "Ready")
    assert conditions(seen)["Synced"]["status"] == "True"
    assert seen["status"]["atProvider"]["revision"] == 1
    assert seen["spec"]["forProvider"]["chart"] == {}
    assert len(history(helm4, hub, namespace, "watcher")) == 1


def test_the_latest_version_is_written_down_once(stage: Stage, hub, helm4, namespace) -> None:
    """Unlike provider-helm: Filled in."""
    stage.release("open", "hello", namespace, version="")
    release = stage.wait("open", "Ready")
    assert release["spec"]["forProvider"]["chart"]["version"] == "1.1.0"
    # A GitOps tool applies the original again: what is deployed stands, and nobody fights.
    hub.kubectl(
        *("patch", "release", "open", "--type=json", "-p"),
        '[{"op": "remove", "path": "/spec/forProvider/chart/version"}]',
    )
    generation = stage.get("open")["metadata"]["generation"]
    hub.kubectl(
        *("wait", f"--for=jsonpath={{.status.observedGeneration}}={generation}"),
        *("release/open", "--timeout=60s"),
    )
    release = stage.wait("open", "Ready")
    assert "version" not in release["spec"]["forProvider"]["chart"]
    assert release["metadata"]["generation"] == generation
    assert len(history(helm4, hub, namespace, "open")) == 1


def test_a_failed_upgrade_is_rolled_back_until_the_limit(
    stage: Stage, hub, helm4, namespace
) -> None:
    stage.chart("fragile", {"hook.yaml": hook(pod="{{ .Values.hook }}"), "cm.yaml": MESSAGE})
    stage.release("undo", "fragile", namespace, {"hook": "succeeded", "message": "good"})
    stage.wait("undo", "Ready")
    patch(hub, "undo", {"rollbackLimit": 1})
    stage.release("undo", "fragile", namespace, {"hook": "failed", "message": "bad"})
    message = stage.refused("undo", "RollbackLimitReached")
    assert "Job" in message
    statuses = [one["status"] for one in history(helm4, hub, namespace, "undo")]
    assert statuses[-2:] == ["failed", "deployed"]
    label = ("get", "cm", "undo", "-n", namespace, "-o", "jsonpath={.data.message}")
    assert hub.kubectl(*label) == "good"
    assert stage.get("undo")["status"]["failed"] == 1
    # What runs now is kept as it was deployed.
    edit = ("--type=merge", "-p", '{"data":{"message":"mine"}}', "--field-manager=kubectl-edit")
    hub.kubectl("patch", "cm", "undo", "-n", namespace, *edit)
    eventually(lambda: hub.kubectl(*label) == "good")
    said = "put back: /data/message of ConfigMap undo was changed by kubectl-edit"
    assert stage.told("undo", "CorrectedDrift") == [said]
    assert "Job" in stage.refused("undo", "RollbackLimitReached")
    stage.release("undo", "fragile", namespace, {"hook": "succeeded", "message": "better"})
    stage.wait("undo", "Ready")
    assert hub.kubectl(*label) == "better"
    assert stage.get("undo")["status"].get("failed", 0) == 0


def test_connection_details_go_into_a_secret(stage: Stage, hub, namespace) -> None:
    stage.release("linked", "hello", namespace, {"message": "hi"})
    patch(
        hub,
        "linked",
        {
            "writeConnectionSecretToRef": {"name": "linked-conn", "namespace": namespace},
            "connectionDetails": [
                {
                    "apiVersion": "v1",
                    "kind": "Service",
                    "name": "linked",
                    "namespace": namespace,
                    "fieldPath": "spec.ports[0].port",
                    "toConnectionSecretKey": "port",
                },
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "name": "kube-root-ca.crt",
                    "namespace": namespace,
                    "fieldPath": "data[ca.crt]",
                    "toConnectionSecretKey": "ca",
                    "skipPartOfReleaseCheck": True,
                },
            ],
        },
    )
    secret = eventually(
        lambda: hub.kubectl(
            *("get", "secret", "linked-conn", "-n", namespace, "-o", "json", "--ignore-not-found")
        )
    )
    found = json.loads(secret)
    assert found["type"] == "connection.crossplane.io/v1alpha1"
    assert base64.b64decode(found["data"]["port"]) == b"80"
    assert b"CERTIFICATE" in base64.b64decode(found["data"]["ca"])
    assert found["metadata"]["ownerReferences"][0]["name"] == "linked"


def test_an_object_of_others_is_not_given_away(stage: Stage, hub, namespace) -> None:
    stage.release("nosy", "hello", namespace)
    patch(
        hub,
        "nosy",
        {
            "writeConnectionSecretToRef": {"name": "nosy-conn", "namespace": namespace},
            "connectionDetails": [
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "name": "kube-root-ca.crt",
                    "namespace": namespace,
                    "fieldPath": "data[ca.crt]",
                    "toConnectionSecretKey": "ca",
                }
            ],
        },
    )
    assert "spec.connectionDetails[0]" in stage.refused("nosy", "InvalidInput")


def test_a_config_in_use_cannot_go(stage: Stage, hub, edge) -> None:
    for name in ("vacant", "busy"):
        stage.config(name, edge.kubeconfig.read_bytes())
    for name in ("vacant", "busy"):
        # The second time it moves; what it uses is told before it is Ready there.
        stage.release("tenant", "hello", "tenancy", {"message": name}, config=name)
        release = stage.wait("tenant", "Ready")
        uid = release["metadata"]["uid"]
        usage = stage.read(f"/apis/helm.crossplane.io/v1beta1/providerconfigusages/{uid}")
        assert usage["providerConfigRef"]["name"] == name
        assert usage["metadata"]["labels"]["crossplane.io/provider-config"] == name
        assert usage["resourceRef"]["name"] == "tenant"
    stage.applied.remove("tenant")
    config = "providerconfigs.helm.crossplane.io/vacant"
    hub.kubectl("delete", config, "--timeout=60s")
    config = "providerconfigs.helm.crossplane.io/busy"
    eventually(
        lambda: hub.kubectl("get", config, "-o", "jsonpath={.status.users}") == "1",
        what="the count of users",
    )
    hub.kubectl("delete", config, "--wait=false")
    hub.kubectl("wait", "--for=condition=Terminating", config, "--timeout=60s")
    said = conditions(json.loads(hub.kubectl("get", config, "-o", "json")))["Terminating"]
    assert said["reason"] == "InUse"
    stage.delete("tenant")
    hub.kubectl("wait", "--for=delete", config, "--timeout=60s")


def test_a_request_to_reconcile_is_answered(stage: Stage, hub, namespace) -> None:
    stage.release("asked", "hello", namespace)
    stage.wait("asked", "Ready")
    hub.kubectl("annotate", "release", "asked", "crossplane.io/reconcile-requested-at=now-please")
    hub.kubectl(
        "wait",
        "--for=jsonpath={.status.lastHandledReconcileAt}=now-please",
        "release/asked",
        "--timeout=60s",
    )


def synced(hub, name: str, namespace: str) -> dict[str, Any]:
    """Wait until a namespaced Release is told, and return what."""
    hub.kubectl(
        *("wait", "--for=condition=Synced=False", f"{NAMESPACED}/{name}"),
        *("-n", namespace, "--timeout=60s"),
    )
    found = json.loads(hub.kubectl("get", NAMESPACED, name, "-n", namespace, "-o", "json"))
    return conditions(found)["Synced"]


def test_a_namespaced_release_is_told_that_it_waits(hub, stage: Stage, namespace) -> None:
    manifest = {
        "apiVersion": "helm.m.crossplane.io/v1beta1",
        "kind": "Release",
        "metadata": {"name": "later", "namespace": namespace},
        "spec": {"forProvider": {"chart": {"repository": "https://x", "name": "y"}}},
    }
    hub.kubectl("apply", "-f", "-", input=json.dumps(manifest))
    assert synced(hub, "later", namespace)["reason"] == "NotReconciled"
    # As if provider-helm had reconciled it: what it said of this generation is true no longer.
    done = {
        "type": "Synced",
        "status": "True",
        "reason": "ReconcileSuccess",
        "lastTransitionTime": "2026-01-01T00:00:10Z",
        "observedGeneration": 1,
    }
    hub.kubectl(
        *("patch", NAMESPACED, "later", "-n", namespace, "--subresource=status", "--type=merge"),
        *("-p", json.dumps({"status": {"conditions": [done]}})),
    )
    told = synced(hub, "later", namespace)
    assert (told["reason"], told["observedGeneration"]) == ("NotReconciled", 1)


def test_the_controller_holds_a_lease(hub, stage: Stage) -> None:
    leases = ("get", "leases", "-n", "default", "-o", "name")
    eventually(lambda: "/pilothouse-" in hub.kubectl(*leases), what="its lease")
