"""`pilothouse demo`, which is `make run`, on a cluster of the user's own."""

import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pilothouse.dev.cluster import DevCluster

OF_THE_USER = {
    "apiVersion": "helm.crossplane.io/v1beta1",
    "kind": "ProviderConfig",
    "metadata": {"name": "pilothouse-demo"},
    "spec": {"credentials": {"source": "InjectedIdentity"}},
}
CONFIGS = "providerconfigs.helm.crossplane.io"
LABEL = {"app.kubernetes.io/part-of": "pilothouse-demo"}
PATIENCE_SECONDS = 60
# As an earlier example may have left it, and nothing starts in it.
FULL = [
    {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "pilothouse-demo", "labels": LABEL},
    },
    {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "nothing", "namespace": "pilothouse-demo"},
        "spec": {"hard": {"pods": "0"}},
    },
]


@contextmanager
def demo_on(cluster: DevCluster, *options: str) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [sys.executable, "-m", "pilothouse", "demo", "--hub", str(cluster.kubeconfig), *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        start_new_session=True,
    ) as demo:
        yield demo


def until_said(demo: "subprocess.Popen[str]", words: str) -> str:
    assert demo.stdout
    seen = ""
    for line in demo.stdout:
        seen += line
        if words in line:
            return seen
    pytest.fail(f"{words!r} was never said: {seen}")


@contextmanager
def children_of(demo: "subprocess.Popen[str]") -> Iterator[dict[str, int]]:
    """Descriptors of the controller and the other cluster, by which their end is seen."""
    pids = Path(f"/proc/{demo.pid}/task/{demo.pid}/children").read_text().split()
    commands = {pid: Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") for pid in pids}
    found = {
        role: os.pidfd_open(int(pid))
        for pid, command in commands.items()
        for role in ("controller", "up")
        if role.encode() in command
    }
    yield found
    for descriptor in found.values():
        os.close(descriptor)


def kill_one_that_never_gets_ready(edge: DevCluster) -> None:
    for one in FULL:
        edge.kubectl("apply", "-f", "-", input=json.dumps(one))
    with demo_on(edge, "--ready-within", "10s") as demo:
        seen = until_said(demo, "Ctrl-C stops everything")
        named = re.search(r"release demo-hub is not ready after 10 s: (.+)", seen)
        assert named, seen
        assert f"release demo-hub: {named[1]}\n" in seen  # what its condition says, as before
        assert "Not all of the three Releases run yet" in seen
        assert "Traceback" not in seen
        with children_of(demo) as children:
            assert set(children) == {"controller", "up"}
            demo.kill()
            for role, descriptor in children.items():
                assert select.select([descriptor], [], [], PATIENCE_SECONDS)[0], f"{role} goes on"
    edge.kubectl("delete", "quota", "nothing", "-n", "pilothouse-demo")


def test_it_takes_out_what_it_brought_and_overwrites_nothing(
    edge: DevCluster, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A killed program leaves its files; this place has a name that is short enough for sockets.
    monkeypatch.setenv("TMPDIR", str(tmp_path_factory.mktemp("demo")))
    kill_one_that_never_gets_ready(edge)
    # The next one starts from what that left, and takes it out with its own.
    with demo_on(edge) as demo:
        seen = until_said(demo, "Ctrl-C stops everything")
        os.killpg(demo.pid, signal.SIGINT)  # as a terminal does
        seen += demo.communicate()[0]
        assert demo.returncode == 0, seen
    assert "release demo-edge: ready" in seen
    assert "left in your cluster: Pilothouse's CRDs" in seen
    everything = f"releases.helm.crossplane.io,{CONFIGS},secrets,namespaces"
    label = "app.kubernetes.io/part-of=pilothouse-demo"
    assert edge.kubectl("get", everything, "-A", "-l", label, "-o", "name") == ""
    assert edge.kubectl("get", "releases.helm.crossplane.io", "-o", "name") == ""

    # Its CRDs are there now, so a user may have something of the same name.
    for name in ("default", "pilothouse-demo"):
        mine = OF_THE_USER | {"metadata": {"name": name}}
        edge.kubectl("apply", "-f", "-", input=json.dumps(mine))
    before = edge.kubectl("get", CONFIGS, "-o", "yaml")
    with demo_on(edge) as demo:
        seen, _ = demo.communicate()
        assert demo.returncode == 1, seen
    assert "your cluster has a ProviderConfig pilothouse-demo of its own" in seen
    assert edge.kubectl("get", CONFIGS, "-o", "yaml") == before
    edge.kubectl("delete", CONFIGS, "--all")
