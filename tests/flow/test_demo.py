"""`pilothouse demo`, which is `make run`, on a cluster of the user's own."""

import os
import signal
import subprocess
import sys

from pilothouse.dev.cluster import DevCluster


def test_ctrl_c_stops_all_and_says_what_is_left(edge: DevCluster) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "pilothouse", "demo", "--hub", str(edge.kubeconfig)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        start_new_session=True,
    ) as demo:
        assert demo.stdout
        seen = ""
        for line in demo.stdout:
            seen += line
            if "Ctrl-C stops everything" in line:
                os.killpg(demo.pid, signal.SIGINT)  # as a terminal does
        assert demo.wait() == 0, seen
    assert "release hello-edge: ready" in seen
    assert "left in your cluster: Pilothouse's CRDs" in seen
    assert edge.kubectl("get", "releases.helm.crossplane.io", "-o", "name") == ""
    assert "NotFound" in edge.kubectl("get", "deploy", "hello-hub", "-n", "hello", check=False)
    assert edge.kubectl("get", "providerconfigs.helm.crossplane.io", "-o", "name") == ""
    edge.kubectl("delete", "namespace", "hello", "--wait=false")
