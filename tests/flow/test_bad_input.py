"""Whatever is wrong ends in one clear sentence, an Event, a backoff, and nothing the next pass can't finish."""

import contextlib
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from stage import Stage, conditions, eventually, history

LOOK_AGAIN = "crossplane.io/reconcile-requested-at=now"
CONFIG = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
"""


def assert_told(stage: Stage, name: str, message: str) -> None:
    """The sentence is in an Event too, a retry is planned, and no retry storm is under way."""
    assert "\n" not in message
    eventually(
        lambda: [
            event
            for event in stage.events(name)
            if event["type"] == "Warning" and event["message"] == message
        ],
        what=f"a Warning that says {message}",
    )
    # None is planned while one is under way.
    eventually(lambda: stage.get(name)["status"].get("nextAttempt"), what="a next attempt")
    release = stage.get(name)
    assert release["status"]["retries"] >= 1
    assert conditions(release)["Ready"]["status"] == "False"


def assert_first_revision(helm: Callable[..., str], hub, namespace: str, name: str) -> None:
    """What went wrong before has left no revision."""
    found = [(one["revision"], one["status"]) for one in history(helm, hub, namespace, name)]
    assert found == [(1, "deployed")]


def test_an_unknown_chart_that_comes_later(stage: Stage, hub, helm4, namespace) -> None:
    stage.release("no-chart", "nonesuch", namespace)
    message = stage.refused("no-chart", "ChartNotFound")
    assert "nonesuch" in message
    assert_told(stage, "no-chart", message)
    stage.chart("nonesuch", {"config.yaml": CONFIG})
    stage.wait("no-chart", "Ready")
    assert_first_revision(helm4, hub, namespace, "no-chart")


def test_a_wrong_version(stage: Stage, namespace) -> None:
    stage.release("no-version", "hello", namespace, version="9.9.9")
    message = stage.refused("no-version", "ChartNotFound")
    assert "9.9.9" in message
    assert "1.1.0" in message, "the newest version there is helps"
    assert_told(stage, "no-version", message)
    stage.release("no-version", "hello", namespace)
    stage.wait("no-version", "Ready")


def test_a_repository_that_is_down_comes_up(stage: Stage, hub, helm4, namespace) -> None:
    with closed_repository(stage.repository.directory) as (url, open_it):
        stage.release("no-repository", "hello", namespace, repository=url)
        message = stage.refused("no-repository", "ChartUnavailable")
        assert url in message
        assert_told(stage, "no-repository", message)
        open_it()
        hub.kubectl("annotate", "release", "no-repository", LOOK_AGAIN)
        stage.wait("no-repository", "Ready")
    assert_first_revision(helm4, hub, namespace, "no-repository")


@contextlib.contextmanager
def closed_repository(directory: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """A repository at a port that nobody else can take; it refuses everybody until it is opened."""
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(directory))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler, False) as server:
        server.daemon_threads = True
        server.server_bind()
        serving = threading.Thread(target=server.serve_forever, daemon=True)

        def open_it() -> None:
            server.server_activate()
            serving.start()

        yield f"http://127.0.0.1:{server.server_port}", open_it
        if serving.ident:
            server.shutdown()


def test_a_template_error_names_file_and_line(stage: Stage, hub, helm4, namespace) -> None:
    broken = "kind: ConfigMap\nmetadata:\n  name: x\ndata: {{ .Values.missing.deep }}\n"
    stage.chart("broken", {"broken.yaml": broken})
    stage.release("bad-template", "broken", namespace)
    message = stage.refused("bad-template", "RenderFailed")
    assert "templates/broken.yaml:4" in message
    assert_told(stage, "bad-template", message)
    assert json.loads(helm4(hub, "list", "-n", namespace, "-o", "json")) == []
    (stage.charts / "broken" / "templates" / "broken.yaml").write_text(CONFIG)
    stage.repository.add(stage.charts / "broken", version="1.0.1")
    stage.release("bad-template", "broken", namespace, version="1.0.1")
    stage.wait("bad-template", "Ready")
    assert_first_revision(helm4, hub, namespace, "bad-template")


def test_values_against_the_schema(stage: Stage, hub, helm4, namespace) -> None:
    stage.release("bad-values", "hello", namespace, {"replicas": "many"})
    message = stage.refused("bad-values", "InvalidValues")
    assert "replicas" in message
    assert_told(stage, "bad-values", message)
    assert json.loads(helm4(hub, "list", "-n", namespace, "-o", "json")) == []
    stage.release("bad-values", "hello", namespace, {"replicas": 1})
    stage.wait("bad-values", "Ready")


REJECTED = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-first
---
apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}
spec:
  ports: [{port: {{ .Values.port }}}]
"""


def test_an_object_the_server_rejects(stage: Stage, hub, helm4, namespace) -> None:
    stage.chart("rejected", {"all.yaml": REJECTED})
    stage.release("bad-object", "rejected", namespace, {"port": 99999})
    message = stage.refused("bad-object", "ObjectRejected")
    assert "Service" in message
    assert "99999" in message
    assert_told(stage, "bad-object", message)
    revisions = len(history(helm4, hub, namespace, "bad-object"))
    # A retry asks the server first, so what is refused again makes no new revision.
    eventually(lambda: stage.get("bad-object")["status"]["retries"] >= 2)
    assert len(history(helm4, hub, namespace, "bad-object")) == revisions
    stage.release("bad-object", "rejected", namespace, {"port": 80})
    stage.wait("bad-object", "Ready")


def test_a_terminating_namespace(stage: Stage, hub) -> None:
    name = "held-by-a-finalizer"
    hub.kubectl("create", "namespace", name)
    held = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "held", "namespace": name, "finalizers": ["example.com/hold"]},
    }
    hub.kubectl("apply", "-f", "-", input=json.dumps(held))
    hub.kubectl("delete", "namespace", name, "--wait=false")
    stage.release("no-home", "hello", name)
    message = stage.refused("no-home", "NamespaceTerminating")
    assert name in message
    assert_told(stage, "no-home", message)
    release = '{"metadata":{"finalizers":null}}'
    hub.kubectl("patch", "cm", "held", "-n", name, "--type=merge", "-p", release)
    stage.wait("no-home", "Ready", seconds=90)


def test_a_kubeconfig_that_is_garbage(stage: Stage, edge, namespace) -> None:
    stage.config("garbage", b"\x00 certainly: [not a kubeconfig, password: hunter2")
    stage.release("no-way", "hello", namespace, config="garbage")
    message = stage.refused("no-way", "InvalidInput")
    assert 'ProviderConfig "garbage"' in message
    assert "hunter2" not in message
    assert_told(stage, "no-way", message)
    stage.config("garbage", edge.kubeconfig.read_bytes())
    stage.wait("no-way", "Ready")
    stage.delete("no-way")


def test_a_kubeconfig_that_wants_to_run_a_program(stage: Stage, namespace) -> None:
    hostile = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, interactiveMode: Never}}}]
"""
    stage.config("hostile", hostile.encode())
    stage.release("no-shell", "hello", namespace, config="hostile")
    assert "exec" in stage.refused("no-shell", "InvalidInput")


def test_a_bad_field_is_named(stage: Stage, hub, namespace) -> None:
    """What the schema cannot say: an annotation is only text to it."""
    poll = {"crossplane.io/poll-interval": "soon"}
    stage.release("bad-field", "hello", namespace, annotations=poll)
    assert "crossplane.io/poll-interval" in stage.refused("bad-field", "InvalidInput")
    hub.kubectl("annotate", "release", "bad-field", "crossplane.io/poll-interval-")
    stage.wait("bad-field", "Ready")


@pytest.mark.parametrize(
    ("name", "repository", "said"),
    [
        ("metadata", "http://169.254.169.254/charts", "169.254.169.254:80 is refused"),
        ("registry", "oci://169.254.169.254/charts", "169.254.169.254:443 is refused"),
        ("loopback", "http://127.0.0.2:9/charts", "allow it with --egress-allow 127.0.0.2:9"),
    ],
)
def test_a_repository_where_users_may_not_go(
    stage: Stage, namespace, name: str, repository: str, said: str
) -> None:
    stage.release(f"no-{name}", "hello", namespace, repository=repository)
    message = stage.refused(f"no-{name}", "InvalidInput")
    assert said in message
    assert_told(stage, f"no-{name}", message)


def test_a_cluster_where_users_may_not_go(stage: Stage, namespace, edge) -> None:
    text = edge.kubeconfig.read_text().replace(edge.server, "https://169.254.169.254")
    stage.config("metadata", text.encode())
    stage.release("no-cluster", "hello", namespace, config="metadata")
    message = stage.refused("no-cluster", "InvalidInput")
    assert "169.254.169.254:443 is refused" in message
    stage.config("metadata", edge.kubeconfig.read_bytes())
    stage.wait("no-cluster", "Ready")
    stage.delete("no-cluster")
