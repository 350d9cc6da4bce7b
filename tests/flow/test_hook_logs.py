"""What a failed hook said outlives it; tests are hooks too."""

import json
import sqlite3
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest
from stage import Stage, conditions, eventually

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
FIRST = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-first
  annotations:
    helm.sh/hook: pre-install,pre-upgrade,post-upgrade
    helm.sh/hook-weight: "-1"
"""
PLAIN = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data:
  pod: {{ .Values.pod | quote }}
"""
TESTS = """\
{{- range $number, $name := list "one" "two" "three" }}
---
apiVersion: v1
kind: Pod
metadata:
  name: {{ $.Release.Name }}-{{ $name }}
  annotations:
    helm.sh/hook: test
    helm.sh/hook-weight: "{{ $number }}"
    helm.sh/hook-delete-policy: before-hook-creation,hook-failed
    dev.pilothouse.dev/pod: "{{ if eq $number 1 }}{{ $.Values.pod }}{{ end }}"
spec:
  restartPolicy: Never
  nodeSelector: {kubernetes.io/hostname: {{ $.Values.node }}}
  containers: [{name: main, image: registry.example/none}]
{{- end }}
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
    stage.chart("migrates", {"first.yaml": FIRST, "hook.yaml": JOB})
    secret = {"name": "password", "namespace": namespace, "key": "values.yaml"}

    def migrate(attempt: int) -> None:
        stage.release(
            *("migrator", "migrates", namespace, {"node": node, "attempt": attempt}),
            valuesFrom=[{"secretKeyRef": secret}],
            waitTimeout="60s",
        )

    migrate(1)
    message = stage.refused("migrator", "HookFailed")
    assert message.endswith("its log ends: step 29 ⏎ logging in with *** ⏎ no such table")
    assert "tailLines=20" in Kubelet.asked[0]
    assert "/main" in Kubelet.asked[0]
    assert hub.kubectl("get", "jobs", "-n", namespace, "-o", "name") == "", "its policy removed it"
    kept = archived(stage, f"{namespace}/migrator")
    assert kept.startswith("Job migrator:\nstep 12\n"), "twenty lines are kept"
    assert kept.endswith("no such table")
    assert SECRET not in kept
    failed, passed = stage.get("migrator")["status"]["hooks"]
    assert (failed["kind"], failed["name"], failed["phase"]) == ("Job", "migrator", "Failed")
    assert failed["events"] == ["pre-install"]
    assert failed["log"] == kept.removeprefix("Job migrator:\n")
    assert passed["started"] <= passed["finished"] <= failed["started"] <= failed["finished"]
    assert (passed["kind"], passed["phase"], "log" in passed) == ("ConfigMap", "Succeeded", False)
    # The Job is for installs only.
    migrate(2)
    stage.wait("migrator", "Ready")
    (passed,) = stage.get("migrator")["status"]["hooks"]
    assert (passed["name"], passed["phase"]) == ("migrator-first", "Succeeded")
    assert passed["events"] == ["pre-upgrade", "post-upgrade"]


def test_a_deletion_tells_nothing_of_a_secret(stage: Stage, hub, namespace, node) -> None:
    """Not even one that a controller finds when it starts."""
    hub.kubectl(
        *("create", "secret", "generic", "password", "-n", namespace),
        f"--from-literal=values.yaml=password: {SECRET}",
    )
    hook = JOB.replace("pre-install", "pre-delete")
    stage.chart("clings", {"cm.yaml": PLAIN, "hook.yaml": hook})
    secret = {"name": "password", "namespace": namespace, "key": "values.yaml"}
    stage.release(
        *("clinger", "clings", namespace, {"node": node, "pod": ""}),
        # What is missing by then holds nothing up.
        valuesFrom=[{"configMapKeyRef": secret | {"optional": True}}, {"secretKeyRef": secret}],
        waitTimeout="60s",
    )
    stage.wait("clinger", "Ready")
    stage.controller.stop()
    hub.kubectl("delete", "release", "clinger", "--wait=false")
    stage.controller.start()
    (message, *_) = stage.told("clinger", "CannotDeleteExternalResource")
    assert message.endswith("its log ends: step 29 ⏎ logging in with *** ⏎ no such table")
    assert not stage.leaks("clinger", SECRET)
    hub.kubectl("annotate", "release", "clinger", "pilothouse.dev/abandon=true")
    hub.kubectl("wait", "--for=delete", "release/clinger", "--timeout=60s")
    stage.applied.remove("clinger")
    assert "no such table" in archived(stage, f"{namespace}/clinger")


def archived(stage: Stage, helm_release: str) -> str:
    with closing(sqlite3.connect(stage.controller.directory / "archive.db")) as archive:
        query = "SELECT logs FROM entry WHERE helm_release = ? AND logs != ''"
        (kept,) = archive.execute(query, (helm_release,)).fetchone()
    return str(kept)


def test_a_charts_tests_run_when_asked_for(stage: Stage, hub, namespace, node) -> None:
    hub.kubectl(
        *("create", "secret", "generic", "password", "-n", namespace),
        f"--from-literal=values.yaml=password: {SECRET}",
    )
    stage.chart("examined", {"cm.yaml": PLAIN, "tests.yaml": TESTS})
    secret = {"name": "password", "namespace": namespace, "key": "values.yaml"}

    def ask(pod: str, when: str) -> None:
        stage.release(
            *("pupil", "examined", namespace, {"node": node, "pod": pod}),
            annotations={"pilothouse.dev/test-requested-at": when},
            valuesFrom=[{"secretKeyRef": secret}],
            waitTimeout="60s",
        )

    def told(when: str, phase: str) -> dict[str, Any]:
        def look() -> dict[str, Any]:
            test = stage.get("pupil").get("status", {}).get("test", {})
            return test if (test.get("requestedAt"), test.get("phase")) == (when, phase) else {}

        return eventually(look, what=f"{phase} for {when}: {stage.get('pupil').get('status')}")

    ask("failed", "first")
    test = told("first", "Failed")
    assert test["revision"] == 1
    assert test["message"].endswith("its log ends: step 29 ⏎ logging in with *** ⏎ no such table")
    assert [(one["name"], one["phase"]) for one in test["results"]] == [
        ("Pod pupil-one", "Succeeded"),
        ("Pod pupil-two", "Failed"),
        ("Pod pupil-three", "NotRun"),
    ]
    said = conditions(stage.get("pupil"))
    assert (said["Ready"]["status"], said["Synced"]["status"]) == ("True", "True")
    # Tests that never end are ended by a newer spec, and begin anew when that is deployed.
    ask("running", "second")
    told("second", "Running")
    ask("", "second")
    test = told("second", "Succeeded")
    assert (test["revision"], test["message"]) == (3, "3 tests passed")
    # One result for each request, however often the release is looked at.
    hub.kubectl("annotate", "release", "pupil", "crossplane.io/reconcile-requested-at=now")
    eventually(lambda: stage.get("pupil")["status"].get("lastHandledReconcileAt") == "now")

    def told_of_tests() -> list[str]:
        reasons = (one["reason"] for one in stage.events("pupil"))
        return sorted(one for one in reasons if one.startswith("Tests"))

    eventually(lambda: told_of_tests() == ["TestsFailed", "TestsSucceeded"], what="one Event each")
    with closing(sqlite3.connect(stage.controller.directory / "archive.db")) as archive:
        query = "SELECT logs FROM entry WHERE helm_release = ? AND action = 'RunTests'"
        logs = [row[0] for row in archive.execute(query, (f"{namespace}/pupil",))]
    assert len(logs) == 2
    assert logs[0].startswith("Pod pupil-two:\nstep 12\n")
    assert SECRET not in logs[0]
