"""What is easily forgotten: moved names, selected clusters, touched connection secrets, pauses."""

import json
import os
import sqlite3

from stage import Stage, conditions, eventually, secret_config

from pilothouse.dev.cluster import DevCluster


def patch(hub: DevCluster, name: str, change: dict[str, object]) -> None:
    hub.kubectl("patch", "release", name, "--type=merge", "-p", json.dumps(change))


def test_another_name_leaves_the_helm_release_and_says_so(
    stage: Stage, hub, helm4, namespace
) -> None:
    """Unlike provider-helm: Moving."""
    stage.release("mover", "hello", namespace)
    stage.wait("mover", "Ready")
    patch(hub, "mover", {"metadata": {"annotations": {"crossplane.io/external-name": "moved"}}})
    eventually(lambda: "moved" in helm4(hub, "list", "-n", namespace, "-q"))
    told = eventually(
        lambda: [one for one in stage.events("mover") if one["reason"] == "LeftExternalResource"]
    )
    assert f"helm uninstall mover -n {namespace}" in told[0]["message"]
    helm4(hub, "uninstall", "mover", "-n", namespace)
    # And so does another namespace.
    elsewhere = f"{namespace}-new"
    patch(hub, "mover", {"spec": {"forProvider": {"namespace": elsewhere}}})
    eventually(lambda: len(stage.told("mover", "LeftExternalResource")) == 2)
    assert f"helm uninstall moved -n {namespace}" in "".join(
        stage.told("mover", "LeftExternalResource")
    )
    stage.wait("mover", "Ready")
    assert helm4(hub, "list", "-n", elsewhere, "-q").split() == ["moved"]
    stage.delete("mover")
    assert "moved" in helm4(hub, "list", "-n", namespace, "-q")


def test_a_selected_config_is_used_and_protected(stage: Stage, hub, edge, namespace) -> None:
    hub.kubectl("create", "clusterrole", "composite", "--verb=get", "--resource=pods")
    uid = hub.kubectl("get", "clusterrole", "composite", "-o", "jsonpath={.metadata.uid}")
    owner = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "name": "composite",
        "uid": uid,
        "controller": True,
    }
    chosen = {"providerSelector": {"matchControllerRef": True}}
    manifest = stage.manifest("chosen", "hello", namespace, beside=chosen)
    manifest["metadata"]["ownerReferences"] = [owner]
    hub.kubectl("apply", "-f", "-", input=json.dumps(manifest))
    stage.applied.append("chosen")
    assert "matchControllerRef" in stage.refused("chosen", "NotFound")
    config = secret_config("selected")
    config["metadata"]["ownerReferences"] = [owner]
    hub.kubectl("apply", "-f", "-", input=json.dumps(config))
    hub.kubectl(
        *("create", "secret", "generic", "selected", "-n", "default"),
        f"--from-file=kubeconfig={edge.kubeconfig}",
    )
    release = stage.wait("chosen", "Ready")
    usage = hub.kubectl(
        *("get", "providerconfigusages.helm.crossplane.io", release["metadata"]["uid"]),
        *("-o", "jsonpath={.providerConfigRef.name}"),
    )
    assert usage == "selected"
    eventually(
        lambda: (
            hub.kubectl("get", "providerconfig", "selected", "-o", "jsonpath={.status.users}")
            == "1"
        )
    )
    # One that is not there any more lets the Release go after a while; one that is back has it removed.
    owners = json.dumps({"metadata": {"ownerReferences": None}})
    hub.kubectl("patch", "providerconfig", "selected", "--type=merge", "-p", owners)
    hub.kubectl("delete", "release", "chosen", "--wait=false")
    assert "the Release is let go at" in stage.refused("chosen", "NotFound")
    hub.kubectl("apply", "-f", "-", input=json.dumps(config))
    hub.kubectl("wait", "--for=delete", "release/chosen", "--timeout=60s")
    stage.applied.remove("chosen")
    with sqlite3.connect(stage.controller.directory / "archive.db") as archive:
        query = "SELECT action, cluster FROM entry WHERE release = ?"
        kept = list(archive.execute(query, (release["metadata"]["uid"],)))
    assert kept == [("Install", "selected"), ("Uninstall", "selected")]


def test_a_connection_secret_that_is_touched_is_put_right(stage: Stage, hub, namespace) -> None:
    stage.release(
        "giver",
        "hello",
        namespace,
        {"message": "for you"},
        beside={
            "writeConnectionSecretToRef": {"name": "given", "namespace": namespace},
            "connectionDetails": [
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "name": "giver",
                    "namespace": namespace,
                    "fieldPath": "data.message",
                    "toConnectionSecretKey": "message",
                }
            ],
        },
    )
    stage.wait("giver", "Ready")
    read = ("get", "secret", "given", "-n", namespace, "-o", "jsonpath={.data.message}")
    read = (*read, "--ignore-not-found")
    right = eventually(lambda: hub.kubectl(*read))
    edit = json.dumps({"stringData": {"message": "not this"}})
    hub.kubectl("patch", "secret", "given", "-n", namespace, "--type=merge", "-p", edit)
    eventually(lambda: hub.kubectl(*read) == right)
    hub.kubectl("delete", "secret", "given", "-n", namespace)
    eventually(lambda: hub.kubectl(*read) == right)


def test_a_paused_release_says_that_it_is_paused_whatever_else_is_wrong(
    stage: Stage, hub, namespace
) -> None:
    stage.release("halted", "hello", namespace, config="nowhere-at-all")
    stage.refused("halted", "NotFound")
    patch(hub, "halted", {"metadata": {"annotations": {"crossplane.io/paused": "true"}}})
    assert "paused" in stage.refused("halted", "ReconcilePaused")
    patch(hub, "halted", {"spec": {"deletionPolicy": "Orphan"}})
    hub.kubectl("delete", "release", "halted", "--wait=false")
    eventually(lambda: stage.get("halted")["metadata"].get("deletionTimestamp"))
    assert conditions(stage.get("halted"))["Synced"]["reason"] == "ReconcilePaused"
    patch(hub, "halted", {"metadata": {"annotations": {"crossplane.io/paused": None}}})
    hub.kubectl("wait", "--for=delete", "release/halted", "--timeout=60s")
    stage.applied.remove("halted")


def test_brain_and_engine_wait_for_a_free_moment(stage: Stage) -> None:
    """What runs is not pushed aside for each of their many small steps."""
    engine = eventually(stage.controller.engine_pid, what="an engine")
    assert stage.controller.process
    for process in (stage.controller.process.pid, engine):
        assert os.sched_getscheduler(process) == os.SCHED_BATCH
