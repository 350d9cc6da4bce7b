"""Install our own CRDs where we may; never touch one that someone else brought."""

import hashlib
from importlib import resources
from typing import Any

import msgspec
import structlog
import yaml

from pilothouse.api.kinds import CRD, SERVED
from pilothouse.api.meta import Key
from pilothouse.clusters.cache import Cache
from pilothouse.clusters.objects import Objects
from pilothouse.engine.client import EngineClient
from pilothouse.errors import AlreadyExists, EngineLost, Missing, NotPermitted, PilothouseError
from pilothouse.ports import Credentials

log = structlog.get_logger(__name__)

DIGEST = "pilothouse.dev/crd-digest"


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


async def install(engine: EngineClient, at: Credentials) -> None:
    """Create or renew our CRDs and wait until the API server serves them."""
    while True:
        try:
            await _install_all(engine, at)
        except EngineLost:
            continue  # the next engine goes on: every step may be repeated
        return


async def _install_all(engine: EngineClient, at: Credentials) -> None:
    objects = Objects(engine, at)
    for name, manifest in shipped().items():
        await _install_one(objects, name, manifest)
    for name in shipped():
        await _established(engine, at, name)


async def _install_one(objects: Objects, name: str, manifest: dict[str, Any]) -> None:
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
            raise PilothouseError(msg) from None
        log.info("CRD created", name=name)
        return
    except NotPermitted:
        log.info("CRDs not readable here; taking them as they are", name=name)
        return
    held = live.metadata.annotations.get(DIGEST)
    if held is None:
        log.info("CRD belongs to someone else; left as it is", name=name)
    elif held != wanted:
        try:
            patch = {"metadata": {"annotations": {DIGEST: wanted}}, "spec": manifest["spec"]}
            await objects.merge(CRD, Key(CRD.qualified, "", name), patch)
            log.info("CRD renewed", name=name)
        except NotPermitted as error:
            log.warning("CRD may not be renewed", name=name, error=error.message)


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
