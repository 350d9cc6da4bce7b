"""The table of kinds: what Pilothouse serves and what it reads."""

from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from pilothouse.api.crd import CustomResourceDefinition
from pilothouse.api.meta import Key, Object, ObjectMeta
from pilothouse.api.provider import ProviderConfig, Secret
from pilothouse.api.release import Release


@dataclass(frozen=True, slots=True)
class Column:
    """One column of `kubectl get`."""

    name: str
    path: str
    type: str = "string"
    priority: int = 0


T = TypeVar("T", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """One kind of object: where the API server keeps it and how it decodes."""

    group: str
    version: str
    kind: str
    plural: str
    struct: type[T]
    namespaced: bool = False
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()

    @property
    def api_version(self) -> str:
        """Group and version as manifests write them."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """Plural and group: the name of its CRD, and of the kind in a Key."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def key(self, metadata: ObjectMeta) -> Key:
        """Return the key of an object of this kind."""
        return Key(self.qualified, metadata.namespace, metadata.name)


def _condition(name: str) -> str:
    return f".status.conditions[?(@.type=='{name}')].status"


RELEASE = Kind(
    group="helm.crossplane.io",
    version="v1beta1",
    kind="Release",
    plural="releases",
    struct=Release,
    categories=("crossplane", "managed", "helm"),
    columns=(
        Column("NAMESPACE", ".spec.forProvider.namespace"),
        Column("CHART", ".spec.forProvider.chart.name"),
        Column("VERSION", ".spec.forProvider.chart.version"),
        Column("SYNCED", _condition("Synced")),
        Column("READY", _condition("Ready")),
        Column("OBJECTS", ".status.summary"),
        Column("STATE", ".status.atProvider.state"),
        Column("REVISION", ".status.atProvider.revision", "integer"),
        Column("DESCRIPTION", ".status.atProvider.releaseDescription"),
        Column("AGE", ".metadata.creationTimestamp", "date"),
    ),
)

PROVIDER_CONFIG = Kind(
    group="helm.crossplane.io",
    version="v1beta1",
    kind="ProviderConfig",
    plural="providerconfigs",
    struct=ProviderConfig,
    categories=("crossplane", "provider", "helm"),
    columns=(
        Column("AGE", ".metadata.creationTimestamp", "date"),
        Column("SECRET-NAME", ".spec.credentials.secretRef.name", priority=1),
    ),
)

SECRET = Kind(
    group="", version="v1", kind="Secret", plural="secrets", struct=Secret, namespaced=True
)
SECRET_METADATA = Kind(
    group="", version="v1", kind="Secret", plural="secrets", struct=Object, namespaced=True
)
NAMESPACE = Kind(group="", version="v1", kind="Namespace", plural="namespaces", struct=Object)
EVENT = Kind(group="", version="v1", kind="Event", plural="events", struct=Object, namespaced=True)
CRD = Kind(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    struct=CustomResourceDefinition,
)

SERVED = (RELEASE, PROVIDER_CONFIG)
