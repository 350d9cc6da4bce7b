"""A fleet of provider-helm's is taken over: not a revision, not a manifest, not a Release is lost.

The clusters, Helm's records and the garbage collector are real; provider-helm itself is not to be had here,
so its CRDs, statuses and ownership are laid out as it leaves them.
"""

import json
from collections.abc import Iterator
from typing import Any

import provider_helm
import pytest
import yaml
from provider_helm import NAMESPACE, PATCHED
from stage import INJECTED, ControllerProcess, Stage, eventually, history
from test_crd_exactness import TABLE, lines_of

from pilothouse.clusters.crds import DIGEST
from pilothouse.dev.cluster import DevCluster

NAMES = ("by-three", "by-four", "patched", "referring")


def apply(hub: DevCluster, *manifests: dict[str, Any]) -> None:
    hub.kubectl("apply", "-f", "-", input="\n---\n".join(map(json.dumps, manifests)))


def config_map(name: str, data: dict[str, str]) -> dict[str, Any]:
    where = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": where, "data": data}


def install_package(hub: DevCluster) -> None:
    """A package of Crossplane's that owns the CRDs, and something else that goes with it."""
    apply(hub, *(provider_helm.packages_crd(kind) for kind in ("Provider", "ProviderRevision")))
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
    crds = provider_helm.upstream_crds()
    for crd in crds:
        crd["metadata"]["ownerReferences"] = [owner]
    apply(hub, *crds)
    hub.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")


@pytest.fixture
def fleet(make_cluster, repository, tmp_path, helm3, helm4) -> Iterator[Stage]:
    """A hub as provider-helm leaves it: Releases made by Helm 3, by Helm 4, with patches, with references."""
    hub = make_cluster("migration")
    install_package(hub)
    controller = ControllerProcess(hub, tmp_path)
    stage = Stage(hub, repository, controller, tmp_path)
    apply(hub, INJECTED, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    patches = yaml.safe_dump({"patches": provider_helm.PATCHES})
    apply(
        hub,
        config_map("patches", {"patch.yaml": patches}),
        config_map("base", {"values.yaml": "message: kept\nreplicas: 3\n"}),
    )
    values = {"values": {"message": "kept", "replicas": 1}}
    patches_from = {"configMapKeyRef": {"name": "patches", "namespace": NAMESPACE}}
    values_from = {"configMapKeyRef": {"name": "base", "namespace": NAMESPACE}}
    written = {
        "by-three": values,
        "by-four": values,
        "patched": values | {"patchesFrom": [patches_from]},
        "referring": {"valuesFrom": [values_from], "set": [{"name": "replicas", "value": "1"}]},
    }
    chart = ("hello", "--repo", repository.url, "--version", "1.0.0", "-n", NAMESPACE)
    given = ("--set-json", "replicas=1", "--set", "message=kept")
    for name in NAMES:
        helm = helm3 if name == "by-three" else helm4
        more = ("--post-renderer", "patches") if name == "patched" else ()
        helm(hub, "install", name, *chart, *given, *more)
        if helm is helm3:
            provider_helm.add_patching_plugin(hub)
        else:
            provider_helm.applied_by_provider_helm(stage, name)
        apply(hub, provider_helm.release(stage, name, **written[name]))
        sha = provider_helm.PATCHES_SHA if name == "patched" else ""
        patch = ("--type=merge", "--subresource=status", "-p", provider_helm.status(sha))
        hub.kubectl(*("patch", "release", name, "--field-manager=crossplane-helm-provider"), *patch)
    assert stage.read(PATCHED)["metadata"]["labels"]["patched"] == "yes"
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
    return [len(history(helm4, stage.hub, NAMESPACE, name)) for name in NAMES]


def test_what_is_laid_out_is_upstreams() -> None:
    crds = {crd["metadata"]["name"]: crd["spec"] for crd in provider_helm.upstream_crds()}
    for name, _, _, _, _, upstream, _ in TABLE:
        newest = crds[name]["versions"][-1]["schema"]["openAPIV3Schema"]
        listed = {line.split()[0] for line in upstream.splitlines() if "caBundle" not in line}
        found = {line.split()[0]: line for line in lines_of(newest)}
        assert {path for path in found if not path.endswith("KeyRef.namespace")} == listed
        assert all("!" in line for path, line in found.items() if path.endswith("Ref.namespace"))
        assert "x-kubernetes-validations" not in json.dumps(crds[name])
    old, new = (json.dumps(one) for one in crds["releases.helm.crossplane.io"]["versions"])
    assert "takeOwnership" not in old
    assert "takeOwnership" in new


def test_a_fleet_is_taken_over_in_the_order_of_the_guide(fleet: Stage, helm4) -> None:
    hub = fleet.hub
    local = provider_helm.release(fleet, "local")
    local["apiVersion"] = "helm.m.crossplane.io/v1beta1"
    local["metadata"]["namespace"] = NAMESPACE
    apply(hub, local)
    before = everything(fleet)
    start(fleet, "--compat=provider-helm", "--observe-only")
    said(fleet, "1 namespaced Release (releases.helm.m.crossplane.io): this version")
    said(fleet, "4 Releases: 4 stay as they are")
    assert fleet.controller.stop() == 0
    assert everything(fleet) == before

    start(fleet)
    said(fleet, "changing nothing: ProviderRevision provider-helm-1 owns the CRD")
    said(fleet, "4 Releases: 4 stay as they are")
    assert fleet.controller.stop() == 0
    assert everything(fleet) == before
    assert list(fleet.controller.directory.glob("archive.db*")) == []

    start(fleet, "--compat=provider-helm", "--take-over")
    for name in NAMES:
        hub.kubectl(
            *("wait", "--for=jsonpath={.status.summary}=4/4", f"release/{name}", "--timeout=60s")
        )
        fleet.wait(name, "Ready")
    assert revisions(fleet, helm4) == [1, 1, 1, 1]
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
    assert len(json.loads(hub.kubectl("get", "releases", "-o", "json"))["items"]) == len(NAMES)
    fleet.release("by-four", "hello", NAMESPACE, {"message": "edited", "replicas": 1})
    label = ("get", "cm", "by-four", "-n", NAMESPACE, "-o", "jsonpath={.data.message}")
    eventually(lambda: hub.kubectl(*label) == "edited")
    reason = fleet.wait("by-four", "Ready")["status"]["lastAttempt"]["reason"]
    assert reason == "values changed: message"
    # What provider-helm applied and nobody asks for any more goes, although nothing is forced.
    patch = '{"spec": {"forProvider": {"patchesFrom": null}}}'
    hub.kubectl("patch", "release", "patched", "--type=merge", "-p", patch)
    eventually(lambda: "patched" not in fleet.read(PATCHED)["metadata"]["labels"])
    appliers = [
        one["manager"]
        for one in provider_helm.managers(fleet, PATCHED)
        if one["operation"] == "Apply"
    ]
    assert appliers == ["helm"]
    assert revisions(fleet, helm4) == [1, 2, 2, 1]


def test_a_difference_is_told_before_anything_is_done(fleet: Stage, helm4) -> None:
    patch = '{"spec": {"forProvider": {"values": {"message": "other"}}}}'
    fleet.hub.kubectl("patch", "release", "by-four", "--type=merge", "-p", patch)
    start(fleet, "--observe-only")
    said(fleet, "by-four: would be upgraded: values changed: message")
    said(fleet, "4 Releases: 3 stay as they are, 1 would be upgraded")
    assert revisions(fleet, helm4) == [1, 1, 1, 1]


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
        hub.kubectl(*patch, provider_helm.status())
        said(mine, "changing nothing: another controller (crossplane-helm-provider) writes")
        before = everything(mine)
        mine.release("late", "hello", NAMESPACE)
        said(mine, "late: would be installed")
        assert {
            name: version for name, version in everything(mine).items() if name in before
        } == before
    finally:
        controller.stop()
