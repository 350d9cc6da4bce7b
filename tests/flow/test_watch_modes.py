"""Credentials that allow little are enough: Pilothouse looks as closely as it may."""

import itertools
import json
from typing import Any

import yaml
from stage import SOONER_THAN_READ, Stage, conditions, eventually

EVERY_VERB = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
NO_WATCH = tuple(verb for verb in EVERY_VERB if verb != "watch")
# What is broken here by hand is to stay broken.
LEFT = {"drift": {"mode": "Ignore"}}


def account(
    hub, namespace: str, name: str, verbs: tuple[str, ...], groups: tuple[str, ...] = ("*",)
) -> bytes:
    """The kubeconfig of an account with these rights in one namespace and none elsewhere."""
    metadata = {"name": name, "namespace": namespace}
    rules = [{"apiGroups": list(groups), "resources": ["*"], "verbs": list(verbs)}]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    kinds = [
        {"apiVersion": "v1", "kind": "ServiceAccount"},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": rules},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "roleRef": role,
            "subjects": [{"kind": "ServiceAccount", **metadata}],
        },
    ]
    for kind in kinds:
        hub.kubectl("apply", "-f", "-", input=json.dumps({**kind, "metadata": metadata}))
    config = yaml.safe_load(hub.kubeconfig.read_text())
    token = hub.kubectl("create", "token", name, "-n", namespace).strip()
    config["users"] = [{"name": one["name"], "user": {"token": token}} for one in config["users"]]
    return yaml.safe_dump(config).encode()


def grant_everywhere(hub, namespace: str, name: str) -> None:
    hub.kubectl(
        *("create", "clusterrolebinding", f"{name}-{namespace}", "--clusterrole=cluster-admin"),
        f"--serviceaccount={namespace}:{name}",
    )


def mode(stage: Stage, name: str) -> str:
    return str(stage.get(name)["status"].get("watchMode"))


def test_all_rights_give_one_watch_per_kind(stage: Stage, namespace) -> None:
    stage.release("wide", "hello", namespace)
    stage.wait("wide", "Ready")
    assert mode(stage, "wide") == "Cluster"


def test_rights_in_one_namespace_are_enough(stage: Stage, hub, namespace) -> None:
    stage.config(f"narrow-{namespace}", account(hub, namespace, "narrow", EVERY_VERB))
    for name in ("narrow-first", "narrow-second"):
        stage.release(name, "hello", namespace, config=f"narrow-{namespace}", beside=LEFT)
        release = stage.wait(name, "Ready")
        assert release["status"]["watchMode"] == "Namespace"
    seen = stage.controller.metrics()
    assert seen["pilothouse_watch_mode", f"narrow-{namespace}", "Namespace"] == 2
    assert seen["pilothouse_actions_total", "Install", "succeeded"] >= 2
    assert seen["pilothouse_releases", "Ready", "Available", "True"] >= 2
    # One that has lost Helm's label is not lost to the eyes.
    hub.kubectl("label", "cm", "narrow-first", "-n", namespace, "app.kubernetes.io/managed-by-")
    hub.kubectl("delete", "cm", "narrow-first", "-n", namespace)
    release = stage.wait("narrow-first", "Ready=False", seconds=SOONER_THAN_READ)
    assert "ConfigMap narrow-first is NotFound" in conditions(release)["Ready"]["message"]
    stage.delete("narrow-first")
    # Rights that are granted later are noticed after the next action.
    grant_everywhere(hub, namespace, "narrow")
    turns = itertools.count(1)

    def widened() -> bool:
        change = {"spec": {"forProvider": {"values": {"turn": next(turns)}}}}
        before = stage.get("narrow-second")["status"]["atProvider"]["revision"]
        hub.kubectl("patch", "release", "narrow-second", "--type=merge", "-p", json.dumps(change))
        eventually(lambda: stage.get("narrow-second")["status"]["atProvider"]["revision"] > before)
        stage.wait("narrow-second", "Ready")
        return mode(stage, "narrow-second") == "Cluster"

    eventually(widened, what="the closer look")
    hub.kubectl("delete", "cm", "narrow-second", "-n", namespace)
    stage.wait("narrow-second", "Ready=False", seconds=SOONER_THAN_READ)
    hub.kubectl("delete", "clusterrolebinding", f"narrow-{namespace}")
    stage.delete("narrow-second")


def test_a_foreign_change_is_noticed_in_one_namespace(stage: Stage, hub, helm4, namespace) -> None:
    kubeconfig = account(hub, namespace, "narrow", EVERY_VERB, groups=("", "apps"))
    stage.config(f"narrow-{namespace}", kubeconfig)
    stage.release("narrow-shared", "hello", namespace, config=f"narrow-{namespace}")
    stage.wait("narrow-shared", "Ready")
    # Who may not see autoscalers takes replicas that were scaled for theirs, and nothing else.
    hub.kubectl("scale", "deployment", "narrow-shared", "-n", namespace, "--replicas=3")
    hub.kubectl(
        "set", "image", "deployment/narrow-shared", "main=registry.example/other", "-n", namespace
    )

    def deployed() -> dict[str, Any]:
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments/narrow-shared"
        spec: dict[str, Any] = stage.read(path)["spec"]
        return spec

    def image() -> str:
        return str(deployed()["template"]["spec"]["containers"][0]["image"])

    eventually(lambda: image() != "registry.example/other", what="put back")
    assert deployed()["replicas"] == 3
    helm4(hub, "uninstall", "narrow-shared", "-n", namespace)
    eventually(
        lambda: (
            stage.get("narrow-shared")["status"]["atProvider"].get("revision") == 1
            and "narrow-shared" in hub.kubectl("get", "cm", "-n", namespace, "-o", "name")
        ),
        what="installed again",
    )


def test_what_may_not_be_watched_is_read_now_and_then(stage: Stage, hub, namespace) -> None:
    stage.config(f"blind-{namespace}", account(hub, namespace, "blind", NO_WATCH))
    stage.release("unwatched", "hello", namespace, config=f"blind-{namespace}", beside=LEFT)
    release = stage.wait("unwatched", "Ready", seconds=90)
    assert release["status"]["watchMode"] == "Poll"
    hub.kubectl("delete", "cm", "unwatched", "-n", namespace)
    stage.wait("unwatched", "Ready=False", seconds=60)


def test_too_few_rights_are_named(stage: Stage, hub, namespace) -> None:
    stage.config(f"poor-{namespace}", account(hub, namespace, "poor", ("get",)))
    stage.release("poor", "hello", namespace, config=f"poor-{namespace}")
    message = stage.refused("poor", "Forbidden")
    assert "secrets" in message
