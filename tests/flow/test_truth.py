"""What the conditions say is so, at once, and stays said until it is no longer so."""

import base64
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stage import Stage, conditions, eventually, history
from templates import deployment, hook

SERVICE = """\
apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}
spec:
  clusterIP: None
  selector: {app: {{ .Release.Name }}}
  ports: [{port: {{ .Values.port }}}]
"""


@contextmanager
def watching(stage: Stage, name: str, place: Path) -> Iterator[Any]:
    """Collect every state a Release passes through."""
    output = place / "seen.json"
    command = [
        *(stage.hub.kubectl_path, "--kubeconfig", stage.hub.kubeconfig),
        *("get", "release", name, "--watch", "-o", "json"),
    ]

    def states() -> list[dict[str, Any]]:
        decoder, text, found, at = json.JSONDecoder(), output.read_text(), [], 0
        while text[at:].strip():
            try:
                one, end = decoder.raw_decode(text[at:].lstrip())
            except ValueError:
                break  # the last one is still being written
            found.append(one)
            at = len(text) - len(text[at:].lstrip()) + end
        return found

    with output.open("wb") as written, subprocess.Popen(command, stdout=written) as process:
        eventually(states, what="the watch")
        try:
            yield states
        finally:
            process.terminate()


def test_ready_and_the_connection_secret_follow_an_upgrade_at_once(
    stage: Stage, hub, tmp_path, namespace
) -> None:
    """Unlike provider-helm: Ready."""
    stage.chart("prompt", {"pods.yaml": deployment(), "service.yaml": SERVICE})
    stage.release("quick", "prompt", namespace, {"pod": "running", "port": 80})
    detail = {
        "apiVersion": "v1",
        "kind": "Service",
        "name": "quick",
        "namespace": namespace,
        "fieldPath": "spec.ports[0].port",
        "toConnectionSecretKey": "port",
    }
    where = {"name": "quick-conn", "namespace": namespace}
    spec = {"connectionDetails": [detail], "writeConnectionSecretToRef": where}
    hub.kubectl("patch", "release", "quick", "--type=merge", "-p", json.dumps({"spec": spec}))
    stage.wait("quick", "Ready")
    with watching(stage, "quick", tmp_path) as states:
        values = {"spec": {"forProvider": {"values": {"port": 81}}}}
        hub.kubectl("patch", "release", "quick", "--type=merge", "-p", json.dumps(values))
        newest = stage.wait("quick", "Ready")["metadata"]["generation"]
        # Whoever sees Ready finds the secret as it is to be.
        port = hub.kubectl("get", "secret", "quick-conn", "-n", namespace, "-o", "json")
        assert base64.b64decode(json.loads(port)["data"]["port"]) == b"81"
        # The watch may be behind.
        seen = eventually(
            lambda: [one for one in states() if ready_for(one) == newest], what="Ready in the watch"
        )
    assert {one["status"]["atProvider"]["revision"] for one in seen} == {2}


def ready_for(release: dict[str, Any]) -> int:
    """The generation that a Release says is ready; 0 for none."""
    ready = conditions(release)["Ready"]
    return int(ready["observedGeneration"]) if ready["status"] == "True" else 0


def test_ready_is_false_for_a_new_spec_until_it_is_true(stage: Stage, hub, namespace) -> None:
    stage.chart("honest", {"pods.yaml": deployment(), "service.yaml": SERVICE})
    stage.release("truthful", "honest", namespace, {"pod": "running", "port": 80})
    stage.wait("truthful", "Ready")
    stage.release("truthful", "honest", namespace, {"pod": "pending", "port": 80})
    answer = hub.kubectl(
        "wait", "--for=condition=Ready", "release/truthful", "--timeout=2s", check=False
    )
    assert "timed out" in answer
    # Until the upgrade is made it is the upgrade that is told.
    eventually(
        lambda: "Deployment truthful" in conditions(stage.get("truthful"))["Ready"]["message"]
    )
    stage.wait("truthful", "Ready=False")
    stage.release("truthful", "honest", namespace, {"pod": "running", "port": 82})
    stage.wait("truthful", "Ready")
    port = hub.kubectl(
        *("get", "service", "truthful", "-n", namespace, "-o", "jsonpath={.spec.ports[0].port}")
    )
    assert port == "82"


def test_an_error_is_said_until_it_works(stage: Stage, hub, helm4, tmp_path, namespace) -> None:
    """Unlike provider-helm: Errors."""
    stage.chart("stubborn", {"hook.yaml": hook()})
    stage.release("woeful", "stubborn", namespace, {"pod": "failed"})
    message = stage.refused("woeful", "HookFailed")
    with watching(stage, "woeful", tmp_path) as states:
        hub.kubectl("label", "release", "woeful", "looked-at=yes")
        hub.kubectl("annotate", "release", "woeful", "crossplane.io/reconcile-requested-at=now")
        eventually(lambda: stage.get("woeful")["status"]["retries"] >= 2, what="a second try")
        said = [conditions(one)["Synced"] for one in states()]
        assert "True" not in {one["status"] for one in said}
        assert stage.refused("woeful", "HookFailed").split("-")[0] == message.split("-")[0]
        stage.release("woeful", "stubborn", namespace, {"pod": "succeeded"})
        stage.wait("woeful", "Ready")
        eventually(lambda: states()[-1]["status"].get("synced"), what="the end of the watch")
    reasons = {conditions(one)["Synced"]["reason"] for one in states()}
    assert reasons == {"HookFailed", "Reconciling", "ReconcileSuccess"}
    assert history(helm4, hub, namespace, "woeful")[-1]["status"] == "deployed"
