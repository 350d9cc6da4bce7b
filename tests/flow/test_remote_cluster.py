"""A Release on another cluster than the one it is written on."""

import json

from stage import Stage, secret_config


def test_a_secret_kubeconfig_leads_to_another_cluster(stage: Stage, hub, edge, helm4) -> None:
    stage.config("edge", edge.kubeconfig.read_bytes())
    stage.release("far", "hello", "far-away", {"message": "over there"}, config="edge")
    stage.wait("far", "Ready")
    assert [one["name"] for one in json.loads(helm4(edge, "list", "-A", "-o", "json"))] == ["far"]
    assert "NotFound" in hub.kubectl("get", "namespace", "far-away", check=False)
    stage.delete("far")
    assert json.loads(helm4(edge, "list", "-A", "-o", "json")) == []


def test_a_cluster_may_come_after_its_release(stage: Stage, hub, edge) -> None:
    stage.release("early", "hello", "early", config="later")
    assert 'ProviderConfig "later" not found' in stage.refused("early", "NotFound")
    hub.kubectl("apply", "-f", "-", input=json.dumps(secret_config("later")))
    stage.config("later", edge.kubeconfig.read_bytes())
    stage.wait("early", "Ready")
    stage.delete("early")
