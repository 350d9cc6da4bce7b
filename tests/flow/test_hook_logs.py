"""What a failed hook said outlives it."""

import json
import sqlite3
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest
from stage import Stage

JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}
  annotations:
    helm.sh/hook: pre-install
    helm.sh/hook-delete-policy: hook-failed
spec:
  backoffLimit: 0
  template:
    metadata:
      annotations: {dev.pilothouse.dev/pod: failed}
    spec:
      restartPolicy: Never
      nodeSelector: {kubernetes.io/hostname: {{ .Values.node }}}
      containers: [{name: main, image: registry.example/none}]
"""
SECRET = "correct-horse-battery"  # noqa: S105 - it is to be hidden


class Kubelet(BaseHTTPRequestHandler):
    """Answers the API server as a node does that is asked for a container's log."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        Kubelet.asked.append(self.path)
        lines = "".join(f"step {number}\n" for number in range(30))
        body = f"{lines}logging in with {SECRET}\nno such table\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def node(hub, namespace) -> Iterator[str]:
    """A node that has logs: KWOK's own nodes have none."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Kubelet)
    # The API server does not check a node's certificate, so any will do.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pair = [hub.directory / "certificates" / f"kube-apiserver.{one}" for one in ("crt", "key")]
    context.load_cert_chain(*pair)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    name = f"talks-{namespace}"
    manifest = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
    }
    status = {
        "addresses": [{"type": one, "address": "127.0.0.1"} for one in ("InternalIP", "Hostname")],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": server.server_port}},
    }
    hub.kubectl("apply", "-f", "-", input=json.dumps(manifest))
    hub.kubectl("wait", "--for=condition=Ready", f"node/{name}", "--timeout=30s")
    hub.kubectl(
        *("patch", "node", name, "--subresource=status", "--type=merge"),
        *("-p", json.dumps({"status": status})),
    )
    yield name
    hub.kubectl("delete", "node", name)
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_end_of_a_hooks_log_outlives_the_hook(stage: Stage, hub, namespace, node) -> None:
    hub.kubectl(
        *("create", "secret", "generic", "password", "-n", namespace),
        f"--from-literal=values.yaml=password: {SECRET}",
    )
    stage.chart("migrates", {"hook.yaml": JOB})
    secret = {"name": "password", "namespace": namespace, "key": "values.yaml"}
    stage.release(
        *("migrator", "migrates", namespace, {"node": node}),
        valuesFrom=[{"secretKeyRef": secret}],
        waitTimeout="60s",
    )
    message = stage.refused("migrator", "HookFailed")
    assert message.endswith("its log ends: step 29 ⏎ logging in with *** ⏎ no such table")
    assert "tailLines=20" in Kubelet.asked[0]
    assert "/main" in Kubelet.asked[0]
    assert hub.kubectl("get", "jobs", "-n", namespace, "-o", "name") == "", "its policy removed it"
    with closing(sqlite3.connect(stage.controller.directory / "archive.db")) as archive:
        query = "SELECT logs FROM entry WHERE helm_release = ?"
        (kept,) = archive.execute(query, (f"{namespace}/migrator",)).fetchone()
    assert kept.startswith("Job migrator:\nstep 12\n"), "twenty lines are kept"
    assert kept.endswith("no such table")
    assert SECRET not in kept
