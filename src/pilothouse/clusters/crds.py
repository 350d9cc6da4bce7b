"""Install our own CRDs where we may; never touch one that someone else brought."""

import hashlib
from importlib import resources
from typing import Any

import msgspec
import structlog
import yaml

from pilothouse.api.crd import CustomResourceDefinition
from pilothouse.api.kinds import CRD, RELEASE, SERVED
from pilothouse.api.meta import Key, ObjectMeta, OwnerReference
from pilothouse.clusters.cache import Cache
from pilothouse.clusters.objects import Objects
from pilothouse.engine.client import EngineClient
from pilothouse.errors import AlreadyExists, Missing, NotPermitted
from pilothouse.ports import Credentials

log = structlog.get_logger(__name__)

DIGEST = "pilothouse.dev/crd-digest"
PACKAGE_GROUP = "pkg.crossplane.io/"


def shipped() -> dict[str, dict[str, Any]]:
    """Return the CRDs in this package by name, each with its digest."""
    found: dict[str, dict[str, Any]] = {}
    for kind in SERVED:
        text = (resources.files("pilothouse.api") / "crds" / f"{kind.qualified}.yaml").read_bytes()
        manifest: dict[str, Any] = yaml.safe_load(text)
        digest = hashlib.sha256(text).hexdigest()[:40]
        manifest["metadata"].setdefault("annotations", {})[DIGEST] = digest
        found[kind.qualified] = manifest
    return found


async def install(engine: EngineClient, at: Credentials, *, take_over: bool = False) -> None:
    """Create or renew our CRDs and wait until the API server serves them.

    With `take_over` those that someone else brought become ours: no package owns them afterwards, so that
    none takes them, and with them every Release, away when it goes. Every step may be repeated.
    """
    objects = Objects(engine, at)
    for name, manifest in shipped().items():
        await _install_one(objects, name, manifest, take_over=take_over)
    for name in shipped():
        await _established(engine, at, name)


async def _install_one(
    objects: Objects, name: str, manifest: dict[str, Any], *, take_over: bool
) -> None:
    wanted = manifest["metadata"]["annotations"][DIGEST]
    try:
        live = await objects.get(CRD, name)
    except Missing:
        try:
            await objects.create(CRD, manifest)
        except AlreadyExists:
            return
        except NotPermitted as error:
            msg = (
                f"the CRD {name} is missing and may not be created here ({error.message}): "
                "apply it once as an administrator, from `pilothouse crds`"
            )
            raise NotPermitted(msg, error.kind) from None
        log.info("CRD created", name=name)
        return
    except NotPermitted:
        log.info("CRDs not readable here; taking them as they are", name=name)
        return
    held = live.metadata.annotations.get(DIGEST)
    if held is None and not take_over:
        log.info("CRD belongs to someone else; left as it is", name=name)
    elif held != wanted or (take_over and packages_owning(live.metadata)):
        await _renew(objects, live, manifest)


async def _renew(
    objects: Objects, live: CustomResourceDefinition, manifest: dict[str, Any]
) -> None:
    name, digest = live.metadata.name, manifest["metadata"]["annotations"][DIGEST]
    metadata: dict[str, Any] = {
        "annotations": {DIGEST: digest},
        # Someone may put its ownership back between our look and this write.
        "resourceVersion": live.metadata.resource_version,
    }
    packages = packages_owning(live.metadata)
    if packages:
        left = [one for one in live.metadata.owner_references if one not in packages]
        metadata["ownerReferences"] = msgspec.to_builtins(left)
    try:
        patch = {"metadata": metadata, "spec": manifest["spec"]}
        await objects.merge(CRD, Key(CRD.qualified, "", name), patch)
    except NotPermitted as error:
        log.warning("CRD may not be renewed", name=name, error=error.message)
        return
    log.info("CRD renewed", name=name, released_from=[str(one.name) for one in packages])


def packages_owning(metadata: ObjectMeta) -> list[OwnerReference]:
    """Return the Crossplane packages whose removal would remove this object too."""
    return [one for one in metadata.owner_references if one.api_version.startswith(PACKAGE_GROUP)]


async def why_not_ours(engine: EngineClient, at: Credentials) -> str:
    """Say why another controller must be thought to have these kinds; empty when none must."""
    name = RELEASE.qualified
    try:
        raw = await engine.get(at, CRD, name)
    except (Missing, NotPermitted):
        return ""
    live = msgspec.json.decode(raw, type=CustomResourceDefinition)
    packages = packages_owning(live.metadata)
    if packages:
        named = ", ".join(f"{one.kind} {one.name}" for one in packages)
        return (
            f"{named} owns the CRD {name}, so provider-helm may be at work: "
            "stop it, then start with --take-over"
        )
    if DIGEST not in live.metadata.annotations and b'"lastAttempt"' not in raw:
        return (
            f"the CRD {name} is another controller's and lacks fields that Pilothouse writes: "
            "start with --take-over to renew it"
        )
    return ""


async def _established(engine: EngineClient, at: Credentials, name: str) -> None:
    cache = Cache(CRD)
    seen: list[bool] = []

    def look(_key: Key, value: msgspec.Struct | None) -> None:
        seen.append(bool(getattr(value, "established", False)))

    try:
        async for batch in engine.watch(at, CRD, field_selector=f"metadata.name={name}"):
            if batch.fault:
                return  # may not watch CRDs: the watch on the kind itself will tell
            cache.take(batch, look)
            if seen and seen[-1]:
                return
    except NotPermitted:
        return
