"""What every Kubernetes object has, as far as Pilothouse reads it."""

from typing import Annotated, Any, NamedTuple

import msgspec

# What the API server calls us in its notes on who wrote which fields.
FIELD_MANAGER = "pilothouse"


class Rule(NamedTuple):
    """What the API server checks at admission: a CEL expression, and what it says when that is false."""

    rule: str
    message: str


class Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Crosses the API server: camelCase outside, snake_case inside."""


def described(text: str, **schema: Any) -> msgspec.Meta:
    """Describe a field for `kubectl explain`; `schema` goes into the CRD as it is."""
    return msgspec.Meta(description=text, extra_json_schema=schema or None)


class OwnerReference(Wire, frozen=True):
    """Who owns an object."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(Wire, frozen=True):
    """The part of metadata that Pilothouse uses."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: list[str] = []
    owner_references: list[OwnerReference] = []


class Key(msgspec.Struct, frozen=True, order=True, gc=False):
    """Names one object of one kind; `kind` is the plural with its group."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind.split('.', 1)[0]}/{where}"


class Condition(Wire, frozen=True):
    """One statement about an object, with its reason."""

    type: Annotated[str, described("What is stated: Synced, Ready.")]
    status: Annotated[str, described("True, False or Unknown.")]
    reason: Annotated[str, described("One word for the state, stable, for programs.")]
    last_transition_time: Annotated[
        str, described("When the status last changed.", format="date-time")
    ]
    message: Annotated[str, described("One sentence for people, with the next step.")] = ""
    observed_generation: Annotated[
        int, described("The generation of the spec that this speaks of.", format="int64")
    ] = 0


class Event(Wire, frozen=True):
    """What was told of an object, and how often."""

    metadata: ObjectMeta = ObjectMeta()
    count: int = 1


class Object(Wire, frozen=True):
    """Any object, metadata only."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
