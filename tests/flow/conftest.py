"""One controller on one hub for all stories; each story has its own namespace and names."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from stage import INJECTED, ControllerProcess, Stage, await_crds, running

from pilothouse.dev import charts
from pilothouse.dev.cluster import DevCluster

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Iterator[charts.Repository]:
    with charts.serve(tmp_path_factory.mktemp("repository")) as served:
        for version in ("1.0.0", "1.1.0"):
            served.add(EXAMPLES / "charts" / "hello", version=version)
        yield served


@pytest.fixture(scope="session")
def controller(
    hub: DevCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControllerProcess]:
    with running(hub, tmp_path_factory.mktemp("controller")) as process:
        await_crds(hub, process)
        hub.kubectl("apply", "-f", "-", input=json.dumps(INJECTED))
        yield process


@pytest.fixture
def stage(
    hub: DevCluster,
    repository: charts.Repository,
    controller: ControllerProcess,
    tmp_path: Path,
) -> Iterator[Stage]:
    stage = Stage(hub, repository, controller, tmp_path)
    yield stage
    for name in stage.applied:
        hub.kubectl("delete", "release", name, "--wait=false", check=False)
