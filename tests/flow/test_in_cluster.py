"""The controller with nothing but what a pod has: an account's files and the API server's address."""

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


@pytest.fixture
def account(edge: DevCluster, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Lay out a ServiceAccount as a pod finds it; return the pod's environment."""
    binding = "clusterrolebinding/pilothouse-in-cluster"
    edge.kubectl("create", "namespace", NAMESPACE)
    edge.kubectl("create", "serviceaccount", "pilothouse", "-n", NAMESPACE)
    edge.kubectl(
        *("create", "clusterrolebinding", "pilothouse-in-cluster", "--clusterrole=cluster-admin"),
        f"--serviceaccount={NAMESPACE}:pilothouse",
    )
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
    edge.kubectl("delete", binding, f"namespace/{NAMESPACE}", "--wait=false")


def test_the_controller_needs_no_kubeconfig_in_a_pod(
    edge: DevCluster, repository, namespace, account: dict[str, str], tmp_path: Path
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
        stage.release("podded", "hello", namespace)
        stage.wait("podded", "Ready")
        lease = eventually(lambda: edge.kubectl("get", "leases", "-n", NAMESPACE, "-o", "name"))
        assert lease.startswith("lease.coordination.k8s.io/pilothouse")
        stage.delete("podded")
        edge.kubectl("delete", "providerconfigs.helm.crossplane.io", "default", "--timeout=60s")
    finally:
        assert controller.stop() == 0
