"""What a Release refers to: keys of ConfigMaps and Secrets, a ProviderConfig, fields of deployed objects."""

from typing import Annotated, ClassVar

from pilothouse.api.meta import Rule, Wire, described


class KeySelector(Wire, frozen=True):
    """One key of a ConfigMap or Secret on the management cluster."""

    name: Annotated[str, described("Name of the object.")]
    namespace: Annotated[str, described("Namespace of the object.")] = ""
    key: Annotated[str, described("The key; the default depends on what it is used for.")] = ""
    optional: Annotated[
        bool, described("A missing object or key is skipped instead of an error.")
    ] = False


class ValueSource(Wire, frozen=True):
    """A ConfigMap's or a Secret's key; if both are given the Secret counts."""

    RULES: ClassVar = (
        Rule(
            "has(self.configMapKeyRef) || has(self.secretKeyRef)",
            "give configMapKeyRef or secretKeyRef",
        ),
    )

    config_map_key_ref: Annotated[KeySelector | None, described("A key of a ConfigMap.")] = None
    secret_key_ref: Annotated[KeySelector | None, described("A key of a Secret.")] = None


class SetValue(Wire, frozen=True):
    """One assignment, as in `helm --set name=value`."""

    name: Annotated[str, described("Path of the value: dots nest, a backslash escapes.")]
    # Empty is a value; absent is none.
    value: Annotated[str | None, described("The value, in the grammar of --set.")] = None
    value_from: Annotated[ValueSource | None, described("Where the value is; wins over value.")] = (
        None
    )


class ReferencePolicy(Wire, frozen=True):
    """How a reference is resolved; read for compatibility, Pilothouse always resolves."""

    resolution: Annotated[
        str,
        described(
            "Whether the reference must resolve.", enum=["Required", "Optional"], default="Required"
        ),
    ] = "Required"
    resolve: Annotated[
        str, described("When the reference is resolved.", enum=["Always", "IfNotPresent"])
    ] = ""


class ProviderConfigReference(Wire, frozen=True):
    """Which ProviderConfig, so which cluster."""

    name: Annotated[str, described("Name of the ProviderConfig.")]
    policy: Annotated[ReferencePolicy | None, described("How the reference is resolved.")] = None


class ProviderSelector(Wire, frozen=True):
    """Finds a ProviderConfig instead of naming it."""

    match_controller_ref: Annotated[
        bool, described("The ProviderConfig whose controller is this Release's controller too.")
    ] = False


class ConnectionDetail(Wire, frozen=True):
    """One value of a deployed object that goes into the connection secret."""

    SCHEMA: ClassVar = {"x-kubernetes-map-type": "atomic"}

    api_version: Annotated[str, described("API version of the object.")] = ""
    kind: Annotated[str, described("Kind of the object.")] = ""
    name: Annotated[str, described("Name of the object.")] = ""
    namespace: Annotated[str, described("Namespace of the object.")] = ""
    field_path: Annotated[str, described("Path of the value, such as spec.ports[0].port.")] = ""
    resource_version: Annotated[str, described("Not used; accepted for compatibility.")] = ""
    uid: Annotated[str, described("Not used; accepted for compatibility.")] = ""
    to_connection_secret_key: Annotated[
        str, described("The key under which the value is written.")
    ] = ""
    skip_part_of_release_check: Annotated[
        bool, described("Take the value even if the object is not part of this release.")
    ] = False
