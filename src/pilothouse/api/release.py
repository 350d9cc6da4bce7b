"""Release: which chart, which values, which cluster; and what became of it.

Field for field the API of crossplane-contrib/provider-helm, so that its manifests apply unchanged.
A field is here only if it works.
"""

from typing import Annotated, Any

import msgspec

from pilothouse.api.meta import Condition, ObjectMeta, Wire, described

FINALIZER = "finalizer.managedresource.crossplane.io"
EXTERNAL_NAME = "crossplane.io/external-name"
PAUSED = "crossplane.io/paused"


class ChartSpec(Wire, frozen=True):
    """Where the chart comes from."""

    repository: Annotated[
        str, described("URL of the Helm repository (https://, http://) or OCI prefix (oci://).")
    ] = ""
    name: Annotated[str, described("Name of the chart in the repository.")] = ""
    version: Annotated[
        str,
        described("Version of the chart. Empty: the latest stable one, which then stays."),
    ] = ""
    url: Annotated[
        str,
        described("URL of a packaged chart (.tgz or oci://); wins over repository and name."),
    ] = ""
    digest: Annotated[
        str,
        described(
            "Refuse any packaged chart with another digest.", pattern="^sha256:[a-f0-9]{64}$"
        ),
    ] = ""


class ReleaseParameters(Wire, frozen=True):
    """The Helm release as it is to be."""

    chart: Annotated[ChartSpec, described("Where the chart comes from.")]
    namespace: Annotated[str, described("Namespace, on the target cluster, of the release.")]
    values: Annotated[
        Any,
        described(
            "Values for the chart, as in values.yaml.",
            type="object",
            **{"x-kubernetes-preserve-unknown-fields": True},
        ),
    ] = None
    skip_create_namespace: Annotated[
        bool, described("Do not create the namespace if it is missing; fail instead.")
    ] = False
    wait: Annotated[
        bool, described("Let Helm wait until every object is ready before post-install hooks.")
    ] = False
    wait_timeout: Annotated[
        str, described("How long to wait for hooks and readiness, such as 90s or 10m. Default 5m.")
    ] = ""
    # Helm's and Kubernetes' spelling, not camel case.
    skip_crds: Annotated[
        bool, described("Do not create the chart's CRDs, even if they are absent.")
    ] = msgspec.field(default=False, name="skipCRDs")
    insecure_skip_tls_verify: Annotated[
        bool, described("Do not verify the chart server's certificate.")
    ] = msgspec.field(default=False, name="insecureSkipTLSVerify")
    plain_http: Annotated[bool, described("Use http:// for an OCI registry.")] = msgspec.field(
        default=False, name="plainHTTP"
    )
    take_ownership: Annotated[
        bool, described("Adopt existing objects that no Helm release, or another one, owns.")
    ] = False
    ssa_force_conflicts: Annotated[
        bool, described("Take fields over from other field managers when applying.")
    ] = False
    max_history: Annotated[
        int, described("How many revisions Helm keeps; 0 keeps all.", minimum=0, default=20)
    ] = 20


class ProviderConfigReference(Wire, frozen=True):
    """Which ProviderConfig, so which cluster."""

    name: Annotated[str, described("Name of the ProviderConfig.")]


class ReleaseSpec(Wire, frozen=True):
    """What is wanted."""

    for_provider: Annotated[ReleaseParameters, described("The Helm release as it is to be.")]
    provider_config_ref: Annotated[
        ProviderConfigReference,
        described("The cluster to release to.", default={"name": "default"}),
    ] = ProviderConfigReference(name="default")


class AtProvider(Wire, frozen=True):
    """Helm's view of the release."""

    state: Annotated[str, described("Helm's status: deployed, failed, pending-install, …")] = ""
    release_description: Annotated[str, described("What Helm says of the newest revision.")] = ""
    revision: Annotated[int, described("Helm's newest revision.")] = 0
    version: Annotated[str, described("The chart version that is deployed.")] = ""


class LastAttempt(Wire, frozen=True):
    """The newest action, successful or not."""

    action: Annotated[str, described("Install, Upgrade, Uninstall, …")] = ""
    digest: Annotated[str, described("Digest of what was asked.")] = ""
    reason: Annotated[str, described("Why it was done.")] = ""
    started: Annotated[str | None, described("When it began.", format="date-time")] = None
    finished: Annotated[str | None, described("When it ended.", format="date-time")] = None
    error: Annotated[str, described("Why it failed; empty when it did not.")] = ""


class ReleaseStatus(Wire, frozen=True):
    """What is."""

    conditions: Annotated[
        list[Condition],
        described(
            "Synced: the spec has been carried out. Ready: it runs.",
            **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        ),
    ] = []
    observed_generation: Annotated[
        int, described("The newest generation Pilothouse has looked at.", format="int64")
    ] = 0
    at_provider: Annotated[AtProvider, described("Helm's view of the release.")] = AtProvider()
    synced: Annotated[bool, described("The newest revision is what the spec asks for.")] = False
    summary: Annotated[str, described("How many objects are ready, such as 4/4.")] = ""
    last_attempt: Annotated[LastAttempt, described("The newest action.")] = LastAttempt()
    retries: Annotated[int, described("Failed attempts at the current spec.")] = 0
    next_attempt: Annotated[
        str | None, described("When the next attempt is due.", format="date-time")
    ] = None


class Release(Wire, frozen=True):
    """A Helm release that is kept as written."""

    metadata: ObjectMeta
    spec: ReleaseSpec
    api_version: str = "helm.crossplane.io/v1beta1"
    kind: str = "Release"
    status: ReleaseStatus = ReleaseStatus()

    @property
    def external_name(self) -> str:
        """The name of the Helm release."""
        return self.metadata.annotations.get(EXTERNAL_NAME) or self.metadata.name

    @property
    def paused(self) -> bool:
        """Whether its owner asked that nothing be done."""
        return self.metadata.annotations.get(PAUSED) == "true"
