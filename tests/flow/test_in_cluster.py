"""The controller with nothing but what a pod has: an account's files, its rights and the API server's address."""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from road import Road, road_to
from stage import INJECTED, ControllerProcess, Stage, await_crds, eventually

from pilothouse.dev.charts import Repository
from pilothouse.dev.cluster import DevCluster
from pilothouse.dev.pytest_plugin import Helm

NAMESPACE = "pilothouse-system"
VARIABLE = "KUBECONFIG_OF_THE_OTHER_CLUSTER"
NOISE = 200_000
REVISIONS = 5
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n"
RIGHTS = Path(__file__).resolve().parents[2] / "examples" / "rights.yaml"


@pytest.fixture(scope="module")
def road(edge: DevCluster) -> Iterator[Road]:
    """The pod's only way to its API server; what others do there is not on it."""
    with road_to(edge.server) as made:
        yield made


@pytest.fixture(scope="module")
def account(
    edge: DevCluster, road: Road, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
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
    place = tmp_path_factory.mktemp("serviceaccount")
    (place / "token").write_text(edge.kubectl("create", "token", "pilothouse", "-n", NAMESPACE))
    edge.kubectl(
        *("wait", "--for=create", "cm/kube-root-ca.crt", "-n", NAMESPACE, "--timeout=60s"),
    )
    authority = edge.kubectl("get", "cm", "kube-root-ca.crt", "-n", NAMESPACE, "-o", "json")
    (place / "ca.crt").write_text(json.loads(authority)["data"]["ca.crt"])
    (place / "namespace").write_text(NAMESPACE)
    yield {
        "PILOTHOUSE_SERVICE_ACCOUNT": str(place),
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": str(road.port),
    }
    for kind in ("clusterrolebinding", "clusterrole"):
        edge.kubectl("delete", kind, "pilothouse", "what-hello-needs")
    edge.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


@pytest.fixture(scope="module")
def pod(
    hub: DevCluster,
    edge: DevCluster,
    account: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ControllerProcess]:
    """The controller in it; a variable of it has the kubeconfig of another cluster."""
    place = tmp_path_factory.mktemp("pod")
    controller = ControllerProcess(edge, place)
    variable = {VARIABLE: hub.kubeconfig.read_text()}
    with controller.log.open("ab") as log:
        controller.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "pilothouse", "controller", "--verbose"),
                *("--archive", str(place / "archive.db")),
                *("--egress-allow", "127.0.0.1:*"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **account, **variable},
        )
    try:
        await_crds(edge, controller)
        edge.kubectl("apply", "-f", "-", input=json.dumps(INJECTED))
        yield controller
    finally:
        edge.kubectl("delete", "providerconfigs.helm.crossplane.io", "--all", "--timeout=60s")
        assert controller.stop() == 0
    assert "forbidden" not in controller.log.read_text().lower()


@pytest.fixture
def inside(
    edge: DevCluster, repository: Repository, pod: ControllerProcess, tmp_path: Path
) -> Iterator[Stage]:
    stage = Stage(edge, repository, pod, tmp_path)
    yield stage
    for name in stage.applied:
        edge.kubectl("delete", "release", name, "--timeout=60s", check=False)


def test_the_controller_needs_no_kubeconfig_in_a_pod(inside: Stage, edge: DevCluster) -> None:
    inside.release("podded", "hello", NAMESPACE)
    inside.wait("podded", "Ready")
    assert inside.told("podded", "CreatedExternalResource")
    lease = eventually(lambda: edge.kubectl("get", "leases", "-n", NAMESPACE, "-o", "name"))
    assert lease.startswith("lease.coordination.k8s.io/pilothouse")
    other = {**INJECTED, "metadata": {"name": "second"}}
    edge.kubectl("apply", "-f", "-", input=json.dumps(other))
    inside.release("podded", "hello", NAMESPACE, {"message": "again"}, config="second")
    assert inside.told("podded", "UpdatedExternalResource")
    uid = inside.get("podded")["metadata"]["uid"]
    usage = inside.read(f"/apis/helm.crossplane.io/v1beta1/providerconfigusages/{uid}")
    assert usage["providerConfigRef"]["name"] == "second"
    inside.applied.remove("podded")
    inside.delete("podded")


def test_a_variable_leads_to_another_cluster(
    inside: Stage, hub: DevCluster, edge: DevCluster, namespace: str, helm4: Helm
) -> None:
    config = {
        **INJECTED,
        "metadata": {"name": "variable"},
        "spec": {"credentials": {"source": "Environment", "env": {"name": VARIABLE}}},
    }
    edge.kubectl("apply", "-f", "-", input=json.dumps(config))
    inside.release("varied", "hello", namespace, config="variable")
    inside.wait("varied", "Ready")
    assert helm4(hub, "list", "-n", namespace, "-q").split() == ["varied"]
    assert "NotFound" in edge.kubectl("get", "namespace", namespace, check=False)
    inside.delete("varied")
    assert helm4(hub, "list", "-n", namespace, "-q") == ""


def test_a_look_costs_next_to_nothing(
    inside: Stage, edge: DevCluster, road: Road, helm4: Helm
) -> None:
    """Neither a history nor what others keep is read, and no connection is made anew.

    Unlike provider-helm: Looks, Memory.
    """
    chart = inside.chart("bulky", {"cm.yaml": CONFIG_MAP}, noise_dot_txt=noise())
    source = (chart, "--repo", inside.repository.url, "-n", NAMESPACE)
    helm4(edge, "install", "heavy", *source, "--set", "number=1")
    for number in range(2, REVISIONS + 1):
        helm4(edge, "upgrade", "heavy", *source, "--set", f"number={number}")
    newest = f"/api/v1/namespaces/{NAMESPACE}/secrets/sh.helm.release.v1.heavy.v{REVISIONS}"
    record = len(inside.read(newest)["data"]["release"])
    before = road.heard
    inside.release("heavy", chart, NAMESPACE, {"number": REVISIONS})
    inside.wait("heavy", "Ready")
    for kind, field in (("Secret", "stringData"), ("ConfigMap", "data")):
        metadata = {"name": "of-others", "namespace": NAMESPACE}
        other = {"apiVersion": "v1", "kind": kind, "metadata": metadata, field: {"it": noise()}}
        edge.kubectl("create", "-f", "-", input=json.dumps(other))
    inside.look_again("heavy")
    # To adopt it the newest record was read, for what it says and for what it says of the objects, and marked.
    assert road.heard - before < 4 * record
    heard, journeys = road.heard, road.journeys
    inside.look_again("heavy")
    assert road.heard - heard < record // 4
    assert road.journeys == journeys
    assert inside.get("heavy")["status"]["atProvider"]["revision"] == REVISIONS
    inside.delete("heavy")


def noise() -> str:
    """Text that no compression makes shorter than NOISE bytes."""
    return base64.b64encode(os.urandom(NOISE)).decode()
