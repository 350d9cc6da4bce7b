"""Objects through the engine, on a real API server."""

import asyncio
import json
import time
from contextlib import aclosing

import pytest

from pilothouse.api.kinds import Kind
from pilothouse.api.meta import Key, Object
from pilothouse.clusters.cache import Cache
from pilothouse.clusters.objects import Objects
from pilothouse.dev.blocking import ClusterPool
from pilothouse.dev.cluster import ClusterRequest
from pilothouse.engine.client import EngineClient
from pilothouse.errors import AlreadyExists, InvalidInput, Missing, NotPermitted, PilothouseError
from pilothouse.faults import FaultKind
from pilothouse.ports import Credentials

CONFIG_MAP = Kind(
    group="", version="v1", kind="ConfigMap", plural="configmaps", struct=Object, namespaced=True
)


def manifest(name: str, namespace: str, **data: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": data,
    }


async def test_objects_are_made_read_changed_and_removed(
    engine: EngineClient, at, namespace
) -> None:
    objects = Objects(engine, at)
    made = await objects.create(CONFIG_MAP, manifest("one", namespace, a="1"), namespace)
    assert made.metadata.uid
    with pytest.raises(AlreadyExists, match="one"):
        await objects.create(CONFIG_MAP, manifest("one", namespace), namespace)
    key = Key(CONFIG_MAP.qualified, namespace, "one")
    changed = await objects.merge(CONFIG_MAP, key, {"metadata": {"labels": {"x": "y"}}})
    assert changed.metadata.labels == {"x": "y"}
    assert (await objects.get(CONFIG_MAP, "one", namespace)).metadata.labels == {"x": "y"}
    await engine.delete(at, CONFIG_MAP, "one", namespace)
    with pytest.raises(Missing):
        await objects.get(CONFIG_MAP, "one", namespace)


async def test_what_the_server_refuses_is_invalid_input(
    engine: EngineClient, at, namespace
) -> None:
    bad = manifest("Not A Name", namespace)
    with pytest.raises(InvalidInput) as caught:
        await Objects(engine, at).create(CONFIG_MAP, bad, namespace)
    assert caught.value.kind is FaultKind.REJECTED


async def test_a_write_on_an_old_version_is_a_conflict(engine: EngineClient, at, namespace) -> None:
    objects = Objects(engine, at)
    made = await objects.create(CONFIG_MAP, manifest("two", namespace), namespace)
    key = Key(CONFIG_MAP.qualified, namespace, "two")
    old = {"metadata": {"resourceVersion": made.metadata.resource_version, "labels": {"n": "1"}}}
    await objects.merge(CONFIG_MAP, key, old)
    with pytest.raises(PilothouseError) as caught:
        await objects.merge(CONFIG_MAP, key, {**old, "data": {"lost": "update"}})
    assert caught.value.kind is FaultKind.CONFLICT


async def test_a_watch_is_a_snapshot_then_changes(engine: EngineClient, at, hub, namespace) -> None:
    hub.kubectl("create", "configmap", "before", "-n", namespace)
    cache, seen = Cache(CONFIG_MAP), asyncio.Event()

    def listen(key: Key, _value: object) -> None:
        if key.name in {"after", "before"} and key.namespace == namespace:
            seen.set()

    async with aclosing(engine.watch(at, CONFIG_MAP)) as batches:
        async for batch in batches:
            cache.take(batch, listen)
            if batch.synced:
                break
        before = Key(CONFIG_MAP.qualified, namespace, "before")
        assert cache.get(before)
        hub.kubectl("create", "configmap", "after", "-n", namespace)
        hub.kubectl("delete", "configmap", "before", "-n", namespace)
        async with asyncio.timeout(60):
            async for batch in batches:
                cache.take(batch, listen)
                if cache.get(before) is None:
                    break
        assert cache.get(Key(CONFIG_MAP.qualified, namespace, "after"))


async def test_managed_fields_do_not_cross(engine: EngineClient, at, namespace) -> None:
    made = json.loads(
        await engine.create(
            at, CONFIG_MAP, json.dumps(manifest("lean", namespace)).encode(), namespace
        )
    )
    assert "managedFields" not in made["metadata"]


async def test_a_watch_survives_a_restart_of_the_api_server(
    engine: EngineClient, kube_binaries, tmp_path
) -> None:
    request = ClusterRequest("phoenix", tmp_path / "phoenix", ephemeral=True)
    pool = ClusterPool(kube_binaries, lambda _name, _text: None)
    try:
        cluster = pool.start(request)
        at = Credentials(kubeconfig=cluster.kubeconfig.read_bytes(), trusted=True)
        cluster.kubectl("create", "configmap", "kept")
        cluster.kubectl("create", "configmap", "lost")
        cache = Cache(CONFIG_MAP)
        ignore = lambda _key, _value: None  # noqa: E731 - a listener that does not listen
        async with aclosing(engine.watch(at, CONFIG_MAP)) as batches:
            async for batch in batches:
                cache.take(batch, ignore)
                if batch.synced:
                    break
            await asyncio.to_thread(cluster.restart_api_server)
            await asyncio.to_thread(cluster.kubectl, "delete", "configmap", "lost")
            await asyncio.to_thread(cluster.kubectl, "create", "configmap", "new")
            lost, new = (Key(CONFIG_MAP.qualified, "default", name) for name in ("lost", "new"))
            async with asyncio.timeout(60):
                async for batch in batches:
                    cache.take(batch, ignore)
                    if cache.get(new) and not cache.get(lost):
                        break
        assert cache.get(Key(CONFIG_MAP.qualified, "default", "kept"))
    finally:
        await asyncio.to_thread(pool.close)


KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: not-a-real-token}}]
"""


async def test_a_dead_server_is_unreachable_at_once(engine: EngineClient) -> None:
    nowhere = Credentials(kubeconfig=KUBECONFIG.encode())
    began = time.monotonic()
    with pytest.raises(PilothouseError) as caught:
        await engine.get(nowhere, CONFIG_MAP, "x", "default")
    assert caught.value.kind is FaultKind.UNREACHABLE
    assert "not-a-real-token" not in caught.value.message
    assert time.monotonic() - began < 10


async def test_rights_are_the_credentials(engine: EngineClient, hub, namespace) -> None:
    hub.kubectl("wait", "--for=create", "sa/default", "-n", namespace, "--timeout=60s")
    token = hub.kubectl("create", "token", "default", "-n", namespace).strip()
    config = json.loads(hub.kubectl("config", "view", "--raw", "-o", "json"))
    config["users"][0]["user"] = {"token": token}
    nobody = Credentials(kubeconfig=json.dumps(config).encode())
    with pytest.raises(NotPermitted, match=r"secrets"):
        await engine.get(nobody, Kind("", "v1", "Secret", "secrets", Object), "x", namespace)
