"""The table of kinds: what Pilothouse serves and what it reads."""

from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from pilothouse.api.crd import CustomResourceDefinition
from pilothouse.api.meta import Event, Key, Object, ObjectMeta
from pilothouse.api.provider import (
    ConfigMap,
    Lease,
    ProviderConfig,
    ProviderConfigUsage,
    Secret,
)
from pilothouse.api.release import Release


@dataclass(frozen=True, slots=True)
class Column:
    """One column of `kubectl get`."""

    name: str
    path: str
    type: str = "string"
    priority: int = 0


T = TypeVar("T", bound=msgspec.Struct)


# Known by identity, for every call on an object looks its kind up. So each is made once, in a module, and kept.
@dataclass(frozen=True, slots=True, eq=False)
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
    # Versions served beside the stored one, with the same schema, so that no write loses a field.
    also_served: tuple[str, ...] = ()

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


CLUSTER_GROUP = "helm.crossplane.io"
NAMESPACED_GROUP = "helm.m.crossplane.io"
MANAGED = ("crossplane", "managed", "helm")
PROVIDER = ("crossplane", "provider", "helm")


def _condition(name: str) -> str:
    return f".status.conditions[?(@.type=='{name}')].status"


_AGE = Column("AGE", ".metadata.creationTimestamp", "date")
_RELEASE_COLUMNS = (
    Column("CHART", ".spec.forProvider.chart.name"),
    Column("VERSION", ".spec.forProvider.chart.version"),
    Column("SYNCED", _condition("Synced")),
    Column("READY", _condition("Ready")),
    Column("STATE", ".status.atProvider.state"),
    Column("REVISION", ".status.atProvider.revision", "integer"),
    Column("DESCRIPTION", ".status.atProvider.releaseDescription"),
    _AGE,
    # Upstream's columns end here.
    Column("OBJECTS", ".status.summary"),
    Column("WHY", ".status.conditions[?(@.type=='Ready')].message"),
)
_CONFIG_COLUMNS = (_AGE, Column("SECRET-NAME", ".spec.credentials.secretRef.name", priority=1))
_USAGE_COLUMNS = (
    _AGE,
    Column("CONFIG-NAME", ".providerConfigRef.name"),
    Column("RESOURCE-KIND", ".resourceRef.kind"),
    Column("RESOURCE-NAME", ".resourceRef.name"),
)

RELEASE = Kind(
    group=CLUSTER_GROUP,
    version="v1beta1",
    kind="Release",
    plural="releases",
    struct=Release,
    categories=MANAGED,
    columns=(Column("NAMESPACE", ".spec.forProvider.namespace"), *_RELEASE_COLUMNS),
    also_served=("v1alpha1",),
)
PROVIDER_CONFIG = Kind(
    group=CLUSTER_GROUP,
    version="v1beta1",
    kind="ProviderConfig",
    plural="providerconfigs",
    struct=ProviderConfig,
    categories=PROVIDER,
    columns=_CONFIG_COLUMNS,
    also_served=("v1alpha1",),
)
PROVIDER_CONFIG_USAGE = Kind(
    group=CLUSTER_GROUP,
    version="v1beta1",
    kind="ProviderConfigUsage",
    plural="providerconfigusages",
    struct=ProviderConfigUsage,
    categories=PROVIDER,
    columns=_USAGE_COLUMNS,
    also_served=("v1alpha1",),
)
NAMESPACED_RELEASE = Kind(
    group=NAMESPACED_GROUP,
    version="v1beta1",
    kind="Release",
    plural="releases",
    struct=Release,
    namespaced=True,
    categories=MANAGED,
    columns=_RELEASE_COLUMNS,
)
NAMESPACED_PROVIDER_CONFIG = Kind(
    group=NAMESPACED_GROUP,
    version="v1beta1",
    kind="ProviderConfig",
    plural="providerconfigs",
    struct=ProviderConfig,
    namespaced=True,
    categories=PROVIDER,
    columns=_CONFIG_COLUMNS,
)
CLUSTER_PROVIDER_CONFIG = Kind(
    group=NAMESPACED_GROUP,
    version="v1beta1",
    kind="ClusterProviderConfig",
    plural="clusterproviderconfigs",
    struct=ProviderConfig,
    categories=PROVIDER,
    columns=_CONFIG_COLUMNS,
)
NAMESPACED_PROVIDER_CONFIG_USAGE = Kind(
    group=NAMESPACED_GROUP,
    version="v1beta1",
    kind="ProviderConfigUsage",
    plural="providerconfigusages",
    struct=ProviderConfigUsage,
    namespaced=True,
    categories=PROVIDER,
    columns=_USAGE_COLUMNS,
)

SECRET = Kind(
    group="", version="v1", kind="Secret", plural="secrets", struct=Secret, namespaced=True
)
CONFIG_MAP = Kind(
    group="", version="v1", kind="ConfigMap", plural="configmaps", struct=ConfigMap, namespaced=True
)
NAMESPACE = Kind(group="", version="v1", kind="Namespace", plural="namespaces", struct=Object)
EVENT = Kind(group="", version="v1", kind="Event", plural="events", struct=Event, namespaced=True)
LEASE = Kind(
    group="coordination.k8s.io",
    version="v1",
    kind="Lease",
    plural="leases",
    struct=Lease,
    namespaced=True,
)
CRD = Kind(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    struct=CustomResourceDefinition,
)

SERVED = (
    RELEASE,
    PROVIDER_CONFIG,
    PROVIDER_CONFIG_USAGE,
    NAMESPACED_RELEASE,
    NAMESPACED_PROVIDER_CONFIG,
    CLUSTER_PROVIDER_CONFIG,
    NAMESPACED_PROVIDER_CONFIG_USAGE,
)
