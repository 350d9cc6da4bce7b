"""A fleet of provider-helm's is taken over: not a revision, not a manifest, not a Release is lost.

The clusters, Helm's records and the garbage collector are real; provider-helm itself is not to be had here,
so its CRDs, statuses and ownership are laid out as it leaves them.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from stage import INJECTED, ControllerProcess, Stage, eventually, history

from pilothouse.clusters.crds import DIGEST, shipped
from pilothouse.dev.cluster import DevCluster

NAMESPACE = "shop"
PATCH = '[{"op": "add", "path": "/metadata/labels/patched", "value": "yes"}]'
PATCHES = yaml.safe_dump({"patches": [{"target": {"kind": "ConfigMap"}, "patch": PATCH}]})
# As Go spells kustomize's []types.Patch, which is what provider-helm digests.
PATCHES_SHA = hashlib.sha256(
    json.dumps([{"patch": PATCH, "target": {"kind": "ConfigMap"}}], separators=(",", ":")).encode()
).hexdigest()
# What Pilothouse adds to provider-helm's API.
OUR_PARAMETERS = ("config", "kustomize")
OUR_STATUS = ("lastAttempt", "retries", "nextAttempt", "summary", "resources", "external", "drift")


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


def upstream_crds(owner: dict[str, Any]) -> list[dict[str, Any]]:
    """Our CRDs less what is ours, owned by a package as Crossplane has them."""
    crds = list(shipped().values())
    for crd in crds:
        crd["metadata"] = {"name": crd["metadata"]["name"], "ownerReferences": [owner]}
        for version in crd["spec"]["versions"]:
            fields = version["schema"]["openAPIV3Schema"]["properties"]
            spec = fields.get("spec", {}).get("properties", {})
            for name in OUR_PARAMETERS:
                spec.get("forProvider", {}).get("properties", {}).pop(name, None)
            for name in OUR_STATUS:
                fields.get("status", {}).get("properties", {}).pop(name, None)
    return crds


def apply(hub: DevCluster, *manifests: dict[str, Any]) -> None:
    hub.kubectl("apply", "-f", "-", input="\n---\n".join(map(json.dumps, manifests)))


def as_provider_helm_leaves_it(stage: Stage, name: str, **parameters: Any) -> dict[str, Any]:
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


def upstream_status(sha: str = "") -> str:
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
    status = {"conditions": conditions, "atProvider": at_provider, "synced": True}
    return json.dumps({"status": status | ({"patchesSha": sha} if sha else {})})


@pytest.fixture
def fleet(make_cluster, repository, tmp_path, helm3, helm4) -> Iterator[Stage]:
    """A hub as provider-helm leaves it: three Releases, made by Helm 3, Helm 4 and with patches."""
    hub = make_cluster("migration")
    apply(hub, *(packages_crd(kind) for kind in ("Provider", "ProviderRevision")))
    hub.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    package = {"apiVersion": "pkg.crossplane.io/v1", "kind": "ProviderRevision"}
    apply(hub, package | {"metadata": {"name": "provider-helm-1"}})
    uid = hub.kubectl(
        "get", "providerrevision", "provider-helm-1", "-o", "jsonpath={.metadata.uid}"
    )
    owner = package | {"name": "provider-helm-1", "uid": uid, "controller": True}
    owner["blockOwnerDeletion"] = True
    canary = {"name": "canary", "namespace": "default", "ownerReferences": [owner]}
    apply(hub, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": canary})
    apply(hub, *upstream_crds(owner))
    hub.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    controller = ControllerProcess(hub, tmp_path)
    stage = Stage(hub, repository, controller, tmp_path)
    apply(hub, INJECTED, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    apply(
        hub,
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "patches", "namespace": NAMESPACE},
            "data": {"patch.yaml": PATCHES},
        },
    )
    chart = ("hello", "--repo", repository.url, "--version", "1.0.0", "-n", NAMESPACE)
    for name, helm in (("by-three", helm3), ("by-four", helm4), ("patched", helm4)):
        helm(hub, "install", name, *chart, "--set-json", "replicas=1", "--set", "message=kept")
        reference = {"configMapKeyRef": {"name": "patches", "namespace": NAMESPACE}}
        patched = {"patchesFrom": [reference]} if name == "patched" else {}
        values = {"message": "kept", "replicas": 1}
        apply(hub, as_provider_helm_leaves_it(stage, name, values=values, **patched))
        sha = PATCHES_SHA if patched else ""
        patch = ("--type=merge", "--subresource=status", "-p", upstream_status(sha))
        hub.kubectl(*("patch", "release", name, "--field-manager=crossplane-helm-provider"), *patch)
    yield stage
    if controller.process and controller.process.poll() is None:
        controller.stop()


def start(stage: Stage, *options: str) -> None:
    stage.controller.options = options
    stage.controller.log.unlink(missing_ok=True)
    stage.controller.start()


def said(stage: Stage, line: str) -> None:
    def look() -> bool:
        assert stage.controller.process
        assert stage.controller.process.poll() is None, stage.controller.log.read_text()
        return line in stage.controller.log.read_text()

    eventually(look, what=f"{line!r} in the output: {stage.controller.log}")


def everything(stage: Stage) -> dict[str, str]:
    """The version of all that a controller could have written."""
    kinds = (
        "crd,releases.helm.crossplane.io,providerconfigs.helm.crossplane.io,providerconfigusages"
    )
    found: dict[str, str] = {}
    for kind in (kinds, "secret"):
        listed = json.loads(stage.hub.kubectl("get", kind, "-A", "-o", "json"))["items"]
        for one in listed:
            metadata = one["metadata"]
            found[f"{one['kind']} {metadata['name']}"] = metadata["resourceVersion"]
    return found


def revisions(stage: Stage, helm4) -> list[int]:
    names = ("by-three", "by-four", "patched")
    return [len(history(helm4, stage.hub, NAMESPACE, name)) for name in names]


def test_a_fleet_is_taken_over_in_the_order_of_the_guide(fleet: Stage, helm4) -> None:
    hub, before = fleet.hub, everything(fleet)
    start(fleet, "--compat=provider-helm", "--observe-only")
    said(fleet, "3 Releases: 3 stay as they are")
    assert fleet.controller.stop() == 0
    assert everything(fleet) == before

    start(fleet)
    said(fleet, "changing nothing: ProviderRevision provider-helm-1 owns the CRD")
    said(fleet, "3 Releases: 3 stay as they are")
    assert fleet.controller.stop() == 0
    assert everything(fleet) == before
    assert list(fleet.controller.directory.glob("archive.db*")) == []

    start(fleet, "--compat=provider-helm", "--take-over")
    for name in ("by-three", "by-four", "patched"):
        hub.kubectl(
            *("wait", "--for=jsonpath={.status.summary}=4/4", f"release/{name}", "--timeout=60s")
        )
        fleet.wait(name, "Ready")
    assert revisions(fleet, helm4) == [1, 1, 1]
    crds = json.loads(hub.kubectl("get", "crd", "-o", "json"))["items"]
    ours = [one["metadata"] for one in crds if "helm" in one["spec"]["group"]]
    assert len(ours) == 7
    assert all(DIGEST in one["annotations"] and "ownerReferences" not in one for one in ours)

    # The package goes, and what it still owns goes with it. In the foreground, so that it stays until the collector
    # has seen it: the collector looks for new kinds every half minute, and an owner that is gone before it was ever
    # seen is asked for with doubling pauses instead.
    delete = ("delete", "providerrevision", "provider-helm-1", "--cascade=foreground")
    hub.kubectl(*delete, "--timeout=120s")
    assert not hub.kubectl("get", "cm", "canary", "-n", "default", "--ignore-not-found")
    crds = json.loads(hub.kubectl("get", "crd", "-o", "json"))["items"]
    assert len([one for one in crds if "helm" in one["spec"]["group"]]) == 7
    assert len(json.loads(hub.kubectl("get", "releases", "-o", "json"))["items"]) == 3
    fleet.release("by-four", "hello", NAMESPACE, {"message": "edited", "replicas": 1})
    label = ("get", "cm", "by-four", "-n", NAMESPACE, "-o", "jsonpath={.data.message}")
    eventually(lambda: hub.kubectl(*label) == "edited")
    assert revisions(fleet, helm4) == [1, 2, 1]
    reason = fleet.wait("by-four", "Ready")["status"]["lastAttempt"]["reason"]
    assert reason == "values changed: message"


def test_a_difference_is_told_before_anything_is_done(fleet: Stage, helm4) -> None:
    patch = '{"spec": {"forProvider": {"values": {"message": "other"}}}}'
    fleet.hub.kubectl("patch", "release", "by-four", "--type=merge", "-p", patch)
    start(fleet, "--observe-only")
    said(fleet, "by-four: would be upgraded: values changed: message")
    said(fleet, "3 Releases: 2 stay as they are, 1 would be upgraded")
    assert revisions(fleet, helm4) == [1, 1, 1]


def test_two_controllers_do_not_fight(make_cluster, repository, tmp_path) -> None:
    hub = make_cluster("shared")
    controller = ControllerProcess(hub, tmp_path)
    controller.start()
    try:
        mine = Stage(hub, repository, controller, tmp_path)
        eventually(lambda: "watching" in controller.log.read_text())
        apply(hub, INJECTED)
        mine.release("contested", "hello", NAMESPACE)
        mine.wait("contested", "Ready")
        as_another = ("--field-manager=crossplane-helm-provider", "--subresource=status")
        patch = ("patch", "release", "contested", "--type=merge", *as_another, "-p")
        hub.kubectl(*patch, upstream_status())
        said(mine, "changing nothing: another controller (crossplane-helm-provider) writes")
        before = everything(mine)
        mine.release("late", "hello", NAMESPACE)
        said(mine, "late: would be installed")
        assert {
            name: version for name, version in everything(mine).items() if name in before
        } == before
    finally:
        controller.stop()
