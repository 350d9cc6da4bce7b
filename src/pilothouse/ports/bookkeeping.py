"""What is known and written about Releases, on the management cluster and in the archive.

`clusters/` and `history/` implement this.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol

from pilothouse.api.meta import Key
from pilothouse.api.release import Release
from pilothouse.api.status import ReleaseStatus
from pilothouse.core.outcome import Entry, Notice


class Releases(Protocol):
    """Where the loop finds the latest sight of a Release."""

    def get(self, key: Key) -> Release | None:
        """Return the latest sight of one Release."""
        ...

    def __len__(self) -> int:
        """Count them."""
        ...

    def __iter__(self) -> Iterator[Key]:
        """Name them all, as they are now."""
        ...


class Instances(Protocol):
    """Other instances of the controller."""

    async def alive(self, owner: str) -> bool:
        """Whether the instance that stamped a record still lives."""
        ...


class Writer(Protocol):
    """What the loop writes about a Release."""

    async def claim(self, release: Release, config: str) -> Release:
        """Put the finalizer and the external name on it, and say that it uses that config."""
        ...

    async def use(self, release: Release, config: str) -> None:
        """Say that it uses that config, and no other that was said before."""
        ...

    async def status(self, release: Release, status: ReleaseStatus) -> Release:
        """Write the fields of the status that differ; nothing when none does."""
        ...

    async def late_initialize(self, release: Release, chart: Mapping[str, str]) -> Release:
        """Fill in fields of the chart that the user left open."""
        ...

    async def take_back_name(self, release: Release) -> Release:
        """Empty the chart's name where nobody but us wrote it."""
        ...

    async def connect_secret(self, release: Release, data: Mapping[str, str]) -> None:
        """Write the connection secret; values are in base64."""
        ...

    async def let_go(self, release: Release) -> None:
        """Take the finalizer off."""
        ...

    async def tell(self, release: Release, notice: Notice) -> None:
        """Post a Kubernetes Event."""
        ...


class Archive(Protocol):
    """What outlives the cluster."""

    async def append(self, entry: Entry) -> None:
        """Keep one line, once: the same entry again changes nothing."""
        ...


class Meter(Protocol):
    """Counts what the loop does, for those who measure."""

    def acted(self, action: str, fault: str) -> None:
        """An action has ended; `fault` is its kind, empty when there was none."""
        ...

    def repaired(self, objects: int, failed: int) -> None:
        """That many objects were to be put back, and that many of them could not."""
        ...
