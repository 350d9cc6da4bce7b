"""The controller with nothing but what a pod has: an account's files, its rights and the API server's address."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from stage import INJECTED, ControllerProcess, Stage, await_crds, eventually

from pilothouse.dev.cluster import DevCluster

NAMESPACE = "pilothouse-system"
RIGHTS = Path(__file__).resolve().parents[2] / "examples" / "rights.yaml"


@pytest.fixture
def account(edge: DevCluster, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Lay out a ServiceAccount as a pod finds it; return the pod's environment."""
    edge.kubectl("create", "namespace", NAMESPACE)
    edge.kubectl("create", "serviceaccount", "pilothouse", "-n", NAMESPACE)
    edge.kubectl("apply", "-f", str(RIGHTS))
    edge.kubectl(
        *("create", "clusterrole", "what-hello-needs", "--verb=*"),
        "--resource=configmaps,secrets,services,serviceaccounts,deployments.apps,replicasets.apps,pods",
    )
    to = f"--serviceaccount={NAMESPACE}:pilothouse"
    for role in ("pilothouse", "what-hello-needs"):
        edge.kubectl("create", "clusterrolebinding", role, f"--clusterrole={role}", to)
    edge.kubectl("create", "rolebinding", "pilothouse", "--role=pilothouse", "-n", NAMESPACE, to)
    place = tmp_path / "serviceaccount"
    place.mkdir()
    (place / "token").write_text(edge.kubectl("create", "token", "pilothouse", "-n", NAMESPACE))
    authority = edge.kubectl("get", "cm", "kube-root-ca.crt", "-n", NAMESPACE, "-o", "json")
    (place / "ca.crt").write_text(json.loads(authority)["data"]["ca.crt"])
    (place / "namespace").write_text(NAMESPACE)
    config = yaml.safe_load(edge.kubeconfig.read_text())
    server = urlsplit(config["clusters"][0]["cluster"]["server"])
    yield {
        "PILOTHOUSE_SERVICE_ACCOUNT": str(place),
        "KUBERNETES_SERVICE_HOST": str(server.hostname),
        "KUBERNETES_SERVICE_PORT": str(server.port),
    }
    for kind in ("clusterrolebinding", "clusterrole"):
        edge.kubectl("delete", kind, "pilothouse", "what-hello-needs")
    edge.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def test_the_controller_needs_no_kubeconfig_in_a_pod(
    edge: DevCluster, repository, account: dict[str, str], tmp_path: Path
) -> None:
    controller = ControllerProcess(edge, tmp_path)
    with controller.log.open("ab") as log:
        controller.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "pilothouse", "controller", "--verbose"),
                *("--archive", str(tmp_path / "archive.db")),
                *("--egress-allow", "127.0.0.1:*"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **account},
        )
    try:
        await_crds(edge, controller)
        edge.kubectl("apply", "-f", "-", input=json.dumps(INJECTED))
        stage = Stage(edge, repository, controller, tmp_path)
        stage.release("podded", "hello", NAMESPACE)
        stage.wait("podded", "Ready")
        assert stage.told("podded", "CreatedExternalResource")
        lease = eventually(lambda: edge.kubectl("get", "leases", "-n", NAMESPACE, "-o", "name"))
        assert lease.startswith("lease.coordination.k8s.io/pilothouse")
        other = {**INJECTED, "metadata": {"name": "second"}}
        edge.kubectl("apply", "-f", "-", input=json.dumps(other))
        stage.release("podded", "hello", NAMESPACE, {"message": "again"}, config="second")
        assert stage.told("podded", "UpdatedExternalResource")
        uid = stage.get("podded")["metadata"]["uid"]
        usage = stage.read(f"/apis/helm.crossplane.io/v1beta1/providerconfigusages/{uid}")
        assert usage["providerConfigRef"]["name"] == "second"
        stage.applied.remove("podded")
        stage.delete("podded")
        configs = ("default", "second")
        edge.kubectl("delete", "providerconfigs.helm.crossplane.io", *configs, "--timeout=60s")
    finally:
        assert controller.stop() == 0
    assert "forbidden" not in controller.log.read_text().lower()
