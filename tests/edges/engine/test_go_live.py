"""The engine's own tests of its Helm verbs, which want a cluster and the real helm."""

import os
import subprocess
from pathlib import Path

from pilothouse import gobuild
from pilothouse.dev.binaries import find_helm4
from pilothouse.dev.settings import DevSettings

ENGINE = Path(__file__).resolve().parents[3] / "engine"


def test_helm_verbs_on_a_cluster(hub, dev_report) -> None:
    environment = {
        **os.environ,
        "CGO_ENABLED": "0",
        "GOTOOLCHAIN": "local",
        "GOFLAGS": gobuild.GOFLAGS,
        "PILOTHOUSE_TEST_KUBECONFIG": str(hub.kubeconfig),
        "PILOTHOUSE_TEST_HELM": str(find_helm4(DevSettings.from_environment(), dev_report)),
    }
    done = subprocess.run(
        [gobuild.find_go().path, "test", "-count=1", "-tags=live", "./internal/helm"],
        cwd=ENGINE,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
