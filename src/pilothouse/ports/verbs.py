"""What the engine does without a cluster: values, chart versions, requests to addresses of users.

`engine/` implements this.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol

from pilothouse.core.desired import ChartAsk
from pilothouse.core.versions import Found, Query


@dataclass(frozen=True, slots=True)
class HttpAsk:
    """One request to an address that a user gave; the egress guard stands before it."""

    url: str = field(repr=False)
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: bytes = field(default=b"", repr=False)
    timeout: timedelta = timedelta(seconds=10)
    # More of the answer is not read.
    reply_bytes: int = 1024 * 1024
    redirects: int = 0
    ca_bundle: bytes = b""
    insecure_skip_tls_verify: bool = False
    client_certificate: bytes = field(default=b"", repr=False)
    client_key: bytes = field(default=b"", repr=False)
    tls_server_name: str = ""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What a server said, whatever its status; names of headers are in lower case."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    """A piece of YAML; `origin` is what a fault calls it."""

    origin: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Assignment:
    """One `--set name=value`."""

    origin: str
    name: str
    value: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Composed:
    """Values and patches, put together."""

    values: dict[str, Any] = field(repr=False)
    patches_sha: str = ""
    patches: tuple[bytes, ...] = field(default=(), repr=False)


class Composer(Protocol):
    """Puts values together the way Helm does."""

    async def compose(
        self,
        documents: Sequence[Document],
        assignments: Sequence[Assignment],
        patches: Sequence[Document],
    ) -> Composed:
        """Merge documents, then assignments; check the patches."""
        ...


class VersionFinder(Protocol):
    """Asks chart repositories what they have."""

    async def find_versions(
        self, chart: ChartAsk, queries: Sequence[Query], max_age: timedelta
    ) -> list[Found]:
        """Ask one repository, once; what is known of it may be as old as `max_age`."""
        ...
