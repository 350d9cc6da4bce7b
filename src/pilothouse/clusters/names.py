"""Hear of changed Secrets by name only: their content is read when, and by whom, it is needed."""

from collections.abc import Callable
from contextlib import aclosing

import msgspec
import structlog

from pilothouse.api.kinds import SECRET_METADATA
from pilothouse.api.meta import Object
from pilothouse.engine.client import EngineClient
from pilothouse.errors import EngineLost
from pilothouse.ports import Credentials

log = structlog.get_logger(__name__)

# Helm's own records change all the time and are watched by the eyes.
NOT_HELM = "type!=helm.sh/release.v1"


async def follow_secrets(
    engine: EngineClient, at: Credentials, changed: Callable[[str, str], None]
) -> None:
    """Call `changed(namespace, name)` for every Secret that appears, changes or goes, for ever."""
    decoder = msgspec.json.Decoder(Object)
    while True:
        try:
            batches = engine.watch(at, SECRET_METADATA, field_selector=NOT_HELM, metadata=True)
            async with aclosing(batches):
                async for batch in batches:
                    if batch.fault:
                        log.warning("cannot watch Secrets", error=batch.fault.message)
                    for raw, _gone in batch.changes:
                        metadata = decoder.decode(raw).metadata
                        changed(metadata.namespace, metadata.name)
        except EngineLost:
            log.info("watch re-opens", kind="secrets")
