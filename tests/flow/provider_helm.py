"""A cluster as provider-helm leaves it: CRDs, a package, Releases, statuses, and whose the fields are.

It is not to be had here itself, so everything is laid out as its source code writes it.
"""

import hashlib
import json
from typing import Any

import yaml
from kube import MERGE
from stage import Stage
from test_crd_exactness import OWN_COLUMNS, SOURCES, TABLE

from pilothouse.clusters.crds import shipped
from pilothouse.dev.cluster import DevCluster

NAMESPACE = "shop"
PATCH = '[{"op": "add", "path": "/metadata/labels", "value": {"patched": "yes"}}]'
PATCHES = [{"patch": PATCH, "target": {"kind": "ConfigMap"}}]
# As Go spells kustomize's []types.Patch, which is what provider-helm digests.
PATCHES_SHA = hashlib.sha256(json.dumps(PATCHES, separators=(",", ":")).encode()).hexdigest()
PATCHED = "/api/v1/namespaces/shop/configmaps/patched"
# What a schema upstream says; anything else is ours.
UPSTREAM_WORDS = (
    *("type", "description", "default", "enum", "format", "pattern", "items"),
    *("x-kubernetes-preserve-unknown-fields", "x-kubernetes-map-type"),
    *("x-kubernetes-list-type", "x-kubernetes-list-map-keys"),
)
# Required upstream, and not here.
STRICTER = {
    "spec.credentials",
    *(f"{at}.{ref}.namespace" for at in SOURCES for ref in ("configMapKeyRef", "secretKeyRef")),
}
CHART = "spec.forProvider.chart."
STRICTER_IN_V1ALPHA1 = {f"{CHART}{name}" for name in ("repository", "name", "version")}
NOT_IN_V1ALPHA1 = {
    "spec.connectionDetails",
    *(f"{CHART}{name}" for name in ("url", "digest")),
    *(
        f"spec.forProvider.{name}"
        for name in (
            *("skipCreateNamespace", "waitTimeout", "skipCRDs", "insecureSkipTLSVerify"),
            *("plainHTTP", "takeOwnership", "maxHistory", "ssaForceConflicts"),
        )
    ),
    *(f"status.atProvider.{name}" for name in ("digest", "version", "ownershipTaken")),
}
# A post-renderer of Helm 4's, which provider-helm has built in: kustomize.
PLUGIN = """\
apiVersion: v1
type: postrenderer/v1
name: patches
version: 1.0.0
runtime: subprocess
runtimeConfig: {platformCommand: [{command: "${HELM_PLUGIN_DIR}/patch.sh"}]}
"""


def upstream_crds() -> list[dict[str, Any]]:
    """Our CRDs less all that is ours."""
    crds = shipped()
    for name, _, _, _, _, upstream, ours in TABLE:
        lines = [line.split() for line in upstream.splitlines()]
        listed = {words[0]: "!" in words[2:3] for words in lines}
        listed |= {path: True for path in STRICTER if path in f"{upstream}{ours}".split()}
        crds[name]["metadata"] = {"name": name}
        for version in crds[name]["spec"]["versions"]:
            kept = dict(listed)
            if version["name"] == "v1alpha1":
                kept = {path: need for path, need in kept.items() if path not in NOT_IN_V1ALPHA1}
                kept |= {path: True for path in STRICTER_IN_V1ALPHA1 if path in kept}
            schema = version["schema"]["openAPIV3Schema"]
            version["schema"]["openAPIV3Schema"] = _without_ours(schema, kept)
            version["additionalPrinterColumns"] = [
                one for one in version["additionalPrinterColumns"] if one["name"] not in OWN_COLUMNS
            ]
    return list(crds.values())


def _without_ours(schema: dict[str, Any], kept: dict[str, bool], path: str = "") -> dict[str, Any]:
    found = {word: schema[word] for word in UPSTREAM_WORDS if word in schema}
    found.setdefault("type", "object")  # `values` of v1alpha1 may be text, here alone
    if "items" in found:
        found["items"] = _without_ours(found["items"], kept, f"{path}[]")
    fields = {}
    for name, inner in schema.get("properties", {}).items():
        below = f"{path}.{name}" if path else name
        if below in {"apiVersion", "kind", "metadata"}:
            fields[name] = inner
        elif below in kept:
            fields[name] = _without_ours(inner, kept, below)
    if fields:
        found["properties"] = fields
        needed = [name for name in fields if kept.get(f"{path}.{name}" if path else name)]
        found |= {"required": needed} if needed else {}
    return found


def packages_crd(kind: str) -> dict[str, Any]:
    plural = kind.lower() + "s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.pkg.crossplane.io"},
        "spec": {
            "group": "pkg.crossplane.io",
            "scope": "Cluster",
            "names": {"kind": kind, "plural": plural},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "x-kubernetes-preserve-unknown-fields": True,
                        }
                    },
                }
            ],
        },
    }


def release(stage: Stage, name: str, **parameters: Any) -> dict[str, Any]:
    return {
        "apiVersion": "helm.crossplane.io/v1beta1",
        "kind": "Release",
        "metadata": {
            "name": name,
            "annotations": {
                "crossplane.io/external-name": name,
                "crossplane.io/external-create-pending": "2026-01-01T00:00:00Z",
                "crossplane.io/external-create-succeeded": "2026-01-01T00:00:05Z",
            },
            "finalizers": ["finalizer.managedresource.crossplane.io"],
        },
        "spec": {
            "forProvider": {
                "chart": {
                    "repository": stage.repository.url,
                    "name": "hello",
                    "version": "1.0.0",
                },
                "namespace": NAMESPACE,
                **parameters,
            }
        },
    }


def status(sha: str = "") -> str:
    now = "2026-01-01T00:00:10Z"
    conditions = [
        {"type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": now},
        {
            "type": "Synced",
            "status": "True",
            "reason": "ReconcileSuccess",
            "lastTransitionTime": now,
            "observedGeneration": 1,
        },
    ]
    at_provider = {
        "state": "deployed",
        "revision": 1,
        "version": "1.0.0",
        "releaseDescription": "Install complete",
    }
    found = {"conditions": conditions, "atProvider": at_provider, "synced": True}
    return json.dumps({"status": found | ({"patchesSha": sha} if sha else {})})


def add_patching_plugin(hub: DevCluster) -> None:
    """Let Helm 4 apply the patches; Helm 3 would not start with it."""
    plugin = hub.directory / "helm" / "data" / "plugins" / "patches"
    plugin.mkdir(parents=True)
    (plugin / "plugin.yaml").write_text(PLUGIN)
    kustomization = {"resources": ["all.yaml"], "patches": PATCHES}
    (plugin / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    script = plugin / "patch.sh"
    script.write_text(
        '#!/bin/sh\ncd "$HELM_PLUGIN_DIR" && cat > all.yaml &&\n'
        f"exec '{hub.kubectl_path}' kustomize .\n"
    )
    script.chmod(0o755)


def managers(stage: Stage, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = stage.read(path)["metadata"]["managedFields"]
    return found


def applied_by_provider_helm(stage: Stage, name: str) -> None:
    """Give it the fields of a release: `helm` names itself so, Helm's library the program that it is part of."""
    for kind in ("api/v1/{}/serviceaccounts", "api/v1/{}/configmaps", "api/v1/{}/services"):
        _rename(stage, f"/{kind.format(f'namespaces/{NAMESPACE}')}/{name}")
    _rename(stage, f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{name}")


def _rename(stage: Stage, path: str) -> None:
    entries = managers(stage, path)
    assert [one["operation"] for one in entries if one["manager"] == "helm"] == ["Apply"]
    for one in entries:
        if one["manager"] == "helm":
            one["manager"] = "provider-helm"
    stage.kube.request("PATCH", path, {"metadata": {"managedFields": entries}}, content=MERGE)
    assert "helm" not in [one["manager"] for one in managers(stage, path)]
