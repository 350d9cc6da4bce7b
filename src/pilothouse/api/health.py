"""How single objects are judged, and what is said of them."""

from typing import Annotated

from pilothouse.api.meta import Wire, described


class HealthCheck(Wire, frozen=True):
    """How to judge objects of a kind that do not tell by the usual conditions."""

    api_version: Annotated[str, described("API version of the objects.")]
    kind: Annotated[str, described("Kind of the objects.")]
    current: Annotated[
        str,
        described(
            "CEL that is true when an object is as it should be; sees object, metadata, spec, status.",
            maxLength=4096,
        ),
    ] = ""
    failed: Annotated[
        str, described("CEL that is true when an object has failed.", maxLength=4096)
    ] = ""


class ExternalObject(Wire, frozen=True):
    """An object that another controller looks after."""

    api_version: Annotated[str, described("API version of the object.")]
    kind: Annotated[str, described("Kind of the object.")]
    name: Annotated[str, described("Name of the object.")]
    namespace: Annotated[str, described("Its namespace; default: the release's.")] = ""


class ResourceState(Wire, frozen=True):
    """One object and how it is."""

    api_version: Annotated[str, described("API version of the object.")] = ""
    kind: Annotated[str, described("Kind of the object.")] = ""
    namespace: Annotated[str, described("Namespace; empty for cluster-scoped objects.")] = ""
    name: Annotated[str, described("Name of the object.")] = ""
    state: Annotated[
        str, described("Current, InProgress, Failed, Terminating, NotFound or Unknown.")
    ] = ""
    message: Annotated[str, described("Why it is not current.")] = ""
