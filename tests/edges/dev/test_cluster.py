"""A development cluster behaves like a real one: rights, pods, jobs, volumes."""

import dataclasses
import json
import stat
from pathlib import Path

import pytest
import yaml

from pilothouse.dev.cluster import DevCluster
from pilothouse.dev.pytest_plugin import Helm

WAIT = "--timeout=60s"


def with_token(cluster: DevCluster, token: str, path: Path) -> DevCluster:
    """Return the cluster as someone who has nothing but a token."""
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    path.write_text(json.dumps(config))
    path.chmod(0o600)
    return dataclasses.replace(cluster, kubeconfig=path)


def pod(name: str, **annotations: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]},
    }


def job(name: str, **annotations: str) -> dict[str, object]:
    template = pod(name, **annotations)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "backoffLimit": 0,
            "template": {"metadata": template["metadata"], "spec": template["spec"]},
        },
    }


def apply(cluster: DevCluster, namespace: str, *objects: dict[str, object]) -> None:
    text = "\n---\n".join(json.dumps(each) for each in objects)
    # A pod is refused until its namespace has this, which comes a moment after the namespace.
    cluster.kubectl("wait", "--for=create", "sa/default", "-n", namespace, WAIT)
    cluster.kubectl("apply", "-n", namespace, "-f", "-", input=text)


def test_the_server_has_a_version_and_client_and_server_agree(hub: DevCluster) -> None:
    versions = json.loads(hub.kubectl("version", "-o", "json"))
    assert versions["serverVersion"]["gitVersion"].startswith("v1.36.")
    assert versions["serverVersion"]["gitVersion"] == versions["clientVersion"]["gitVersion"]


def test_a_token_works_and_gives_no_rights_by_itself(
    hub: DevCluster, namespace: str, tmp_path: Path
) -> None:
    hub.kubectl("create", "serviceaccount", "nobody", "-n", namespace)
    token = hub.kubectl("create", "token", "nobody", "-n", namespace).strip()
    nobody = with_token(hub, token, tmp_path / "kubeconfig")

    assert f"system:serviceaccount:{namespace}:nobody" in nobody.kubectl("auth", "whoami")
    assert "Forbidden" in nobody.kubectl("get", "secrets", "-n", namespace, check=False)
    assert nobody.kubectl("auth", "can-i", "list", "secrets", check=False).startswith("no")

    hub.kubectl(
        *("create", "rolebinding", "nobody", "-n", namespace),
        *("--clusterrole=admin", f"--serviceaccount={namespace}:nobody"),
    )
    # The authorizer learns of a binding by a watch, a moment later.
    while "Forbidden" in (answer := nobody.kubectl("get", "secrets", "-n", namespace, check=False)):
        pass
    assert "No resources found" in answer
    assert "Forbidden" in nobody.kubectl("get", "secrets", "-n", "default", check=False)


def test_a_forged_token_is_nobody(hub: DevCluster, tmp_path: Path) -> None:
    forged = with_token(hub, "eyJhbGciOiJub25lIn0.e30.", tmp_path / "kubeconfig")
    answer = forged.kubectl("get", "namespaces", check=False)
    assert "logged in" in answer or "Unauthorized" in answer


def test_every_pod_has_a_service_account_token(hub: DevCluster, namespace: str) -> None:
    apply(hub, namespace, pod("one"))
    found = json.loads(hub.kubectl("get", "pod", "one", "-n", namespace, "-o", "json"))
    assert found["spec"]["serviceAccountName"] == "default"
    assert any("projected" in volume for volume in found["spec"]["volumes"])


def test_a_deployment_becomes_ready_and_goes_away(hub: DevCluster, namespace: str) -> None:
    hub.kubectl("create", "deployment", "web", "--image=none", "--replicas=3", "-n", namespace)
    hub.kubectl("rollout", "status", "deployment/web", "-n", namespace, WAIT)
    hub.kubectl("delete", "deployment", "web", "-n", namespace, "--cascade=foreground", WAIT)
    assert hub.kubectl("get", "pods", "-n", namespace, "-o", "name") == ""


def test_a_job_completes(hub: DevCluster, namespace: str) -> None:
    apply(hub, namespace, job("work"))
    hub.kubectl("wait", "--for=condition=complete", "job/work", "-n", namespace, WAIT)


def test_a_job_fails_if_it_says_so(hub: DevCluster, namespace: str) -> None:
    apply(hub, namespace, job("work", **{"dev.pilothouse.dev/pod": "failed"}))
    hub.kubectl("wait", "--for=condition=failed", "job/work", "-n", namespace, WAIT)


@pytest.mark.parametrize(
    ("says", "phase"),
    [
        pytest.param(None, "Succeeded", id="a pod that may end, ends"),
        pytest.param("failed", "Failed", id="or fails"),
        pytest.param("running", "Running", id="or goes on"),
    ],
)
def test_what_a_pod_does(hub: DevCluster, namespace: str, says: str | None, phase: str) -> None:
    apply(hub, namespace, pod("one", **({"dev.pilothouse.dev/pod": says} if says else {})))
    hub.kubectl(
        "wait", f"--for=jsonpath={{.status.phase}}={phase}", "pod/one", "-n", namespace, WAIT
    )


def test_a_pod_that_is_to_stay_pending_is_scheduled_but_never_starts(
    hub: DevCluster, namespace: str
) -> None:
    apply(hub, namespace, pod("stuck", **{"dev.pilothouse.dev/pod": "pending"}), pod("after"))
    hub.kubectl("wait", "--for=condition=PodScheduled", "pod/stuck", "-n", namespace, WAIT)
    # What came later is done, so KWOK has seen this one too and left it alone.
    hub.kubectl(
        "wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/after", "-n", namespace, WAIT
    )
    phase = hub.kubectl("get", "pod", "stuck", "-n", namespace, "-o", "jsonpath={.status.phase}")
    assert phase == "Pending"


def test_a_claim_gets_a_volume(hub: DevCluster, namespace: str) -> None:
    claim: dict[str, object] = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    user = pod("user")
    user["spec"] = {
        "containers": [
            {"name": "main", "image": "none", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}
        ],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    }
    apply(hub, namespace, claim, user)
    hub.kubectl("wait", "--for=condition=Ready", "pod/user", "-n", namespace, WAIT)
    volume = hub.kubectl("get", "pvc", "data", "-n", namespace, "-o", "jsonpath={.spec.volumeName}")
    hub.kubectl("delete", "pod/user", "pvc/data", "-n", namespace, WAIT)
    hub.kubectl("wait", "--for=delete", f"pv/{volume}", WAIT)


def test_keys_are_private(hub: DevCluster) -> None:
    files = [hub.kubeconfig, *(hub.directory / "certificates").iterdir()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_clusters_are_strangers(hub: DevCluster, edge: DevCluster, tmp_path: Path) -> None:
    config = yaml.safe_load(hub.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = edge.server
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    wrong = dataclasses.replace(hub, kubeconfig=tmp_path / "kubeconfig")
    assert "certificate signed by unknown authority" in wrong.kubectl("get", "nodes", check=False)


def test_both_helms_talk_to_it(
    hub: DevCluster, namespace: str, tmp_path: Path, helm3: Helm, helm4: Helm
) -> None:
    assert helm4(hub, "version", "--short").startswith("v4.")
    assert helm3(hub, "version", "--short").startswith("v3.")
    chart = tmp_path / "tiny"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: tiny\nversion: 1.0.0\n")
    (chart / "templates" / "map.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: tiny}\n"
    )
    helm3(hub, "install", "tiny", str(chart), "-n", namespace)
    assert "tiny-1.0.0" in helm4(hub, "list", "-n", namespace)
