"""Releases by the thousand without installing them: copies of one that was.

A copy has all that an install leaves behind: Helm's record, the objects, applied as Helm applies them, and the
Release. The stamp on the record says what was asked, whatever the release is called, so nothing is upgraded.
"""

import base64
import gzip
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from kube import Kube, in_parallel
from releases import CONFIG_MAPS, NAMESPACE, RELEASES, SECRETS

CHART = "still"
# Nothing else may have this in its name, since it is replaced in texts.
PATTERN = "pattern0"
_APPLY = "application/apply-patch+yaml"
_KEPT = ("name", "labels", "annotations")


@dataclass(frozen=True, slots=True)
class Pattern:
    """What one install left behind, as text."""

    release: str
    record: str
    secret: str
    objects: tuple[str, ...]


def pattern(hub: Kube, at: Kube) -> Pattern:
    """Read what the installed release is made of, on the cluster it is on."""
    secret = at.request("GET", f"{SECRETS}/sh.helm.release.v1.{PATTERN}.v1")
    packed = secret["data"].pop("release")
    record = gzip.decompress(base64.b64decode(base64.b64decode(packed))).decode()
    release = hub.request("GET", f"{RELEASES}/{PATTERN}")
    listed = at.request(
        "GET", f"{CONFIG_MAPS}?labelSelector={quote('app.kubernetes.io/managed-by=Helm')}"
    )
    own = [one for one in listed["items"] if one["metadata"]["name"].startswith(PATTERN)]
    release["metadata"] = {
        **_bare(release)["metadata"],
        "finalizers": release["metadata"]["finalizers"],
    }
    del release["status"]
    return Pattern(
        json.dumps(release),
        record,
        json.dumps(_bare(secret)),
        tuple(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", **_bare(one)}) for one in own),
    )


def seed(
    made_of: Pattern,
    hub: Kube,
    clusters: list[Kube],
    numbers: Iterable[int],
    config: Callable[[int], str],
) -> None:
    """Make copies, the clusters taking turns as their configs do."""

    def make(number: int) -> None:
        name, at = f"e{number}", clusters[number % len(clusters)]

        def named(text: str) -> Any:
            return json.loads(text.replace(PATTERN, name))

        for one in map(named, made_of.objects):
            path = f"{CONFIG_MAPS}/{one['metadata']['name']}?fieldManager=helm"
            at.request("PATCH", path, one, content=_APPLY)
        secret = named(made_of.secret)
        packed = gzip.compress(made_of.record.replace(PATTERN, name).encode(), mtime=0)
        twice = base64.b64encode(base64.b64encode(packed)).decode()
        secret["data"] = {"release": twice}
        at.request("POST", SECRETS, secret)
        release = named(made_of.release)
        release["spec"]["providerConfigRef"] = {"name": config(number)}
        hub.request("POST", RELEASES, release)

    in_parallel(make, numbers)


def _bare(found: dict[str, Any]) -> dict[str, Any]:
    """Leave out what an API server fills in."""
    metadata = {key: found["metadata"][key] for key in _KEPT if key in found["metadata"]}
    if "namespace" in found["metadata"]:
        metadata["namespace"] = NAMESPACE
    return {
        **{key: value for key, value in found.items() if key not in {"metadata", "status"}},
        "metadata": metadata,
    }
