"""A Release among Crossplane's managed resources: made early, patched by others, gone with its owner."""

import base64
import json
from pathlib import Path
from string import Template
from typing import Any

import pytest
import yaml
from stage import Stage, conditions, eventually, history

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "composition"
COMPOSER = "apiextensions.crossplane.io/composed"


def apply(hub, *manifests: dict[str, Any], manager: str = COMPOSER) -> None:
    """As Crossplane does: server-side, only the fields it names."""
    items = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
    command = ("apply", "--server-side", "--force-conflicts", "--validate=false", "-f", "-")
    hub.kubectl(*command, f"--field-manager={manager}", input=json.dumps(items))


def secret(name: str, namespace: str, **data: bytes) -> dict[str, Any]:
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded}


def release_of(name: str, **spec: Any) -> dict[str, Any]:
    """Only what is said, as a single-field apply says it."""
    metadata = spec.pop("metadata", {})
    found = {
        "apiVersion": "helm.crossplane.io/v1beta1",
        "kind": "Release",
        "metadata": {"name": name, **metadata},
    }
    return found | ({"spec": spec} if spec else {})


@pytest.fixture
def composite(hub, stage: Stage) -> dict[str, Any]:
    hub.kubectl("apply", "-f", str(EXAMPLE / "definition.yaml"))
    hub.kubectl("wait", "--for=condition=Established", "crd/wordpressclusters.apps.example.org")
    hub.kubectl("create", "namespace", "crossplane-system", check=False)
    made = hub.kubectl("apply", "-f", str(EXAMPLE / "composite.yaml"), "-o", "json")
    found: dict[str, Any] = json.loads(made)
    return found


def composed(stage: Stage, uid: str) -> list[dict[str, Any]]:
    text = (EXAMPLE / "composed.yaml").read_text()
    filled = Template(text).substitute(uid=uid, repository=stage.repository.url)
    return list(yaml.safe_load_all(filled))


def test_a_composite_from_its_first_wish_to_its_end(stage: Stage, hub, edge, helm4, composite):
    parts = composed(stage, composite["metadata"]["uid"])
    apply(hub, *parts)
    blog, monitoring = "my-blog-wordpress", "my-blog-monitoring"
    missing = "Secret crossplane-system/my-blog-cluster not found"
    eventually(lambda: missing in stage.refused(monitoring, "NotFound"), what=missing)
    # The database comes first, the cluster later.
    stage.refused(blog, "NotFound")
    database = {"endpoint": b"db.example", "username": b"u", "password": b"s3cret-word"}
    apply(hub, secret("my-blog-mysql", "crossplane-system", **database))
    eventually(lambda: "my-blog-cluster" in stage.refused(blog, "NotFound"))
    due = stage.postponed(blog, monitoring)
    kubeconfig = edge.kubeconfig.read_bytes()
    apply(hub, secret("my-blog-cluster", "crossplane-system", kubeconfig=kubeconfig))
    stage.ready_before(due)
    values = json.loads(helm4(edge, "get", "values", blog, "-n", "wordpress", "-o", "json"))
    assert values["externalDatabase"]["host"] == "db.example"
    assert "s3cret-word" not in json.dumps(stage.get(blog)["status"])

    living_together(stage, hub, edge, helm4, blog, parts)

    hub.kubectl("delete", "wordpresscluster", "my-blog", "--timeout=120s")
    for one in (blog, monitoring):
        hub.kubectl("wait", "--for=delete", f"release/{one}", "--timeout=120s")
    config = "providerconfigs.helm.crossplane.io/my-blog-cluster"
    hub.kubectl("wait", "--for=delete", config, "--timeout=120s")
    assert json.loads(helm4(edge, "list", "-A", "-o", "json", "-f", "my-blog")) == []


def living_together(stage: Stage, hub, edge, helm4, blog: str, parts: list[dict[str, Any]]) -> None:
    """The composer applies again and again, others set single fields, and we write status."""
    before = stage.get(blog)
    assert before["spec"]["forProvider"]["chart"]["version"] == "1.1.0", "filled in by us"
    for number in range(3):
        apply(hub, *parts)
        apply(
            hub,
            release_of(blog, metadata={"labels": {"round": str(number)}}),
            manager="labeller",
        )
        request = {"annotations": {"crossplane.io/reconcile-requested-at": str(number)}}
        apply(hub, release_of(blog, metadata=request), manager="impatient")
    hub.kubectl(
        *("wait", "--for=jsonpath={.status.lastHandledReconcileAt}=2", f"release/{blog}"),
        "--timeout=60s",
    )
    after = stage.get(blog)
    assert after["metadata"]["generation"] == before["metadata"]["generation"]
    assert after["spec"] == before["spec"]
    assert after["metadata"]["labels"] == {"crossplane.io/composite": "my-blog", "round": "2"}
    assert after["metadata"]["ownerReferences"] == before["metadata"]["ownerReferences"]
    assert after["metadata"]["finalizers"] == ["finalizer.managedresource.crossplane.io"]
    assert after["metadata"]["annotations"]["crossplane.io/external-name"] == blog
    assert conditions(after)["Ready"]["status"] == "True"
    assert len(history(helm4, edge, "wordpress", blog)) == 1

    one_more_field = release_of(blog, forProvider={"values": {"replicas": 2}})
    apply(hub, one_more_field, manager="scaler")
    generation = before["metadata"]["generation"] + 1
    hub.kubectl(
        *("wait", f"--for=jsonpath={{.status.observedGeneration}}={generation}"),
        *(f"release/{blog}", "--timeout=60s"),
    )
    release = stage.wait(blog, "Ready")
    assert release["spec"]["forProvider"]["values"] == {
        "message": "Hello from my blog",
        "replicas": 2,
    }
    apply(hub, *parts)
    assert [one["revision"] for one in history(helm4, edge, "wordpress", blog)] == [1, 2]
    found = json.loads(hub.kubectl("get", "secret", blog, "-n", "crossplane-system", "-o", "json"))
    assert base64.b64decode(found["data"]["port"]) == b"80"


def test_the_first_designs_release_finds_its_cluster_by_its_composite(
    stage: Stage, hub, edge, helm4, composite
) -> None:
    """Text for values, no version, references without a namespace, and no ProviderConfig named."""
    owner = {
        "apiVersion": composite["apiVersion"],
        "kind": composite["kind"],
        "name": composite["metadata"]["name"],
        "uid": composite["metadata"]["uid"],
        "controller": True,
    }
    text = (ROOT / "tests/data/first-design/composition.yaml").read_text()
    parts = yaml.safe_load(text)["spec"]["to"]
    release = next(one["base"] for one in parts if one["base"]["kind"] == "Release")
    release["metadata"] = {"name": "by-design", "ownerReferences": [owner]}
    wanted = release["spec"]["forProvider"]
    wanted["chart"] = {"name": "hello", "repository": stage.repository.url}
    for one in wanted["set"][:3]:
        one["valueFrom"]["secretKeyRef"]["name"] = "design-mysql"
    wanted["set"][3]["value"] = "My blog"
    stage.applied.append("by-design")
    apply(hub, release)
    stage.refused("by-design", "NotFound")
    data = {"host": b"db.example", "username": b"u", "password": b"p4ssw0rd"}
    config = {
        "apiVersion": "helm.crossplane.io/v1alpha1",
        "kind": "ProviderConfig",
        "metadata": {"name": "design", "ownerReferences": [owner]},
        "spec": {"credentialsSecretRef": {"name": "design-cluster"}},
    }
    apply(hub, secret("design-mysql", "default", **data), config)
    eventually(lambda: "design-cluster" in stage.refused("by-design", "NotFound"))
    due = stage.postponed("by-design")
    kubeconfig = edge.kubeconfig.read_bytes()
    apply(hub, secret("design-cluster", "default", kubeconfig=kubeconfig))
    stage.ready_before(due)
    values = json.loads(helm4(edge, "get", "values", "by-design", "-n", "wordpress", "-o", "json"))
    assert values == {
        "mariadb.enabled": False,
        "externaldb.enabled": True,
        "externalDatabase": {"host": "db.example", "user": "u", "password": "p4ssw0rd"},
        "blogName": "My blog",
    }
    # What it asked for is still what is written, in its own words.
    found = json.loads(
        hub.kubectl("get", "releases.v1alpha1.helm.crossplane.io", "by-design", "-o", "json")
    )
    assert found["spec"]["forProvider"]["values"] == wanted["values"]
    stage.delete("by-design")
    hub.kubectl("delete", "wordpresscluster", "my-blog", "--timeout=120s")
