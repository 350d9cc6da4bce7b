"""A Release on another cluster than the one it is written on."""

import json
import re

from road import detour, road_to
from stage import Stage, conditions, eventually, history, secret_config


def test_a_secret_kubeconfig_leads_to_another_cluster(stage: Stage, hub, edge, helm4) -> None:
    stage.config("edge", edge.kubeconfig.read_bytes())
    stage.release("far", "hello", "far-away", {"message": "over there"}, config="edge")
    stage.wait("far", "Ready")
    assert helm4(edge, "list", "-n", "far-away", "-q").split() == ["far"]
    assert "NotFound" in hub.kubectl("get", "namespace", "far-away", check=False)
    stage.delete("far")
    assert helm4(edge, "list", "-n", "far-away", "-q") == ""


def test_a_file_leads_to_another_cluster_and_may_be_rotated(
    stage: Stage, hub, edge, helm4, tmp_path
) -> None:
    """As the volume of a Secret is rotated: a link is turned to another directory."""
    mounted = tmp_path / "data"
    config = secret_config("mounted")
    place = {"source": "Filesystem", "fs": {"path": str(mounted / "kubeconfig")}}
    config["spec"] = {"credentials": place}
    hub.kubectl("apply", "-f", "-", input=json.dumps(config))
    with road_to(edge.server) as road:
        kubeconfigs = {"old": detour(edge, road.address), "new": edge.kubeconfig.read_bytes()}
        for name, content in kubeconfigs.items():
            (tmp_path / name).mkdir()
            (tmp_path / name / "kubeconfig").write_bytes(content)
        mounted.symlink_to("old")
        stage.release("filed", "hello", "by-file", {"message": "one"}, config="mounted")
        stage.wait("filed", "Ready")
        assert helm4(edge, "list", "-n", "by-file", "-q").split() == ["filed"]
        road.cut()
        stage.refused("filed", "ClusterUnreachable")
    (tmp_path / "turned").symlink_to("new")
    (tmp_path / "turned").replace(mounted)
    # Nobody has to edit or restart anything.
    stage.wait("filed", "Synced")
    stage.release("filed", "hello", "by-file", {"message": "two"}, config="mounted")
    stage.wait("filed", "Ready")
    assert len(history(helm4, edge, "by-file", "filed")) == 2
    stage.delete("filed")
    assert helm4(edge, "list", "-n", "by-file", "-q") == ""


def test_a_cluster_may_come_after_its_release(stage: Stage, hub, edge) -> None:
    stage.release("early", "hello", "early", config="later")
    assert 'ProviderConfig "later" not found' in stage.refused("early", "NotFound")
    due = stage.postponed("early")
    hub.kubectl("apply", "-f", "-", input=json.dumps(secret_config("later")))
    stage.config("later", edge.kubeconfig.read_bytes())
    stage.ready_before(due)
    stage.delete("early")


def test_a_cluster_goes_away_and_comes_back(stage: Stage, hub, edge, helm4, namespace) -> None:
    with road_to(edge.server) as road:
        stage.config("flaky", detour(edge, road.address))
        stage.release("patient", "hello", "patience", {"message": "before"}, config="flaky")
        stage.wait("patient", "Ready")
        road.cut()
        said = stage.refused("patient", "ClusterUnreachable")
        assert str(road.port) in said
        stage.release("patient", "hello", "patience", {"message": "meanwhile"}, config="flaky")
        stage.release("elsewhere", "hello", namespace)
        stage.wait("elsewhere", "Ready")
        generation = stage.get("patient")["metadata"]["generation"]
        eventually(lambda: stage.get("patient")["status"]["observedGeneration"] == generation)
        assert conditions(stage.get("patient"))["Ready"]["status"] == "False"
        road.mend()
        stage.wait("patient", "Ready", seconds=60)
        found = history(helm4, edge, "patience", "patient")
        assert [one["status"] for one in found] == ["superseded", "deployed"]
        stage.delete("patient")


def test_rights_that_are_taken_and_given_back(stage: Stage, hub, edge, helm4) -> None:
    account = ("create", "serviceaccount", "deployer", "-n", "default")
    grant = (
        *("create", "clusterrolebinding", "deployer", "--clusterrole=cluster-admin"),
        "--serviceaccount=default:deployer",
    )
    edge.kubectl(*account)
    edge.kubectl(*grant)
    token = edge.kubectl("create", "token", "deployer", "-n", "default").strip()
    authority = re.search(r"certificate-authority-data: *(\S+)", edge.kubeconfig.read_text())
    assert authority
    stage.config("granted", BEARER_CONFIG.format(edge.server, authority[1], token).encode())
    stage.release("governed", "hello", "rights", {"message": "one"}, config="granted")
    stage.wait("governed", "Ready")

    edge.kubectl("delete", "clusterrolebinding", "deployer")
    stage.release("governed", "hello", "rights", {"message": "two"}, config="granted")
    said = stage.refused("governed", "Forbidden")
    assert "system:serviceaccount:default:deployer" in said
    assert token not in json.dumps(stage.get("governed"))
    edge.kubectl(*grant)
    stage.wait("governed", "Ready", seconds=60)

    # Refused altogether, and then other credentials in the same Secret.
    stage.config("granted", BEARER_CONFIG.format(edge.server, authority[1], "wrong").encode())
    stage.release("governed", "hello", "rights", {"message": "three"}, config="granted")
    stage.refused("governed", "Unauthorized")
    before = len(history(helm4, edge, "rights", "governed"))
    stage.config("granted", edge.kubeconfig.read_bytes())
    stage.wait("governed", "Ready", seconds=60)
    assert len(history(helm4, edge, "rights", "governed")) == before + 1
    # Rotated with nothing to do: nothing is done.
    stage.config("granted", edge.kubeconfig.read_bytes() + b"\n# renewed\n")
    hub.kubectl("annotate", "release", "governed", "crossplane.io/reconcile-requested-at=rotated")
    hub.kubectl(
        *("wait", "--for=jsonpath={.status.lastHandledReconcileAt}=rotated", "release/governed"),
        "--timeout=60s",
    )
    assert len(history(helm4, edge, "rights", "governed")) == before + 1
    stage.delete("governed")


BEARER_CONFIG = """\
apiVersion: v1
kind: Config
current-context: it
contexts: [{{name: it, context: {{cluster: it, user: it}}}}]
clusters: [{{name: it, cluster: {{server: "{}", certificate-authority-data: {}}}}}]
users: [{{name: it, user: {{token: {}}}}}]
"""
