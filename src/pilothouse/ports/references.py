"""ConfigMaps and Secrets that others refer to, key by key.

`clusters/references.py` implements this.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pilothouse.api.meta import Key


@dataclass(frozen=True, slots=True)
class Reference:
    """A ConfigMap or Secret that a Release refers to."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


# Stands for every key of an object.
WHOLE = ""


@dataclass(frozen=True, slots=True)
class Use:
    """One key of a ConfigMap or Secret that somebody refers to, or all of them."""

    reference: Reference
    key: str

    def __str__(self) -> str:
        return f"{self.reference}, key {self.key}" if self.key else str(self.reference)


@dataclass(frozen=True, slots=True)
class Referred:
    """What was found there."""

    uid: str
    resource_version: str
    # None when the object has no such key.
    value: bytes | None = field(repr=False)
    # Every key, for who uses them all.
    whole: Mapping[str, bytes] = field(default_factory=dict, repr=False)


class References(Protocol):
    """Reads what is referred to, and remembers who uses which key."""

    async def read(self, use: Use) -> Referred | None:
        """Return the value of a key; None when there is no such object."""
        ...

    def used_by(self, key: Key, uses: frozenset[Use]) -> None:
        """Note which keys somebody uses now, so that a change of one of them wakes it."""
        ...
