"""How a Release stands to others: what it depends on, and what others may change of it."""

from typing import Annotated, ClassVar

from pilothouse.api.meta import Rule, Wire, described


class ConfigName(Wire, frozen=True):
    """Names a ProviderConfig."""

    name: Annotated[str, described("Name of the ProviderConfig.")]


class DependsOn(Wire, frozen=True):
    """An object that must be ready before this Release is installed or upgraded."""

    RULES: ClassVar = (
        Rule(
            "has(self.apiVersion) == has(self.kind)",
            "give apiVersion and kind, or neither for a Release",
        ),
    )

    name: Annotated[str, described("Name of the object.")]
    api_version: Annotated[str, described("API version of the object; default: a Release's.")] = ""
    kind: Annotated[str, described("Kind of the object; default: Release.")] = ""
    namespace: Annotated[
        str, described("Its namespace, if it has one; default: this release's.")
    ] = ""
    ready: Annotated[
        str,
        described(
            "CEL that is true when the object is ready; sees object, metadata, spec, status. "
            "Default: the object is current, a Release Ready for its newest spec.",
            maxLength=4096,
        ),
    ] = ""
    provider_config_ref: Annotated[
        ConfigName | None,
        described("The cluster the object is on; default: the one this Release is on."),
    ] = None


class DriftTarget(Wire, frozen=True):
    """Which objects; what is empty matches all, and `*` in a name any characters."""

    group: Annotated[str, described("API group, such as apps.")] = ""
    version: Annotated[str, described("API version, such as v1.")] = ""
    kind: Annotated[str, described("Kind, such as Deployment.")] = ""
    name: Annotated[str, described("Name of the object.")] = ""
    namespace: Annotated[str, described("Namespace of the object.")] = ""


class DriftIgnore(Wire, frozen=True):
    """Fields that others may change."""

    paths: Annotated[
        list[str],
        described(
            "JSON pointers, such as /spec/replicas; what is below them counts too, and a step may be *.",
            minItems=1,
            maxItems=50,
            items={"type": "string", "maxLength": 1024},
        ),
    ]
    target: Annotated[DriftTarget, described("Which objects; default: all of the release.")] = (
        DriftTarget()
    )


class DriftSpec(Wire, frozen=True):
    """What to do when others change what the chart set."""

    mode: Annotated[
        str,
        described(
            "Correct: put it back. Warn: say so. Ignore: do not look. Default: as the controller is set, "
            "which is Correct; Warn while the deployed revision was made by another client.",
            enum=["Correct", "Warn", "Ignore"],
        ),
    ] = ""
    ignore: Annotated[list[DriftIgnore], described("What others may change.", maxItems=50)] = []
