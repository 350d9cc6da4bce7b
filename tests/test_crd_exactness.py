"""The CRDs say what provider-helm's say, line by line; what is more or looser is listed here.

A line is a path and its facts: the type, `!` for required, then default, enum, format, pattern and markers.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

CRDS = Path(__file__).resolve().parent.parent / "src/pilothouse/api/crds"
MARKERS = (
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-map-type",
    "x-kubernetes-list-type",
)

RELEASE = """\
spec object !
spec.managementPolicies array default ['*']
spec.managementPolicies[] string enum Observe|Create|Update|Delete|LateInitialize|*
spec.writeConnectionSecretToRef object
spec.writeConnectionSecretToRef.name string !
spec.rollbackLimit integer format int32
spec.connectionDetails array
spec.connectionDetails[] object x-kubernetes-map-type atomic
spec.connectionDetails[].apiVersion string
spec.connectionDetails[].kind string
spec.connectionDetails[].name string
spec.connectionDetails[].namespace string
spec.connectionDetails[].fieldPath string
spec.connectionDetails[].resourceVersion string
spec.connectionDetails[].uid string
spec.connectionDetails[].toConnectionSecretKey string
spec.connectionDetails[].skipPartOfReleaseCheck boolean
spec.forProvider object !
spec.forProvider.chart object !
spec.forProvider.chart.repository string
spec.forProvider.chart.name string
spec.forProvider.chart.version string
spec.forProvider.chart.url string
spec.forProvider.chart.digest string pattern ^sha256:[a-f0-9]{64}$
spec.forProvider.chart.pullSecretRef object
spec.forProvider.chart.pullSecretRef.name string !
spec.forProvider.skipCreateNamespace boolean
spec.forProvider.wait boolean
spec.forProvider.skipCRDs boolean
spec.forProvider.insecureSkipTLSVerify boolean
spec.forProvider.plainHTTP boolean
spec.forProvider.takeOwnership boolean
spec.forProvider.ssaForceConflicts boolean
spec.forProvider.waitTimeout string
spec.forProvider.maxHistory integer default 20
spec.forProvider.values object x-kubernetes-preserve-unknown-fields True
spec.forProvider.valuesFrom array
spec.forProvider.valuesFrom[] object
spec.forProvider.patchesFrom array
spec.forProvider.patchesFrom[] object
spec.forProvider.set array
spec.forProvider.set[] object
spec.forProvider.set[].name string !
spec.forProvider.set[].value string
spec.forProvider.set[].valueFrom object
status object
status.conditions array x-kubernetes-list-type map
status.conditions[] object
status.conditions[].type string !
status.conditions[].status string !
status.conditions[].reason string !
status.conditions[].lastTransitionTime string ! format date-time
status.conditions[].message string
status.conditions[].observedGeneration integer format int64
status.observedGeneration integer format int64
status.lastHandledReconcileAt string
status.atProvider object
status.atProvider.state string
status.atProvider.releaseDescription string
status.atProvider.revision integer
status.atProvider.version string
status.atProvider.digest string
status.atProvider.ownershipTaken boolean
status.patchesSha string
status.failed integer format int32
status.synced boolean
"""
KEY_REFERENCE = """\
{at}.configMapKeyRef object
{at}.configMapKeyRef.name string !
{at}.configMapKeyRef.key string
{at}.configMapKeyRef.optional boolean
{at}.secretKeyRef object
{at}.secretKeyRef.name string !
{at}.secretKeyRef.key string
{at}.secretKeyRef.optional boolean
"""
# caBundle came upstream after the version that the rest is of.
REFERENCES = ("valuesFrom[]", "patchesFrom[]", "set[].valueFrom", "caBundle")
SOURCES = [f"spec.forProvider.{at}" for at in REFERENCES]
RELEASE += "".join(KEY_REFERENCE.format(at=at) for at in SOURCES)
CLUSTER_RELEASE = (
    RELEASE
    + """\
spec.deletionPolicy string default 'Delete' enum Orphan|Delete
spec.providerConfigRef object default {'name': 'default'}
spec.providerConfigRef.name string !
spec.providerConfigRef.policy object
spec.providerConfigRef.policy.resolution string default 'Required' enum Required|Optional
spec.providerConfigRef.policy.resolve string enum Always|IfNotPresent
spec.writeConnectionSecretToRef.namespace string !
spec.forProvider.chart.pullSecretRef.namespace string !
spec.forProvider.namespace string !
"""
)
NAMESPACED_RELEASE = (
    RELEASE
    + """\
spec.providerConfigRef object default {'kind': 'ClusterProviderConfig', 'name': 'default'}
spec.providerConfigRef.kind string !
spec.providerConfigRef.name string !
spec.forProvider.namespace string
"""
)
SOURCE = """\
{at} object {required}
{at}.source string ! {sources}
{at}.secretRef object
{at}.secretRef.name string !
{at}.secretRef.namespace string !
{at}.secretRef.key string !
{at}.env object
{at}.env.name string !
{at}.fs object
{at}.fs.path string !
"""
ORIGINS = "enum None|Secret|InjectedIdentity|Environment|Filesystem"
IDENTITIES = (
    "GoogleApplicationCredentials|AzureServicePrincipalCredentials|AzureWorkloadIdentityCredentials"
    "|UpboundTokens|AWSWebIdentityCredentials|NebiusServiceAccountCredentials"
)
CONFIG = (
    "spec object !\n"
    + SOURCE.format(at="spec.credentials", required="!", sources=ORIGINS)
    + SOURCE.format(at="spec.identity", required="", sources=ORIGINS)
    + f"""\
spec.identity.type string ! enum {IDENTITIES}
status object
status.users integer format int64
"""
    + "".join(f"{line}\n" for line in RELEASE.splitlines() if line.startswith("status.conditions"))
)
CLUSTER_CONFIG = CONFIG.replace("spec.credentials object !", "spec.credentials object")
RESOURCE = """\
providerConfigRef object !
providerConfigRef.name string !
resourceRef object !
resourceRef.apiVersion string !
resourceRef.kind string !
resourceRef.name string !
resourceRef.uid string
"""
CLUSTER_USAGE = (
    RESOURCE
    + """\
providerConfigRef.policy object
providerConfigRef.policy.resolution string default 'Required' enum Required|Optional
providerConfigRef.policy.resolve string enum Always|IfNotPresent
"""
)
NAMESPACED_USAGE = RESOURCE + "providerConfigRef.kind string !\n"

# Ours, beyond upstream: each must work, and none may be required.
KEY_NAMESPACES = "".join(
    f"{at}.{ref}.namespace string\n"
    for at in SOURCES
    for ref in ("configMapKeyRef", "secretKeyRef")
)
KEYS_NAMESPACES = """\
spec.forProvider.chart.git.secretRef.namespace string
spec.forProvider.chart.verify.secretRef.namespace string
"""
RELEASE_EXTENSIONS = """\
spec.forProvider.caBundle object
spec.drift object
spec.drift.mode string enum Correct|Warn|Ignore
spec.drift.ignore array
spec.drift.ignore[] object
spec.drift.ignore[].paths array !
spec.drift.ignore[].paths[] string
spec.drift.ignore[].target object
spec.drift.ignore[].target.group string
spec.drift.ignore[].target.version string
spec.drift.ignore[].target.kind string
spec.drift.ignore[].target.name string
spec.drift.ignore[].target.namespace string
status.hooks array
status.hooks[] object
status.hooks[].kind string
status.hooks[].name string
status.hooks[].events array
status.hooks[].events[] string
status.hooks[].phase string
status.hooks[].started string format date-time
status.hooks[].finished string format date-time
status.hooks[].log string
status.test object
status.test.requestedAt string
status.test.phase string
status.test.revision integer
status.test.started string format date-time
status.test.finished string format date-time
status.test.message string
status.test.results array
status.test.results[] object
status.test.results[].name string
status.test.results[].phase string
status.test.results[].started string format date-time
status.test.results[].finished string format date-time
status.drift array
status.drift[] object
status.drift[].apiVersion string
status.drift[].kind string
status.drift[].namespace string
status.drift[].name string
status.drift[].paths array
status.drift[].paths[] string
status.drift[].manager string
status.drift[].state string
status.drift[].message string
spec.forProvider.config string
spec.forProvider.chart.inline string
spec.forProvider.chart.git object
spec.forProvider.chart.git.url string !
spec.forProvider.chart.git.ref object
spec.forProvider.chart.git.ref.branch string
spec.forProvider.chart.git.ref.tag string
spec.forProvider.chart.git.ref.semver string
spec.forProvider.chart.git.ref.commit string pattern ^[a-f0-9]{40}$
spec.forProvider.chart.git.path string
spec.forProvider.chart.git.secretRef object
spec.forProvider.chart.git.secretRef.name string !
spec.forProvider.chart.verify object
spec.forProvider.chart.verify.provider string ! enum gpg|cosign
spec.forProvider.chart.verify.secretRef object !
spec.forProvider.chart.verify.secretRef.name string !
spec.upgrade object
spec.upgrade.automatic boolean
spec.upgrade.interval string
status.chart object x-kubernetes-map-type atomic
status.chart.source string
status.chart.version string
status.chart.checked string
status.chart.digest string
status.chart.range string
status.chart.record string
status.chart.republishedDigest string
status.chart.stamp string
status.availableVersion string
spec.forProvider.kustomize object x-kubernetes-preserve-unknown-fields True
spec.readiness string enum Objects|Helm
spec.healthChecks array
spec.healthChecks[] object
spec.healthChecks[].apiVersion string !
spec.healthChecks[].kind string !
spec.healthChecks[].current string
spec.healthChecks[].failed string
spec.externalStatus array
spec.externalStatus[] object
spec.externalStatus[].apiVersion string !
spec.externalStatus[].kind string !
spec.externalStatus[].name string !
spec.externalStatus[].namespace string
spec.dependsOn array
spec.dependsOn[] object
spec.dependsOn[].apiVersion string
spec.dependsOn[].kind string
spec.dependsOn[].name string !
spec.dependsOn[].namespace string
spec.dependsOn[].ready string
spec.dependsOn[].providerConfigRef object
spec.dependsOn[].providerConfigRef.name string !
status.dependencies array
status.dependencies[] object
status.dependencies[].apiVersion string
status.dependencies[].kind string
status.dependencies[].namespace string
status.dependencies[].name string
status.dependencies[].state string
status.dependencies[].message string
status.dependencies[].providerConfig string
status.resources array
status.resources[] object
status.resources[].apiVersion string
status.resources[].kind string
status.resources[].namespace string
status.resources[].name string
status.resources[].state string
status.resources[].message string
status.external array
status.external[] object
status.external[].apiVersion string
status.external[].kind string
status.external[].namespace string
status.external[].name string
status.external[].state string
status.external[].message string
status.watchMode string
status.summary string
status.retries integer
status.nextAttempt string format date-time
status.lastAttempt object x-kubernetes-map-type atomic
status.lastAttempt.action string
status.lastAttempt.digest string
status.lastAttempt.reason string
status.lastAttempt.started string format date-time
status.lastAttempt.finished string format date-time
status.lastAttempt.error string
"""
OLDER_SPELLINGS = """\
spec.reclaimPolicy string enum Delete|Retain|Orphan
spec.providerSelector object
spec.providerSelector.matchControllerRef boolean
"""
CONFIG_OLDER_SPELLING = """\
spec.credentialsSecretRef object
spec.credentialsSecretRef.name string
spec.credentialsSecretRef.namespace string
spec.credentialsSecretRef.key string
"""

STATUS = ".status.conditions[?(@.type=='{}')].status"
RELEASE_COLUMNS = [
    ("CHART", ".spec.forProvider.chart.name", "string"),
    ("VERSION", ".spec.forProvider.chart.version", "string"),
    ("SYNCED", STATUS.format("Synced"), "string"),
    ("READY", STATUS.format("Ready"), "string"),
    ("STATE", ".status.atProvider.state", "string"),
    ("REVISION", ".status.atProvider.revision", "integer"),
    ("DESCRIPTION", ".status.atProvider.releaseDescription", "string"),
    ("AGE", ".metadata.creationTimestamp", "date"),
]
# Upstream's points at a field that does not exist in two of its three kinds.
CONFIG_COLUMNS = [
    ("AGE", ".metadata.creationTimestamp", "date"),
    ("SECRET-NAME", ".spec.credentials.secretRef.name", "string"),
]
USAGE_COLUMNS = [
    ("AGE", ".metadata.creationTimestamp", "date"),
    ("CONFIG-NAME", ".providerConfigRef.name", "string"),
    ("RESOURCE-KIND", ".resourceRef.kind", "string"),
    ("RESOURCE-NAME", ".resourceRef.name", "string"),
]
OWN_COLUMNS = {"OBJECTS", "WHY"}

MANAGED, PROVIDER = ["crossplane", "managed", "helm"], ["crossplane", "provider", "helm"]
OLD, NEW = ["v1alpha1", "v1beta1"], ["v1beta1"]
NAMESPACE_COLUMN = ("NAMESPACE", ".spec.forProvider.namespace", "string")
# name, scope, versions, categories (upstream's azuread was a slip), columns, fields, ours
TABLE: list[tuple[str, str, list[str], list[str], list[Any], str, str]] = [
    (
        *("releases.helm.crossplane.io", "Cluster", OLD, MANAGED),
        [NAMESPACE_COLUMN, *RELEASE_COLUMNS],
        CLUSTER_RELEASE,
        RELEASE_EXTENSIONS + OLDER_SPELLINGS + KEY_NAMESPACES + KEYS_NAMESPACES,
    ),
    (
        *("providerconfigs.helm.crossplane.io", "Cluster", OLD, PROVIDER),
        *(CONFIG_COLUMNS, CLUSTER_CONFIG, CONFIG_OLDER_SPELLING),
    ),
    (
        *("providerconfigusages.helm.crossplane.io", "Cluster", OLD, PROVIDER),
        *(USAGE_COLUMNS, CLUSTER_USAGE, ""),
    ),
    (
        *("releases.helm.m.crossplane.io", "Namespaced", NEW, MANAGED),
        *(RELEASE_COLUMNS, NAMESPACED_RELEASE, RELEASE_EXTENSIONS),
    ),
    (
        *("providerconfigs.helm.m.crossplane.io", "Namespaced", NEW, PROVIDER),
        *(CONFIG_COLUMNS, CONFIG, ""),
    ),
    (
        *("clusterproviderconfigs.helm.m.crossplane.io", "Cluster", NEW, PROVIDER),
        *(CONFIG_COLUMNS, CONFIG, ""),
    ),
    (
        *("providerconfigusages.helm.m.crossplane.io", "Namespaced", NEW, PROVIDER),
        *(USAGE_COLUMNS, NAMESPACED_USAGE, ""),
    ),
]


def lines_of(schema: dict[str, Any], path: str = "", *, required: bool = False) -> list[str]:
    """Flatten a schema into lines of the table."""
    facts = [path, schema.get("type", ""), "!" if required else ""]
    if "default" in schema:
        facts.append(f"default {schema['default']!r}")
    if "enum" in schema:
        facts.append("enum " + "|".join(schema["enum"]))
    facts += [
        f"{name} {schema[name]}" for name in ("format", "pattern", *MARKERS) if name in schema
    ]
    found = [" ".join(one for one in facts if one)] if path else []
    for name, inner in schema.get("properties", {}).items():
        below = f"{path}.{name}" if path else name
        if below not in {"apiVersion", "kind", "metadata"}:
            found += lines_of(inner, below, required=name in schema.get("required", []))
    if "items" in schema:
        found += lines_of(schema["items"], f"{path}[]")
    return found


def versions_of(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = load(name)["versions"]
    return found


def load(name: str) -> dict[str, Any]:
    spec: dict[str, Any] = yaml.safe_load((CRDS / f"{name}.yaml").read_text())["spec"]
    return spec


@pytest.mark.parametrize("row", TABLE, ids=[row[0] for row in TABLE])
def test_every_line_is_upstreams_or_listed_as_ours(row):
    name, _, _, _, _, upstream, ours = row
    expected = set((upstream + ours).splitlines())
    # What is inside something of ours may be needed there; what is not, never.
    listed = [line.split() for line in ours.splitlines()]
    paths = {words[0] for words in listed}
    outer = [words for words in listed if words[0].rpartition(".")[0] not in paths]
    assert all("!" not in words[2:3] for words in outer)
    for version in versions_of(name):
        found = lines_of(version["schema"]["openAPIV3Schema"])
        if version["name"] == "v1alpha1":
            # It also takes values as text, which no type can say.
            found = [
                one.replace("values x-", "values object x-")
                if one.startswith("spec.forProvider.values x-")
                else one
                for one in found
            ]
        assert {" ".join(one.split()) for one in expected} == set(found)
        assert len(found) == len(set(found))


@pytest.mark.parametrize("row", TABLE, ids=[row[0] for row in TABLE])
def test_names_versions_categories_and_columns(row):
    name, scope, versions, categories, columns, _, _ = row
    spec = load(name)
    assert spec["scope"] == scope
    assert f"{spec['names']['plural']}.{spec['group']}" == name
    assert spec["names"]["singular"] == spec["names"]["kind"].lower()
    assert spec["names"]["categories"] == categories
    assert "shortNames" not in spec["names"]
    assert "conversion" not in spec
    assert [one["name"] for one in spec["versions"]] == versions
    assert [one["storage"] for one in spec["versions"]] == [one == "v1beta1" for one in versions]
    for version in spec["versions"]:
        assert version["served"]
        assert ("subresources" in version) == ("usage" not in name)
        shown = [
            (one["name"], one["jsonPath"], one["type"])
            for one in version["additionalPrinterColumns"]
            if one["name"] not in OWN_COLUMNS
        ]
        assert shown == columns


def test_the_versions_of_a_kind_differ_in_one_type_only():
    for name, _, served, *_ in TABLE:
        if served == OLD:
            old, new = (one["schema"]["openAPIV3Schema"] for one in versions_of(name))
            if name.startswith("releases"):
                values = new["properties"]["spec"]["properties"]["forProvider"]["properties"]
                assert values["values"].pop("type") == "object"
            assert old == new


def test_every_field_is_described():
    for name, *_ in TABLE:
        for version in versions_of(name):
            properties = version["schema"]["openAPIV3Schema"]["properties"]
            for part in ("spec", "status", "providerConfigRef", "resourceRef"):
                assert_described(properties.get(part, {}), f"{name} {part}")


def assert_described(schema: dict[str, Any], path: str) -> None:
    for name, inner in schema.get("properties", {}).items():
        assert inner.get("description"), f"{path}.{name}"
        assert_described(inner, f"{path}.{name}")
    if "items" in schema:
        assert_described(schema["items"], f"{path}[]")
