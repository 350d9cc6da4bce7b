"""ProviderConfig: how to reach a target cluster; and who uses it."""

from typing import Annotated, ClassVar

import msgspec

from pilothouse.api.meta import Condition, ObjectMeta, Rule, Wire, described
from pilothouse.api.references import ReferencePolicy

IN_USE = "in-use.crossplane.io"
CONFIG_LABEL = "crossplane.io/provider-config"


class SecretKeyReference(Wire, frozen=True):
    """One key of a Secret on the management cluster."""

    name: Annotated[str, described("Name of the Secret.")]
    namespace: Annotated[str, described("Namespace of the Secret.")]
    key: Annotated[str, described("The key whose value is used.")]


class EnvironmentVariable(Wire, frozen=True):
    """A variable in the controller's environment."""

    name: Annotated[str, described("Name of the variable.")]


class File(Wire, frozen=True):
    """A file in the controller's file system."""

    path: Annotated[str, described("Path of the file.")]


class Credentials(Wire, frozen=True):
    """Where the kubeconfig comes from."""

    source: Annotated[
        str,
        described(
            "InjectedIdentity: the cluster Pilothouse runs against. Otherwise: a kubeconfig.",
            enum=["None", "Secret", "InjectedIdentity", "Environment", "Filesystem"],
        ),
    ]
    secret_ref: Annotated[
        SecretKeyReference | None, described("The kubeconfig, with source Secret.")
    ] = None
    env: Annotated[
        EnvironmentVariable | None, described("The kubeconfig, with source Environment.")
    ] = None
    fs: Annotated[File | None, described("The kubeconfig, with source Filesystem.")] = None


class Identity(Credentials, frozen=True, kw_only=True):
    """A cloud's way to log in, beside the kubeconfig."""

    type: Annotated[
        str,
        described(
            "Which cloud's way it is.",
            enum=[
                "GoogleApplicationCredentials",
                "AzureServicePrincipalCredentials",
                "AzureWorkloadIdentityCredentials",
                "UpboundTokens",
                "AWSWebIdentityCredentials",
                "NebiusServiceAccountCredentials",
            ],
        ),
    ]


class LooseSecretReference(Wire, frozen=True):
    """A Secret, as the first design wrote it."""

    name: Annotated[str, described("Name of the Secret.")] = ""
    namespace: Annotated[str, described("Namespace of the Secret.")] = ""
    key: Annotated[str, described("The key; default kubeconfig.")] = ""


class ProviderConfigSpec(Wire, frozen=True):
    """How to reach the cluster."""

    RULES: ClassVar = (
        Rule(
            "has(self.credentials) || has(self.credentialsSecretRef)",
            "spec.credentials: say where the kubeconfig comes from",
        ),
    )

    credentials: Annotated[Credentials | None, described("Where the kubeconfig comes from.")] = None
    identity: Annotated[
        Identity | None, described("A cloud's way to log in, beside the kubeconfig.")
    ] = None
    credentials_secret_ref: Annotated[
        LooseSecretReference | None,
        described("The older spelling of credentials with source Secret."),
    ] = None


class ProviderConfigStatus(Wire, frozen=True):
    """Whether it is in use."""

    conditions: Annotated[
        list[Condition],
        described(
            "What is known of it.",
            **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        ),
    ] = []
    users: Annotated[int, described("How many Releases use it.", format="int64")] = 0


class ProviderConfig(Wire, frozen=True):
    """A cluster that Releases can go to."""

    metadata: ObjectMeta
    spec: ProviderConfigSpec
    api_version: str = "helm.crossplane.io/v1beta1"
    kind: str = "ProviderConfig"
    status: ProviderConfigStatus = ProviderConfigStatus()


class UsageConfigReference(Wire, frozen=True):
    """The ProviderConfig that is used."""

    name: Annotated[str, described("Name of the ProviderConfig.")]
    policy: Annotated[ReferencePolicy | None, described("How the reference is resolved.")] = None


class UsageResourceReference(Wire, frozen=True):
    """The object that uses it."""

    api_version: Annotated[str, described("API version of the user.")]
    kind: Annotated[str, described("Kind of the user.")]
    name: Annotated[str, described("Name of the user.")]
    uid: Annotated[str, described("Uid of the user.")] = ""


class ProviderConfigUsage(Wire, frozen=True):
    """Says that a Release uses a ProviderConfig, which therefore cannot go."""

    metadata: ObjectMeta
    provider_config_ref: Annotated[
        UsageConfigReference, described("The ProviderConfig that is used.")
    ]
    resource_ref: Annotated[UsageResourceReference, described("The object that uses it.")]
    api_version: str = "helm.crossplane.io/v1beta1"
    kind: str = "ProviderConfigUsage"


class ConfigMap(Wire, frozen=True):
    """A ConfigMap."""

    metadata: ObjectMeta
    data: dict[str, str] | None = None


class Secret(Wire, frozen=True):
    """A Secret with its data still in base64."""

    metadata: ObjectMeta
    data: dict[str, str] | None = None
    type: str = ""

    def __repr__(self) -> str:
        return f"Secret({self.metadata.namespace}/{self.metadata.name}, …)"


class LeaseSpec(Wire, frozen=True):
    """Who holds a lease, and until when."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    renew_time: str | None = None


class Lease(Wire, frozen=True):
    """A heartbeat."""

    metadata: ObjectMeta
    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)
