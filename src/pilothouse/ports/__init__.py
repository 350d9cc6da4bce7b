"""The doors as the loop sees them: Protocols and the values that pass through them."""

from pilothouse.ports.bookkeeping import Archive, Instances, Meter, Releases, Writer
from pilothouse.ports.references import WHOLE, Reference, References, Referred, Use
from pilothouse.ports.running import Clock, LoopSettings, Say
from pilothouse.ports.sights import (
    NamespaceSight,
    ObjectsChange,
    RecordChange,
    Sighting,
    WatchBatch,
)
from pilothouse.ports.target import (
    Comparison,
    Credentials,
    ObjectStore,
    Order,
    Progress,
    ResolvedChart,
    Target,
    Targets,
)
from pilothouse.ports.verbs import (
    Assignment,
    Composed,
    Composer,
    Document,
    HttpAnswer,
    HttpAsk,
    VersionFinder,
)

__all__ = [
    "WHOLE",
    "Archive",
    "Assignment",
    "Clock",
    "Comparison",
    "Composed",
    "Composer",
    "Credentials",
    "Document",
    "HttpAnswer",
    "HttpAsk",
    "Instances",
    "LoopSettings",
    "Meter",
    "NamespaceSight",
    "ObjectStore",
    "ObjectsChange",
    "Order",
    "Progress",
    "RecordChange",
    "Reference",
    "References",
    "Referred",
    "Releases",
    "ResolvedChart",
    "Say",
    "Sighting",
    "Target",
    "Targets",
    "Use",
    "VersionFinder",
    "WatchBatch",
    "Writer",
]
