"""A Release on another cluster than the one it is written on."""

import contextlib
import json
import re
import socket
import threading
from collections.abc import Iterator

from stage import Stage, conditions, eventually, history, secret_config


class Road:
    """The way to a cluster, which can be cut and mended."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._cut = False
        threading.Thread(target=self._accept, name="road", daemon=True).start()

    def cut(self) -> None:
        self._cut = True
        for one in list(self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        self._cut = False

    def close(self) -> None:
        self.cut()
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                here, _ = self._listener.accept()
                if self._cut:
                    here.close()
                    continue
                there = socket.create_connection(("127.0.0.1", self._to))
                for one, other in ((here, there), (there, here)):
                    self._open.add(one)
                    pair = (one, other)
                    threading.Thread(target=self._carry, args=pair, daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
        with contextlib.suppress(OSError):
            other.shutdown(socket.SHUT_RDWR)
        self._open.discard(one)
        one.close()


@contextlib.contextmanager
def road_to(server: str) -> Iterator[Road]:
    road = Road(int(server.rsplit(":", 1)[1]))
    try:
        yield road
    finally:
        road.close()


def test_a_secret_kubeconfig_leads_to_another_cluster(stage: Stage, hub, edge, helm4) -> None:
    stage.config("edge", edge.kubeconfig.read_bytes())
    stage.release("far", "hello", "far-away", {"message": "over there"}, config="edge")
    stage.wait("far", "Ready")
    assert helm4(edge, "list", "-n", "far-away", "-q").split() == ["far"]
    assert "NotFound" in hub.kubectl("get", "namespace", "far-away", check=False)
    stage.delete("far")
    assert helm4(edge, "list", "-n", "far-away", "-q") == ""


def test_a_cluster_may_come_after_its_release(stage: Stage, hub, edge) -> None:
    stage.release("early", "hello", "early", config="later")
    assert 'ProviderConfig "later" not found' in stage.refused("early", "NotFound")
    # So often that the next attempt by itself would be a minute away.
    for number in range(2, 5):
        request = f"crossplane.io/reconcile-requested-at={number}"
        hub.kubectl("annotate", "release", "early", "--overwrite", request)
        eventually(lambda number=number: stage.get("early")["status"]["retries"] == number)
    hub.kubectl("apply", "-f", "-", input=json.dumps(secret_config("later")))
    stage.config("later", edge.kubeconfig.read_bytes())
    stage.wait("early", "Ready", seconds=30)
    stage.delete("early")


def test_a_cluster_goes_away_and_comes_back(stage: Stage, hub, edge, helm4, namespace) -> None:
    with road_to(edge.server) as road:
        kubeconfig = edge.kubeconfig.read_text()
        detour = re.sub(r"https://127\.0\.0\.1:\d+", f"https://127.0.0.1:{road.port}", kubeconfig)
        stage.config("flaky", detour.encode())
        stage.release("patient", "hello", "patience", {"message": "before"}, config="flaky")
        stage.wait("patient", "Ready")
        road.cut()
        said = stage.refused("patient", "ClusterUnreachable")
        assert str(road.port) in said
        stage.release("patient", "hello", "patience", {"message": "meanwhile"}, config="flaky")
        stage.release("elsewhere", "hello", namespace)
        stage.wait("elsewhere", "Ready", seconds=20)
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
        "--timeout=30s",
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
