"""What can be in a cluster's way is told in one sentence."""

import json
import re
import socket
from pathlib import Path

import pytest

from pilothouse.dev.binaries import KubeBinaries, find_kube_binaries
from pilothouse.dev.cluster import ClusterRequest, DevCluster, running_cluster
from pilothouse.dev.errors import DevClusterError
from pilothouse.dev.fleet import fleet_names
from pilothouse.dev.settings import DevSettings


async def refusal(request: ClusterRequest, binaries: KubeBinaries) -> str:
    with pytest.raises(DevClusterError) as refused:
        async with running_cluster(request, binaries, lambda _name, _text: None):
            pass
    return refused.value.message


async def test_a_port_that_is_taken(tmp_path: Path, kube_binaries: KubeBinaries) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        message = await refusal(ClusterRequest("one", tmp_path / "one", port=port), kube_binaries)
    assert message == (
        f"cluster one: port {port} on 127.0.0.1 is taken by another program: choose another port, "
        "or none to get a free one"
    )


async def test_a_directory_in_use(hub: DevCluster, kube_binaries: KubeBinaries) -> None:
    message = await refusal(ClusterRequest("one", hub.directory, ephemeral=True), kube_binaries)
    assert message == (
        f"cluster one: {hub.directory} is in use by the cluster with process id {hub.pid}: "
        "stop that one first, or choose another name"
    )
    assert hub.kubectl("get", "nodes", "-o", "name") == "node/node-1\n"


async def test_a_directory_of_something_else(tmp_path: Path, kube_binaries: KubeBinaries) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    message = await refusal(ClusterRequest("one", tmp_path), kube_binaries)
    assert message == (
        f'cluster one: {tmp_path} holds "thesis.txt" but no cluster.json, so it is not a cluster\'s '
        "directory: choose an empty one"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(
    "file", ["cluster.json", "certificates/ca.crt", "certificates/service-account.key"]
)
async def test_garbage_in_the_directory(
    tmp_path: Path, kube_binaries: KubeBinaries, file: str
) -> None:
    (tmp_path / "certificates").mkdir()
    (tmp_path / "certificates" / "ca.key").write_text("garbage")
    (tmp_path / "cluster.json").write_text('{"version": 1}')
    (tmp_path / file).write_text("garbage")
    if "service-account" in file:
        (tmp_path / "certificates" / "ca.key").unlink()
    message = await refusal(ClusterRequest("one", tmp_path), kube_binaries)
    assert message.startswith(f"cluster one: {tmp_path / file} is damaged")
    assert "\n" not in message


async def test_a_directory_that_cannot_be_made(tmp_path: Path, kube_binaries: KubeBinaries) -> None:
    (tmp_path / "file").write_text("")
    message = await refusal(ClusterRequest("one", tmp_path / "file" / "one"), kube_binaries)
    assert "not a directory" in message
    assert "\n" not in message


@pytest.mark.parametrize("file", ["cluster.json", "certificates/ca.key"])
async def test_a_full_disk(tmp_path: Path, kube_binaries: KubeBinaries, file: str) -> None:
    (tmp_path / "certificates").mkdir()
    (tmp_path / "cluster.json").write_text('{"version": 1}')
    # Where the file is written before it takes its name: every write there fails as on a full disk.
    (tmp_path / f"{file}.new").symlink_to("/dev/full")
    message = await refusal(ClusterRequest("one", tmp_path), kube_binaries)
    assert message == (
        f"cluster one: the disk is full at {tmp_path}: free some space and start again"
    )
    assert json.loads((tmp_path / "cluster.json").read_text())["version"] == 1


@pytest.mark.parametrize("ephemeral", [False, True], ids=["on disk", "in memory"])
async def test_a_full_disk_is_named_where_the_data_is(
    tmp_path: Path, kube_binaries: KubeBinaries, *, ephemeral: bool
) -> None:
    told = tmp_path / "told"
    full = tmp_path / "etcd"
    full.write_text(
        f'#!/bin/sh\necho "$*" > {told}\necho "fallocate: no space left on device"; exit 1\n'
    )
    full.chmod(0o700)
    binaries = KubeBinaries(kube_binaries.devcluster, kube_binaries.kubectl, {"etcd": full})
    request = ClusterRequest("one", tmp_path / "one", ephemeral=ephemeral)
    message = await refusal(request, binaries)
    [place] = re.findall(
        r"cluster one: etcd stopped because the disk is full at (.+): free some space and start again$",
        message,
    )
    [data] = re.findall(r"--data-dir=(\S+)", told.read_text())
    assert Path(data).is_relative_to(place)
    assert (Path(place) == request.directory) is not ephemeral
    assert json.loads((request.directory / "cluster.json").read_text())["data"] == place


async def test_a_component_that_cannot_run(tmp_path: Path, kube_binaries: KubeBinaries) -> None:
    broken = tmp_path / "etcd"
    broken.write_text("#!/bin/sh\necho cannot read my data; exit 3\n")
    broken.chmod(0o700)
    binaries = KubeBinaries(kube_binaries.devcluster, kube_binaries.kubectl, {"etcd": broken})
    message = await refusal(ClusterRequest("one", tmp_path / "one"), binaries)
    assert message == (
        "cluster one: etcd stopped (exit status 3); the end of its log:\ncannot read my data"
    )


def test_explicit_binaries_are_taken_and_completed(
    tmp_path: Path, kube_binaries: KubeBinaries, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what both variables offer, Pilothouse's own wins; what it lacks, the other completes."""
    mine, assets = tmp_path / "mine", tmp_path / "assets"
    for directory, names in (
        (mine, ("devcluster", "etcd")),
        (assets, ("devcluster", "etcd", "kube-apiserver", "kubectl")),
    ):
        directory.mkdir()
        for name in names:
            (directory / name).symlink_to(kube_binaries.devcluster)
    monkeypatch.setenv("PILOTHOUSE_KUBE_BINARIES", str(mine))
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    monkeypatch.setenv("PILOTHOUSE_CACHE", str(tmp_path / "cache"))
    found = find_kube_binaries(DevSettings.from_environment(), pytest.fail)
    assert found == KubeBinaries(
        mine / "devcluster",
        assets / "kubectl",
        {"etcd": mine / "etcd", "kube-apiserver": assets / "kube-apiserver"},
    )


async def test_a_cluster_of_separate_programs(tmp_path: Path, kube_binaries: KubeBinaries) -> None:
    (tmp_path / "assets").mkdir()
    for name in ("etcd", "kube-apiserver"):
        (tmp_path / "assets" / name).symlink_to(kube_binaries.devcluster)
    components = {name: tmp_path / "assets" / name for name in ("etcd", "kube-apiserver")}
    binaries = KubeBinaries(kube_binaries.devcluster, kube_binaries.kubectl, components)
    request = ClusterRequest("mixed", tmp_path / "mixed", ephemeral=True)
    async with running_cluster(request, binaries, lambda _name, _text: None) as cluster:
        assert cluster.kubectl("get", "nodes", "-o", "name") == "node/node-1\n"


def test_a_directory_without_programs(tmp_path: Path) -> None:
    settings = DevSettings(tmp_path, None, tmp_path, tmp_path)
    with pytest.raises(DevClusterError, match="holds none of the programs devcluster, kubectl"):
        find_kube_binaries(settings, pytest.fail)


@pytest.mark.parametrize("name", ["", "../etc", "UPPER", "-a", "a b"])
def test_names_that_are_no_names(name: str) -> None:
    with pytest.raises(DevClusterError, match="cannot name a cluster"):
        fleet_names(name, 1)
