"""Two Releases, one Helm release; and Releases whose cluster is gone."""

import json
import sqlite3

from stage import INJECTED, ControllerProcess, Stage, await_crds, conditions, eventually, history


def named(name: str) -> dict[str, str]:
    return {"crossplane.io/external-name": name}


def message(hub, namespace: str, name: str) -> str:
    return hub.kubectl("get", "cm", name, "-n", namespace, "-o", "jsonpath={.data.message}")


def test_the_older_of_two_keeps_the_helm_release(stage: Stage, hub, helm4, namespace) -> None:
    stage.release("elder", "hello", namespace, {"message": "old"}, annotations=named("one"))
    stage.wait("elder", "Ready")
    stage.release("younger", "hello", namespace, {"message": "new"}, annotations=named("one"))
    said = stage.refused("younger", "AlreadyClaimed")
    assert '"elder"' in said
    assert "external-name" in said
    # Through other credentials it is the same cluster.
    stage.config("same-cluster", hub.kubeconfig.read_bytes())
    stage.release(
        "cousin",
        "hello",
        namespace,
        {"message": "new"},
        annotations=named("one"),
        config="same-cluster",
    )
    assert '"elder"' in stage.refused("cousin", "AlreadyClaimed")
    stage.delete("cousin")
    assert message(hub, namespace, "one") == "old"
    assert len(history(helm4, hub, namespace, "one")) == 1
    # A controller that starts anew must not let whoever comes first win.
    stage.release("elder", "hello", namespace, {"message": "older"}, annotations=named("one"))
    eventually(lambda: message(hub, namespace, "one") == "older")
    hub.kubectl(
        "patch", "release", "elder", "--type=merge", "-p", '{"spec": {"deletionPolicy": "Orphan"}}'
    )
    stage.delete("elder")
    stage.wait("younger", "Ready")
    assert message(hub, namespace, "one") == "new"


def test_one_that_only_looks_claims_nothing(stage: Stage, namespace) -> None:
    lookers = {"looker": ("Observe",), "onlooker": ("Observe", "LateInitialize")}
    for name, policies in lookers.items():
        stage.release(name, "hello", namespace, annotations=named("shared"), policies=policies)
    for name in lookers:
        stage.refused(name, "NotAllowed")
    stage.release("doer", "hello", namespace, annotations=named("shared"))
    for name in ("doer", *lookers):
        stage.wait(name, "Ready")


def test_the_same_name_on_two_clusters_is_two_releases(stage: Stage, edge, namespace) -> None:
    stage.config("edge-twin", edge.kubeconfig.read_bytes())
    stage.release("here", "hello", namespace, annotations=named("twin"))
    stage.release("there", "hello", namespace, annotations=named("twin"), config="edge-twin")
    stage.wait("here", "Ready")
    stage.wait("there", "Ready")


def test_a_deletion_that_cannot_reach_its_cluster_says_how_to_let_go(stage: Stage, hub) -> None:
    """Unlike provider-helm: Deletion."""
    dead = hub.kubeconfig.read_text().replace(hub.server, "https://127.0.0.1:1").encode()
    stage.config("dead", dead)
    stage.release("stranded", "hello", "anywhere", config="dead")
    stage.refused("stranded", "ClusterUnreachable")
    hub.kubectl("delete", "release", "stranded", "--wait=false")

    def told() -> str:
        said: str = conditions(stage.get("stranded"))["Synced"]["message"]
        return said if "pilothouse.dev/abandon=true" in said else ""

    eventually(told)
    hub.kubectl("annotate", "release", "stranded", "pilothouse.dev/abandon=true")
    hub.kubectl("wait", "--for=delete", "release/stranded", "--timeout=60s")
    stage.applied.remove("stranded")
    with sqlite3.connect(stage.controller.directory / "archive.db") as archive:
        rows = archive.execute("SELECT action, helm_release FROM entry WHERE action = 'Abandon'")
        assert ("Abandon", "anywhere/stranded") in rows.fetchall()


def test_a_cluster_that_is_certainly_gone_is_let_go_after_a_while(
    make_cluster, repository, tmp_path, edge, helm4
) -> None:
    """Unlike provider-helm: Deletion."""
    hub = make_cluster("forgetful")
    controller = ControllerProcess(hub, tmp_path, options=("--abandon-after", "3s"))
    controller.start()
    try:
        await_crds(hub, controller)
        hub.kubectl("apply", "-f", "-", input=json.dumps(INJECTED))
        stage = Stage(hub, repository, controller, tmp_path)
        stage.config("lost", edge.kubeconfig.read_bytes())
        stage.release("widow", "hello", "lost", config="lost")
        stage.wait("widow", "Ready")
        hub.kubectl("delete", "secret", "lost", "-n", "default")
        stage.refused("widow", "NotFound")
        stage.delete("widow")
        assert "widow" in helm4(edge, "list", "-n", "lost", "-q")
        assert stage.told("widow", "AbandonedExternalResource")
        with sqlite3.connect(tmp_path / "archive.db") as archive:
            rows = archive.execute(
                "SELECT inventory FROM entry WHERE action = 'Abandon'"
            ).fetchall()
        assert "apps/v1 Deployment lost/widow" in rows[0][0]
    finally:
        controller.stop()
    helm4(edge, "uninstall", "widow", "-n", "lost")


def test_what_was_never_right_can_be_deleted(stage: Stage, namespace) -> None:
    stage.release("never", "hello", namespace, policies=("Create",))
    stage.refused("never", "InvalidInput")
    stage.delete("never")
