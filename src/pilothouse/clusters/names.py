"""Hear of changed objects by name and version only: content is read when, and by whom, it is needed."""

from collections.abc import Callable
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
    field_selector: str = "",
) -> None:
    """Call `changed(metadata, gone)` for every object that appears, changes or goes, for ever."""
    decoder = msgspec.json.Decoder(Object)
    while True:
        try:
            batches = engine.watch(at, kind, field_selector=field_selector, metadata=True)
            async with aclosing(batches):
                async for batch in batches:
                    if batch.fault:
                        log.warning(
                            "watch is failing", kind=kind.qualified, error=batch.fault.message
                        )
                    for raw, gone in batch.changes:
                        changed(decoder.decode(raw).metadata, gone)
        except EngineLost:
            log.info("watch re-opens", kind=kind.qualified)
