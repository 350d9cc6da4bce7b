"""A Release from its first line to its last."""

import json

from stage import Stage, conditions, eventually, history


def hold(hub, name: str, *finalizers: str) -> None:
    patch = json.dumps({"metadata": {"finalizers": finalizers}})
    hub.kubectl("patch", "release", name, "--type=merge", "-p", patch)


def test_a_release_is_installed_upgraded_and_removed(stage: Stage, hub, helm4, namespace) -> None:
    stage.release("shop", "hello", namespace, {"message": "good morning"})
    release = stage.wait("shop", "Ready")

    assert release["metadata"]["annotations"]["crossplane.io/external-name"] == "shop"
    assert release["metadata"]["finalizers"] == ["finalizer.managedresource.crossplane.io"]
    status = release["status"]
    assert status["atProvider"]["state"] == "deployed"
    assert status["atProvider"]["revision"] == 1
    assert status["atProvider"]["version"] == "1.0.0"
    assert status["summary"] == "4/4"
    assert status["observedGeneration"] == 1
    for one in ("Synced", "Ready"):
        assert conditions(release)[one]["observedGeneration"] == 1
    assert stage.told("shop", "CreatedExternalResource")

    # The real helm sees it as its own.
    listed = json.loads(helm4(hub, "list", "-n", namespace, "-o", "json"))
    assert [(one["name"], one["status"], one["chart"]) for one in listed] == [
        ("shop", "deployed", "hello-1.0.0")
    ]
    assert "STATUS: deployed" in helm4(hub, "status", "shop", "-n", namespace)

    stage.release("shop", "hello", namespace, {"message": "good evening"})
    hub.kubectl(
        "wait", "--for=jsonpath={.status.observedGeneration}=2", "release/shop", "--timeout=60s"
    )
    release = stage.wait("shop", "Ready")
    assert conditions(release)["Ready"]["observedGeneration"] == 2
    message = hub.kubectl("get", "cm", "shop", "-n", namespace, "-o", "jsonpath={.data.message}")
    assert message == "good evening"
    assert [one["revision"] for one in history(helm4, hub, namespace, "shop")] == [1, 2]
    (said,) = stage.told("shop", "UpdatedExternalResource")
    assert "values changed: message" in said

    # Others who have a finalizer on it may still need what runs.
    ours, theirs = release["metadata"]["finalizers"][0], "example.test/backup"
    hold(hub, "shop", ours, theirs)
    hub.kubectl("delete", "release", "shop", "--wait=false")
    assert stage.refused("shop", "OtherFinalizers").endswith(f"of others: {theirs}")
    assert "shop" in hub.kubectl("get", "cm", "-n", namespace, "-o", "name")
    hold(hub, "shop", ours)
    hub.kubectl("wait", "--for=delete", "release/shop", "--timeout=60s")
    stage.applied.remove("shop")
    assert json.loads(helm4(hub, "list", "-n", namespace, "-o", "json")) == []
    assert "NotFound" in hub.kubectl("get", "cm", "shop", "-n", namespace, check=False)


def test_the_namespace_is_made_with_the_release(stage: Stage, hub) -> None:
    stage.release("pioneer", "hello", "not-there-yet")
    stage.wait("pioneer", "Ready")
    labels = json.loads(hub.kubectl("get", "namespace", "not-there-yet", "-o", "json"))["metadata"]
    assert labels["labels"]["app.kubernetes.io/managed-by"] == "provider-helm"


def test_a_namespace_that_may_not_be_made_is_named(stage: Stage) -> None:
    stage.release("polite", "hello", "nobody-made-this", skipCreateNamespace=True)
    message = stage.refused("polite", "NamespaceMissing")
    assert "nobody-made-this" in message


def test_an_empty_version_is_the_latest_and_stays(stage: Stage, helm4, hub, namespace) -> None:
    stage.release("newest", "hello", namespace, version="")
    release = stage.wait("newest", "Ready")
    assert release["status"]["atProvider"]["version"] == "1.1.0"
    assert len(history(helm4, hub, namespace, "newest")) == 1


def test_an_external_name_names_the_helm_release(stage: Stage, helm4, hub, namespace) -> None:
    stage.release(
        "alias", "hello", namespace, annotations={"crossplane.io/external-name": "real-name"}
    )
    stage.wait("alias", "Ready")
    assert history(helm4, hub, namespace, "real-name")


def test_a_paused_release_is_left_alone(stage: Stage, hub, helm4, namespace) -> None:
    stage.release("quiet", "hello", namespace)
    stage.wait("quiet", "Ready")
    hub.kubectl("annotate", "release", "quiet", "crossplane.io/paused=true")
    stage.hub.kubectl(
        "wait",
        "--for=jsonpath={.status.conditions[?(@.type=='Synced')].reason}=ReconcilePaused",
        "release/quiet",
        "--timeout=60s",
    )
    hub.kubectl(
        *("patch", "release", "quiet", "--type=merge", "-p"),
        '{"spec":{"forProvider":{"values":{"message":"ignored"}}}}',
    )
    hub.kubectl("annotate", "release", "quiet", "crossplane.io/paused-")
    eventually(lambda: len(history(helm4, hub, namespace, "quiet")) == 2)


def test_ready_follows_the_objects(stage: Stage, hub, namespace) -> None:
    stage.release("pulse", "hello", namespace)
    stage.wait("pulse", "Ready")
    # No node will ever take this pod, so the Deployment can't complete.
    hub.kubectl(
        *("patch", "deployment", "pulse", "-n", namespace, "--type=merge", "-p"),
        '{"spec":{"template":{"spec":{"nodeSelector":{"no":"such-node"}}}}}',
    )
    release = stage.wait("pulse", "Ready=False")
    assert "Deployment pulse is InProgress" in conditions(release)["Ready"]["message"]
    assert conditions(release)["Synced"]["status"] == "True"
    hub.kubectl(
        *("patch", "deployment", "pulse", "-n", namespace, "--type=merge", "-p"),
        '{"spec":{"template":{"spec":{"nodeSelector":null}}}}',
    )
    stage.wait("pulse", "Ready")
