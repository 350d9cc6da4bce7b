"""Keep a Release's connection secret: gather the values that go into it, write it when they may have changed."""

import base64
import re
from typing import Any

import msgspec

from pilothouse.api.meta import Key
from pilothouse.api.references import ConnectionDetail
from pilothouse.api.release import Release
from pilothouse.core.desired import Desired
from pilothouse.core.observed import Observed
from pilothouse.errors import InvalidInput, Missing
from pilothouse.faults import FaultKind
from pilothouse.loop.survey import Surveyor
from pilothouse.loop.triggers import Connections
from pilothouse.ports import Target, Writer

RELEASE_NAME = "meta.helm.sh/release-name"
RELEASE_NAMESPACE = "meta.helm.sh/release-namespace"
_STEP = re.compile(r"\[\s*(?:'([^']*)'|\"([^\"]*)\"|([^\]]*))\s*\]|([^.\[\]]+)")


class ConnectionSecrets:
    """Writes connection secrets, and remembers what each was made of."""

    def __init__(self, surveyor: Surveyor, writer: Writer, connections: Connections) -> None:
        self._surveyor = surveyor
        self._writer = writer
        self._connections = connections

    async def keep(
        self, key: Key, release: Release, wanted: Desired, target: Target, observed: Observed
    ) -> None:
        """Write the connection secret when what it is made of may have changed."""
        if release.spec.write_connection_secret_to_ref is None:
            return
        turn = self._connections.turn(key)
        made_of = (release.metadata.generation, observed.record, observed.objects, turn)
        memory = self._surveyor.memory(key)
        if memory.connected == made_of:
            return
        data = await gather(release, wanted, target)
        await self._writer.connect_secret(release, data)
        memory.connected = made_of


async def gather(release: Release, wanted: Desired, target: Target) -> dict[str, str]:
    """Return the connection secret's data, in base64; raises what is missing, by its field."""
    data: dict[str, str] = {}
    for number, detail in enumerate(release.spec.connection_details):
        field = f"spec.connectionDetails[{number}]"
        found = await _object(field, detail, wanted, target)
        value = at_path(found, detail.field_path)
        if value is None:
            raise Missing(
                f"{field}: {detail.kind} {detail.name} has nothing at {detail.field_path}",
                FaultKind.NOT_FOUND,
            )
        data[detail.to_connection_secret_key] = _encoded(detail, value)
    return data


async def _object(
    field: str, detail: ConnectionDetail, wanted: Desired, target: Target
) -> dict[str, Any]:
    found = await target.read(detail.api_version, detail.kind, detail.name, detail.namespace)
    annotations = found.get("metadata", {}).get("annotations") or {}
    ours = (annotations.get(RELEASE_NAME), annotations.get(RELEASE_NAMESPACE))
    expected = (wanted.release.name, wanted.release.namespace)
    if ours != expected and not detail.skip_part_of_release_check:
        raise InvalidInput(
            f"{field}: {detail.kind} {detail.name} is not part of this release; "
            "set skipPartOfReleaseCheck to use it all the same",
            FaultKind.INVALID,
        )
    return found


def at_path(value: Any, path: str) -> Any:
    """Follow a field path such as `spec.ports[0].port` or `data[a.b]`; None when it leads nowhere."""
    for quoted, double, bracket, plain in _STEP.findall(path):
        step = quoted or double or bracket or plain
        if isinstance(value, list) and step.isdigit():
            value = value[int(step)] if int(step) < len(value) else None
        elif isinstance(value, dict):
            value = value.get(step)
        else:
            return None
    return value


def _encoded(detail: ConnectionDetail, value: Any) -> str:
    # A Secret's data is in base64 already; everything else is spelled as text first.
    if detail.kind == "Secret" and detail.field_path.startswith("data"):
        return str(value)
    text = value if isinstance(value, str) else _spelled(value)
    return base64.b64encode(text.encode()).decode()


def _spelled(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return msgspec.json.encode(value).decode()
    return str(value)
