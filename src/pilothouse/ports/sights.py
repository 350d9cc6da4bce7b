"""What is seen of a cluster as it changes: from watches of objects, and from the eyes on releases."""

from dataclasses import dataclass

from pilothouse.core.desired import ReleaseName
from pilothouse.core.observed import ObjectState, Record, WatchMode
from pilothouse.core.outcome import Fault


@dataclass(frozen=True, slots=True)
class WatchBatch:
    """Some changes; the snapshot comes first and `synced` ends it."""

    changes: tuple[tuple[bytes, bool], ...] = ()
    reset: bool = False
    synced: bool = False
    fault: Fault | None = None
    recovered: bool = False


@dataclass(frozen=True, slots=True)
class RecordChange:
    """A revision appeared, changed or is gone."""

    release: ReleaseName
    record: Record
    gone: bool = False


@dataclass(frozen=True, slots=True)
class ObjectsChange:
    """How the objects of a revision are: all of them when `complete`, else those that changed."""

    release: ReleaseName
    revision: int
    complete: bool
    states: tuple[ObjectState, ...]
    # These three only when complete.
    external: tuple[ObjectState, ...] = ()
    watch: WatchMode = WatchMode.CLUSTER
    token: str = ""


@dataclass(frozen=True, slots=True)
class NamespaceSight:
    """How the records of a namespace are seen, where those of all namespaces cannot be."""

    namespace: str
    synced: bool
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class Sighting:
    """What the eyes on one cluster saw."""

    records: tuple[RecordChange, ...] = ()
    objects: tuple[ObjectsChange, ...] = ()
    reset: bool = False
    records_synced: bool = False
    fault: Fault | None = None
    recovered: bool = False
    namespaces: tuple[NamespaceSight, ...] = ()
