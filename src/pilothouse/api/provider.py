"""ProviderConfig: how to reach a target cluster."""

from typing import Annotated

from pilothouse.api.meta import Condition, ObjectMeta, Wire, described


class SecretKeyReference(Wire, frozen=True):
    """One key of a Secret on the management cluster."""

    name: Annotated[str, described("Name of the Secret.")]
    namespace: Annotated[str, described("Namespace of the Secret.")]
    key: Annotated[str, described("The key whose value is used.")]


class Credentials(Wire, frozen=True):
    """Where the kubeconfig comes from."""

    source: Annotated[
        str,
        described(
            "InjectedIdentity: the cluster Pilothouse runs against. Secret: a kubeconfig.",
            enum=["Secret", "InjectedIdentity"],
        ),
    ]
    secret_ref: Annotated[
        SecretKeyReference | None, described("The kubeconfig, with source Secret.")
    ] = None


class ProviderConfigSpec(Wire, frozen=True):
    """How to reach the cluster."""

    credentials: Annotated[Credentials, described("Where the kubeconfig comes from.")]


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


class Secret(Wire, frozen=True):
    """A Secret with its data still in base64."""

    metadata: ObjectMeta
    data: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"Secret({self.metadata.namespace}/{self.metadata.name}, …)"
