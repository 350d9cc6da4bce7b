"""ProviderConfigs that name a file or a variable, with real clusters behind them."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilothouse.api.kinds import PROVIDER_CONFIG
from pilothouse.api.provider import ProviderConfig
from pilothouse.clusters.cache import Cache
from pilothouse.clusters.credentials import CredentialReader
from pilothouse.clusters.fleet import Fleet
from pilothouse.clusters.objects import Objects
from pilothouse.clusters.references import ReferenceCache
from pilothouse.dev.cluster import DevCluster
from pilothouse.engine.client import EngineClient
from pilothouse.errors import InvalidInput, Missing
from pilothouse.ports import Credentials

VARIABLE = "KUBECONFIG_OF_A_TEST"
PATIENCE = 30.0


class Scene:
    """A fleet, the configs it knows, and whom it woke."""

    def __init__(self, engine: EngineClient, at: Credentials) -> None:
        self.configs: Cache[ProviderConfig] = Cache(PROVIDER_CONFIG)
        self.woken: list[str] = []
        references = ReferenceCache(Objects(engine, at), lambda _: None)
        self.credentials = CredentialReader(references, at, self.configs, namespace="default")
        self.fleet = Fleet(
            engine,
            self.configs,
            credentials=self.credentials,
            wake=lambda *_: None,
            wake_all=self.woken.append,
        )

    def config(self, name: str, **credentials: Any) -> None:
        raw = {
            "metadata": {"name": name, "resourceVersion": "1"},
            "spec": {"credentials": credentials},
        }
        config = msgspec.convert(raw, ProviderConfig)
        self.configs.put(PROVIDER_CONFIG.key(config.metadata), "1", config)

    async def cluster(self, name: str) -> str:
        return await (await self.fleet.reach_config(name)).identity()


@pytest.fixture
async def scene(engine: EngineClient, at: Credentials) -> AsyncIterator[Scene]:
    made = Scene(engine, at)
    work = asyncio.ensure_future(made.fleet.run())
    await asyncio.sleep(0)  # it owns tasks from now on
    yield made
    work.cancel()
    await asyncio.wait([work])


def uid(cluster: DevCluster) -> str:
    return cluster.kubectl("get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}")


def put(path: Path, content: bytes) -> None:
    """Write a file as whoever rotates credentials does: whole, in the place of the one before."""
    fresh = path.with_suffix(".new")
    fresh.write_bytes(content)
    fresh.replace(path)


async def test_a_file_is_read_again_when_it_was_written_again(
    scene: Scene, hub: DevCluster, edge: DevCluster, tmp_path: Path
) -> None:
    path = tmp_path / "kubeconfig"
    scene.config("file", source="Filesystem", fs={"path": str(path)})
    with pytest.raises(Missing, match=rf'"file": spec.credentials: {path}: No such file'):
        await scene.fleet.reach_config("file")
    put(path, hub.kubeconfig.read_bytes())
    before = await scene.fleet.reach_config("file")
    assert await before.identity() == uid(hub)
    assert await scene.fleet.reach_config("file") is before, "nothing has changed"

    put(path, edge.kubeconfig.read_bytes())
    after = await scene.fleet.reach_config("file")
    assert await after.identity() == uid(edge)
    assert scene.woken.count(before.id) >= 1, "whoever goes there goes over too"

    put(path, b"no: kubeconfig")
    for _ in range(2):
        with pytest.raises(InvalidInput, match='"file"'):
            await scene.fleet.reach_config("file")
    put(path, edge.kubeconfig.read_bytes())
    assert await scene.cluster("file") == uid(edge)


async def test_a_file_that_is_written_again_is_told_once(
    scene: Scene, hub: DevCluster, edge: DevCluster, tmp_path: Path
) -> None:
    told: asyncio.Queue[str] = asyncio.Queue()
    work = asyncio.ensure_future(scene.credentials.follow_files(told.put_nowait, every=0.05))
    path = tmp_path / "kubeconfig"
    scene.config("file", source="Filesystem", fs={"path": str(path)})
    with pytest.raises(Missing):
        await scene.fleet.reach_config("file")
    for cluster in (hub, edge):
        put(path, cluster.kubeconfig.read_bytes())
        assert await asyncio.wait_for(told.get(), PATIENCE) == "file"
        assert await scene.cluster("file") == uid(cluster)
    other = tmp_path / "other"
    scene.config("other", source="Filesystem", fs={"path": str(other)})
    with pytest.raises(Missing):
        await scene.fleet.reach_config("other")
    put(path, b"nobody reads this one")
    assert await asyncio.wait_for(told.get(), PATIENCE) == "file"
    # Each of these is at least one more look at both.
    for number in range(5):
        put(other, str(number).encode())
        assert await asyncio.wait_for(told.get(), PATIENCE) == "other"
    path.unlink()
    assert await asyncio.wait_for(told.get(), PATIENCE) == "file"
    assert told.empty()
    work.cancel()
    await asyncio.wait([work])


async def test_a_link_may_be_turned_to_another_file(
    scene: Scene, hub: DevCluster, edge: DevCluster, tmp_path: Path
) -> None:
    """As the kubelet does with the volume of a Secret."""
    for cluster, name in ((hub, "one"), (edge, "two")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "kubeconfig").write_bytes(cluster.kubeconfig.read_bytes())
    mounted = tmp_path / "data"
    mounted.symlink_to("one")
    scene.config("volume", source="Filesystem", fs={"path": str(mounted / "kubeconfig")})
    assert await scene.cluster("volume") == uid(hub)
    (tmp_path / "turned").symlink_to("two")
    (tmp_path / "turned").replace(mounted)
    assert await scene.cluster("volume") == uid(edge)


async def test_a_variable_holds_a_kubeconfig(
    scene: Scene, edge: DevCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.config("variable", source="Environment", env={"name": VARIABLE})
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(Missing, match=f"the environment has no variable {VARIABLE}"):
        await scene.fleet.reach_config("variable")
    monkeypatch.setenv(VARIABLE, edge.kubeconfig.read_text())
    assert await scene.cluster("variable") == uid(edge)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("Filesystem", "source Filesystem needs fs"),
        ("Environment", "source Environment needs env"),
        ("None", "source None gives no credentials"),
    ],
)
async def test_a_source_without_its_place_is_named(scene: Scene, source: str, said: str) -> None:
    scene.config("bare", source=source)
    with pytest.raises(InvalidInput, match=f'"bare": spec.credentials: {said}'):
        await scene.fleet.reach_config("bare")
