"""`pilothouse demo`, which is `make run`, on a cluster of the user's own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pilothouse.dev.cluster import DevCluster

OF_THE_USER = {
    "apiVersion": "helm.crossplane.io/v1beta1",
    "kind": "ProviderConfig",
    "metadata": {"name": "pilothouse-demo"},
    "spec": {"credentials": {"source": "InjectedIdentity"}},
}
CONFIGS = "providerconfigs.helm.crossplane.io"


@contextmanager
def demo_on(cluster: DevCluster) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [sys.executable, "-m", "pilothouse", "demo", "--hub", str(cluster.kubeconfig)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        start_new_session=True,
    ) as demo:
        yield demo


def test_it_takes_out_what_it_brought_and_overwrites_nothing(edge: DevCluster) -> None:
    with demo_on(edge) as demo:
        assert demo.stdout
        seen = ""
        for line in demo.stdout:
            seen += line
            if "Ctrl-C stops everything" in line:
                os.killpg(demo.pid, signal.SIGINT)  # as a terminal does
        assert demo.wait() == 0, seen
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
