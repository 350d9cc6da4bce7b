"""Other people run helm too."""

import base64
import gzip
import json

from stage import Stage, conditions, eventually, history


def hello(stage: Stage) -> tuple[str, ...]:
    return ("hello", "--repo", stage.repository.url, "--version", "1.0.0")


def test_an_equal_release_is_adopted_without_a_new_revision(
    stage: Stage, hub, helm3, helm4, namespace
) -> None:
    for name, helm in (("by-three", helm3), ("by-four", helm4)):
        helm(hub, "install", name, *hello(stage), "-n", namespace, "--set", "message=hi")
        stage.release(name, "hello", namespace, {"message": "hi"})
        stage.wait(name, "Ready")
        assert len(history(helm4, hub, namespace, name)) == 1


def test_a_hand_made_upgrade_is_taken_back(stage: Stage, hub, helm4, namespace) -> None:
    stage.release("mine", "hello", namespace, {"message": "as written"})
    stage.wait("mine", "Ready")
    helm4(hub, "upgrade", "mine", *hello(stage), "-n", namespace, "--set", "message=by hand")
    message = ("get", "cm", "mine", "-n", namespace, "-o", "jsonpath={.data.message}")
    eventually(lambda: hub.kubectl(*message) == "as written", what="taken back")
    assert len(history(helm4, hub, namespace, "mine")) == 3
    eventually(
        lambda: any("values changed: message" in one["message"] for one in stage.events("mine")),
        what="an Event that says what had changed",
    )


def test_a_hand_made_rollback_is_taken_back(stage: Stage, hub, helm4, namespace) -> None:
    """What a spec does not name: the version at an address, the content of patches."""
    name = "went-back"
    chart: dict[str, str] = {}

    def ask(version: str, message: str) -> None:
        patch = [{"op": "replace", "path": "/data/message", "value": message}]
        patches = [{"target": {"kind": "ConfigMap"}, "patch": json.dumps(patch)}]
        where = {"name": "messages", "namespace": namespace}
        data = {"patch.yaml": json.dumps({"patches": patches})}
        given = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": where, "data": data}
        hub.kubectl("apply", "-f", "-", input=json.dumps(given))
        chart["url"] = f"{stage.repository.url}/hello-{version}.tgz"
        stage.release_from(name, namespace, chart, patchesFrom=[{"configMapKeyRef": where}])

    def deployed(revision: int) -> str:
        """Wait for a revision; return why it was made."""

        def reason() -> str:
            status = stage.get(name).get("status", {})
            done = status.get("synced") and status["atProvider"]["revision"] == revision
            return str(status["lastAttempt"]["reason"]) if done else ""

        return eventually(reason, what=f"revision {revision} in sync")

    ask("1.0.0", "first")
    deployed(1)
    ask("1.0.0", "second")
    deployed(2)
    # `helm test` writes the record anew, and takes off what tells that it is ours.
    helm4(hub, "test", name, "-n", namespace)
    path = f"/api/v1/namespaces/{namespace}/secrets/sh.helm.release.v1.{name}.v2"
    assert "annotations" not in stage.read(path)["metadata"]
    stage.look_again(name)
    assert len(history(helm4, hub, namespace, name)) == 2
    helm4(hub, "rollback", name, "1", "-n", namespace)
    assert deployed(4) == "patches changed"
    message = stage.read(f"/api/v1/namespaces/{namespace}/configmaps/{name}")["data"]["message"]
    assert message == "second"
    ask("1.1.0", "second")
    deployed(5)
    helm4(hub, "rollback", name, "1", "-n", namespace)
    assert deployed(7) == "chart version: 1.0.0 is deployed, 1.1.0 is asked for"
    charts = [one["chart"] for one in history(helm4, hub, namespace, name)]
    assert charts[-3:] == ["hello-1.1.0", "hello-1.0.0", "hello-1.1.0"]
    # Back to patches that are no longer asked for: only the revision that Helm copied tells.
    stage.release_from(name, namespace, chart)
    deployed(8)
    helm4(hub, "rollback", name, "7", "-n", namespace)
    because = "rolled back by another Helm client to revision 7, which was made from another spec"
    assert deployed(10) == because


def test_a_hand_made_uninstall_is_repaired(stage: Stage, hub, helm4, namespace) -> None:
    """Unlike provider-helm: Polling."""
    stage.release("restored", "hello", namespace)
    stage.wait("restored", "Ready")
    helm4(hub, "uninstall", "restored", "-n", namespace)
    eventually(
        lambda: "restored" in helm4(hub, "list", "-n", namespace, "-q"), what="installed again"
    )
    stage.wait("restored", "Ready")


def test_an_upgrade_by_hand_that_is_under_way_is_left_alone(
    stage: Stage, hub, helm4, namespace
) -> None:
    """Unlike provider-helm: Stuck."""
    stage.release("held", "hello", namespace, {"message": "as written"})
    stage.wait("held", "Ready")
    begin_upgrade(stage, hub, namespace, "held")
    eventually(
        lambda: conditions(stage.get("held"))["Synced"]["reason"] == "OperationInProgress",
        what="told that somebody is at work",
    )
    said = conditions(stage.get("held"))["Synced"]["message"]
    assert said == "another Helm client is busy with revision 2 (pending-upgrade)"
    # Not even a newer spec is a reason to cut in.
    stage.release("held", "hello", namespace, {"message": "newer"})
    assert "revision 2" in stage.refused("held", "OperationInProgress")
    statuses = [one["status"] for one in history(helm4, hub, namespace, "held")]
    assert statuses == ["deployed", "pending-upgrade"]
    # Over by hand, as `helm rollback` would end it: the spec's turn again.
    hub.kubectl("delete", "secret", "sh.helm.release.v1.held.v2", "-n", namespace)
    stage.wait("held", "Ready")
    message = hub.kubectl("get", "cm", "held", "-n", namespace, "-o", "jsonpath={.data.message}")
    assert message == "newer"


def begin_upgrade(stage: Stage, hub, namespace: str, name: str) -> None:
    """Write the record that Helm writes before it upgrades."""
    path = f"/api/v1/namespaces/{namespace}/secrets/sh.helm.release.v1.{name}.v1"
    deployed = stage.read(path)
    packed = base64.b64decode(base64.b64decode(deployed["data"]["release"]))
    content = json.loads(gzip.decompress(packed))
    content["version"] = 2
    content["info"]["status"] = "pending-upgrade"
    packed = base64.b64encode(gzip.compress(json.dumps(content).encode()))
    labels = {"name": name, "owner": "helm", "status": "pending-upgrade", "version": "2"}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "helm.sh/release.v1",
        "metadata": {
            "name": f"sh.helm.release.v1.{name}.v2",
            "namespace": namespace,
            "labels": labels,
        },
        "data": {"release": base64.b64encode(packed).decode()},
    }
    hub.kubectl("create", "-f", "-", input=json.dumps(secret))
