"""Release: which chart, which values, which cluster; and what became of it.

Field for field the API of crossplane-contrib/provider-helm, so that its manifests apply unchanged.
A field is here only if it works.
"""

from typing import Annotated, Any, ClassVar

import msgspec

from pilothouse.api.chart import GitSpec, SecretReference, VerifySpec
from pilothouse.api.health import ExternalObject, HealthCheck
from pilothouse.api.meta import ObjectMeta, Rule, Wire, described
from pilothouse.api.references import (
    ConnectionDetail,
    ProviderConfigReference,
    ProviderSelector,
    SetValue,
    ValueSource,
)
from pilothouse.api.relations import DependsOn, DriftSpec
from pilothouse.api.status import ReleaseStatus

FINALIZER = "finalizer.managedresource.crossplane.io"
EXTERNAL_NAME = "crossplane.io/external-name"
PAUSED = "crossplane.io/paused"
POLL_INTERVAL = "crossplane.io/poll-interval"
RECONCILE_REQUESTED = "crossplane.io/reconcile-requested-at"
TEST_REQUESTED = "pilothouse.dev/test-requested-at"

# Whatever Go reads as a duration, as provider-helm does, except less than nothing.
_GO_DURATION = r"^(0|(([0-9]+[.]?[0-9]*|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"
# Only what no controller could ever carry out is refused: an OCI repository may be the chart itself, and
# a name may be an address (core/chart_source.py). What is only looked at needs no chart. The API server runs this at
# every write of a status too, and each step into an object costs it a walk over that object's schema: so the usual
# kind of chart comes first.
_CHART_IS_NAMED = Rule(
    "(has(self.forProvider.chart.repository) && self.forProvider.chart.repository != ''"
    " && ((has(self.forProvider.chart.name) && self.forProvider.chart.name != '')"
    " || self.forProvider.chart.repository.matches('^oci://[^/]+/.*[^/]')))"
    " || (has(self.forProvider.chart.url) && self.forProvider.chart.url != '')"
    " || has(self.forProvider.chart.git)"
    " || (has(self.forProvider.chart.inline) && self.forProvider.chart.inline != '')"
    " || (has(self.forProvider.chart.name) && self.forProvider.chart.name.contains('://'))"
    " || !('*' in self.managementPolicies || 'Create' in self.managementPolicies"
    " || 'Update' in self.managementPolicies || 'Delete' in self.managementPolicies)",
    "spec.forProvider.chart: give repository and name, or url, or git, or inline",
)


class ChartSpec(Wire, frozen=True):
    """Where the chart comes from."""

    repository: Annotated[
        str, described("URL of the Helm repository (https://, http://) or OCI prefix (oci://).")
    ] = ""
    name: Annotated[str, described("Name of the chart in the repository.")] = ""
    version: Annotated[
        str,
        described(
            "Version of the chart, or a range such as ~1.2 of which spec.upgrade decides. "
            "Empty: the latest stable one, which then stays."
        ),
    ] = ""
    url: Annotated[
        str,
        described("URL of a packaged chart (.tgz or oci://); wins over repository and name."),
    ] = ""
    digest: Annotated[
        str,
        described(
            "Refuse any packaged chart (for OCI: or manifest) with another digest.",
            pattern="^sha256:[a-f0-9]{64}$",
        ),
    ] = ""
    inline: Annotated[
        str,
        described(
            "A packaged chart (.tgz) in base64, at most 512 KiB packed; instead of all the above.",
            **{
                "x-kubernetes-validations": [
                    {
                        "rule": "self.size() <= 710000",
                        "message": "more than 512 KiB packed: push the chart to an OCI registry "
                        "or a chart repository and name it in url",
                    }
                ]
            },
        ),
    ] = ""
    git: Annotated[
        GitSpec | None,
        described("A chart in a git repository; instead of all the above."),
    ] = None
    verify: Annotated[
        VerifySpec | None,
        described("Refuse every chart that none of these keys has signed."),
    ] = None
    pull_secret_ref: Annotated[
        SecretReference | None,
        described(
            "A Secret for the repository or registry: username and password, bearerToken, "
            ".dockerconfigjson, or tls.crt and tls.key."
        ),
    ] = None


class ReleaseParameters(Wire, frozen=True):
    """The Helm release as it is to be."""

    chart: Annotated[ChartSpec, described("Where the chart comes from.")]
    # Required in the cluster-scoped CRD; a namespaced Release has one of its own.
    namespace: Annotated[str, described("Namespace, on the target cluster, of the release.")] = ""
    config: Annotated[
        str,
        described("Values for the chart as YAML text, merged after valuesFrom and before values."),
    ] = ""
    values: Annotated[
        Any,
        described(
            "Values for the chart, as in values.yaml; they win over valuesFrom and config.",
            **{"x-kubernetes-preserve-unknown-fields": True},
        ),
    ] = None
    values_from: Annotated[
        list[ValueSource],
        described("YAML documents with values, merged in order; default key values.yaml."),
    ] = []
    set: Annotated[
        list[SetValue], described("Single values, as with --set; they win over everything else.")
    ] = []
    patches_from: Annotated[
        list[ValueSource],
        described("Kustomize patches for what the chart renders; default key patch.yaml."),
    ] = []
    kustomize: Annotated[
        dict[str, Any] | None,
        described(
            "A kustomization for what the chart renders, applied after patchesFrom: patches, images, "
            "labels, replicas, replacements, generators, inline components; nothing that reads files or "
            "renames objects.",
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
        str,
        described(
            "How long to wait for hooks and readiness, such as 90s or 10m. Default 5m.",
            **{
                "x-kubernetes-validations": [
                    {
                        "rule": f"self.matches('{_GO_DURATION}')",
                        "message": "not a duration such as 90s, 5m or 1h30m",
                    }
                ]
            },
        ),
    ] = ""
    # Helm's and Kubernetes' spelling, not camel case.
    skip_crds: Annotated[
        bool, described("Do not create the chart's CRDs, even if they are absent.")
    ] = msgspec.field(default=False, name="skipCRDs")
    insecure_skip_tls_verify: Annotated[
        bool, described("Do not verify the chart server's certificate.")
    ] = msgspec.field(default=False, name="insecureSkipTLSVerify")
    ca_bundle: Annotated[
        ValueSource | None,
        described("PEM certificates to trust the chart's server by; default key ca.crt."),
    ] = None
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
        int, described("How many revisions Helm keeps; 0 keeps all.", default=20)
    ] = 20


class UpgradeSpec(Wire, frozen=True):
    """What to do about newer versions of the chart."""

    automatic: Annotated[
        bool,
        described("Deploy a newer version inside chart.version's range; otherwise only report it."),
    ] = False
    interval: Annotated[
        str, described("How often to ask the repository. Default 10m, at least 10s.")
    ] = ""


class ReleaseSpec(Wire, frozen=True):
    """What is wanted."""

    RULES: ClassVar = (_CHART_IS_NAMED,)

    for_provider: Annotated[ReleaseParameters, described("The Helm release as it is to be.")]
    provider_config_ref: Annotated[
        ProviderConfigReference,
        described("The cluster to release to.", default={"name": "default"}),
    ] = ProviderConfigReference(name="default")
    deletion_policy: Annotated[
        str,
        described(
            "Whether the Helm release goes with the Release.",
            enum=["Orphan", "Delete"],
            default="Delete",
        ),
    ] = ""
    provider_selector: Annotated[
        ProviderSelector | None, described("Find the ProviderConfig by who made both.")
    ] = None
    reclaim_policy: Annotated[
        str, described("The older name of deletionPolicy.", enum=["Delete", "Retain", "Orphan"])
    ] = ""
    management_policies: Annotated[
        list[str],
        described(
            "What Pilothouse may do with the Helm release; none at all means paused.",
            default=["*"],
            items={
                "type": "string",
                "enum": ["Observe", "Create", "Update", "Delete", "LateInitialize", "*"],
            },
        ),
    ] = msgspec.field(default_factory=lambda: ["*"])
    readiness: Annotated[
        str,
        described(
            "What Ready means. Objects: every object is current. Helm: deployed and in sync. "
            "Default: as the controller is set, which is Objects.",
            enum=["Objects", "Helm"],
        ),
    ] = ""
    health_checks: Annotated[
        list[HealthCheck],
        described("Say in CEL when objects of a kind are current.", maxItems=50),
    ] = []
    external_status: Annotated[
        list[ExternalObject],
        described("Objects of other controllers whose state is part of this one's.", maxItems=50),
    ] = []
    depends_on: Annotated[
        list[DependsOn],
        described(
            "What must be ready before an install or upgrade; Releases named here are removed after "
            "this one when both are deleted.",
            maxItems=50,
        ),
    ] = []
    drift: Annotated[
        DriftSpec | None, described("What to do when others change what the chart set.")
    ] = None
    rollback_limit: Annotated[
        int | None,
        described(
            "After a failure roll back and try again, so many times; without it, try again forever.",
            format="int32",
        ),
    ] = None
    upgrade: Annotated[
        UpgradeSpec | None, described("What to do about newer versions of the chart.")
    ] = None
    connection_details: Annotated[
        list[ConnectionDetail],
        described("Values of deployed objects that go into the connection secret."),
    ] = []
    write_connection_secret_to_ref: Annotated[
        SecretReference | None, described("Where the connection secret is written.")
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
