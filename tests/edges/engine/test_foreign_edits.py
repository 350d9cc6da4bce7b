"""An edit that arrives with the answer to a write of ours is not lost."""

import json
import secrets
from pathlib import Path

import msgspec

from pilothouse import api
from pilothouse.api.kinds import RELEASE
from pilothouse.api.release import Release
from pilothouse.clusters.cache import Cache
from pilothouse.clusters.objects import Objects
from pilothouse.clusters.writer import ReleaseWriter
from pilothouse.dev.cluster import DevCluster
from pilothouse.engine.client import EngineClient
from pilothouse.ports import Credentials

CRD = Path(api.__path__[0]) / "crds" / "releases.helm.crossplane.io.yaml"


async def test_an_edit_between_the_look_and_the_write_is_told(
    edge: DevCluster, engine: EngineClient
) -> None:
    # On a cluster where no controller looks after Releases.
    edge.kubectl("apply", "-f", str(CRD))
    edge.kubectl("wait", "--for=condition=Established", f"crd/{CRD.stem}", "--timeout=60s")
    at = Credentials(kubeconfig=edge.kubeconfig.read_bytes(), trusted=True)
    objects, cache = Objects(engine, at), Cache(RELEASE)
    writer = ReleaseWriter(objects, cache, "tester")
    heard: list[int] = []

    def listener(_key: object, value: msgspec.Struct | None) -> None:
        assert isinstance(value, Release)
        heard.append(value.metadata.generation)

    cache.listen(listener)
    name = f"edited-{secrets.token_hex(4)}"
    chart = {"name": "hello", "repository": "https://charts.example", "version": "1.0.0"}
    manifest = {
        "apiVersion": RELEASE.api_version,
        "kind": RELEASE.kind,
        "metadata": {"name": name},
        "spec": {"managementPolicies": [], "forProvider": {"chart": chart, "namespace": "default"}},
    }
    seen = await objects.create(RELEASE, manifest)

    def in_retry(number: int):
        return msgspec.structs.replace(seen.status, retries=number)

    try:
        seen = await writer.status(seen, in_retry(1))
        assert heard == []  # our own write is nothing new

        edit = {"spec": {"forProvider": {"namespace": "other"}}}
        edge.kubectl("patch", "release", name, "--type=merge", "-p", json.dumps(edit))
        written = await writer.status(seen, in_retry(2))
        assert written.spec.for_provider.namespace == "other"
        assert heard == [2]
    finally:
        edge.kubectl("delete", "release", name)
