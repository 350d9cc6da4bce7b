"""Hear of changed objects by name and version only: content is read when, and by whom, it is needed."""

from collections.abc import Callable, Collection
from contextlib import aclosing
from typing import Any

import msgspec
import structlog

from pilothouse.api.kinds import Kind
from pilothouse.api.meta import Object, ObjectMeta
from pilothouse.engine.client import EngineClient
from pilothouse.errors import EngineLost
from pilothouse.ports import Credentials

log = structlog.get_logger(__name__)

# Helm's own records change all the time and are watched by the eyes.
NOT_HELM = "type!=helm.sh/release.v1"


async def follow_names(
    engine: EngineClient,
    at: Credentials,
    kind: Kind[Any],
    changed: Callable[[ObjectMeta, bool], None],
    *,
    listed: Callable[[Collection[tuple[str, str]]], None],
    field_selector: str = "",
) -> None:
    """Call `changed(metadata, gone)` for every object that appears, changes or goes, for ever.

    `listed` is told the names of all there are, at first and after each gap.
    """
    decoder = msgspec.json.Decoder(Object)
    while True:
        names: set[tuple[str, str]] | None = set()
        try:
            batches = engine.watch(at, kind, field_selector=field_selector, metadata=True)
            async with aclosing(batches):
                async for batch in batches:
                    if batch.fault:
                        log.warning(
                            "watch is failing", kind=kind.qualified, error=batch.fault.message
                        )
                    names = set() if batch.reset else names
                    for raw, gone in batch.changes:
                        metadata = decoder.decode(raw).metadata
                        if names is not None and not gone:
                            names.add((metadata.namespace, metadata.name))
                        changed(metadata, gone)
                    if batch.synced and names is not None:
                        listed(names)
                        names = None
        except EngineLost:
            log.info("watch re-opens", kind=kind.qualified)
