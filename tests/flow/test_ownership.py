"""Objects that were there before, or that others write to: never taken silently, and taken when asked."""

import json
from typing import Any

import yaml
from stage import Stage, conditions, eventually, history
from templates import hook

CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Values.name }}
data: {message: {{ .Values.message | quote }}}
"""


def put(hub, namespace: str, name: str, owner: str = "", manager: str = "kubectl") -> None:
    annotations = {"meta.helm.sh/release-name": owner, "meta.helm.sh/release-namespace": namespace}
    labels = {"app.kubernetes.io/managed-by": "Helm"}
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": namespace,
            **({"annotations": annotations, "labels": labels} if owner else {}),
        },
        "data": {"message": "before"},
    }
    hub.kubectl(
        *("apply", "--server-side", "--force-conflicts", f"--field-manager={manager}", "-f", "-"),
        input=json.dumps(manifest),
    )


def message(hub, namespace: str, name: str) -> str:
    return str(hub.kubectl("get", "cm", name, "-n", namespace, "-o", "jsonpath={.data.message}"))


def test_objects_of_nobody_and_of_others_are_adopted_only_when_asked(
    stage: Stage, hub, helm4, namespace
) -> None:
    stage.chart("adopter", {"cm.yaml": CONFIG_MAP})
    put(hub, namespace, "nobodys")
    put(hub, namespace, "somebodys", owner="other-release", manager="helm")
    for name, owner in (("nobodys", ""), ("somebodys", "other-release")):
        values = {"name": name, "message": "mine"}
        stage.release(name, "adopter", namespace, values)
        said = stage.refused(name, "AlreadyExists")
        assert f'ConfigMap "{name}"' in said
        assert owner in said
        assert message(hub, namespace, name) == "before"
        stage.release(name, "adopter", namespace, values, takeOwnership=True)
        if not owner:
            # The object is ours from now on; a field that somebody else set is another question.
            assert '"kubectl": .data.message' in stage.refused(name, "FieldConflict")
            taken = {"takeOwnership": True, "ssaForceConflicts": True}
            stage.release(name, "adopter", namespace, values, **taken)
        release = stage.wait(name, "Ready")
        assert message(hub, namespace, name) == "mine"
        assert release["status"]["atProvider"]["ownershipTaken"] is True
        found = json.loads(hub.kubectl("get", "cm", name, "-n", namespace, "-o", "json"))
        assert found["metadata"]["annotations"]["meta.helm.sh/release-name"] == name


def test_a_field_of_another_manager_is_taken_over_only_when_asked(
    stage: Stage, hub, namespace
) -> None:
    stage.chart("contested", {"cm.yaml": CONFIG_MAP})
    values = {"name": "shared", "message": "first"}
    # Otherwise the neighbour's change would be put back before there is a conflict.
    left: dict[str, Any] = {"beside": {"drift": {"mode": "Warn"}}}
    stage.release("claims", "contested", namespace, values, **left)
    stage.wait("claims", "Ready")
    put(hub, namespace, "shared", manager="neighbour")
    values["message"] = "second"
    stage.release("claims", "contested", namespace, values, **left)
    said = stage.refused("claims", "FieldConflict")
    assert "neighbour" in said
    assert "ConfigMap" in said
    assert message(hub, namespace, "shared") == "before"
    stage.release("claims", "contested", namespace, values, ssaForceConflicts=True, **left)
    stage.wait("claims", "Ready")
    assert message(hub, namespace, "shared") == "second"


def test_a_release_of_helm_3_takes_fields_over_too(
    stage: Stage, hub, helm3, helm4, namespace
) -> None:
    stage.chart("elder", {"cm.yaml": CONFIG_MAP})
    source = ("elder", "--repo", stage.repository.url, "-n", namespace)
    helm3(hub, "install", "old", *source, "--set", "name=aged,message=first")
    put(hub, namespace, "aged", manager="neighbour")
    values = {"name": "aged", "message": "second"}
    stage.release("old", "elder", namespace, values, ssaForceConflicts=True)
    stage.wait("old", "Ready")
    assert message(hub, namespace, "aged") == "second"
    assert len(history(helm4, hub, namespace, "old")) == 2


ACCOUNT = """\
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .Release.Name }}
"""
HOOK_ACCOUNT = ACCOUNT + '  annotations: {helm.sh/hook: pre-install, helm.sh/hook-weight: "-5"}\n'


def test_patches_work_with_hooks_that_share_an_account(stage: Stage, hub, namespace) -> None:
    """A hook needs the account before the chart's own is there, so charts have it twice.

    Unlike provider-helm: Patches.
    """
    stage.chart("twice", {"account.yaml": ACCOUNT, "hook.yaml": HOOK_ACCOUNT})
    operation = '[{"op": "add", "path": "/metadata/labels", "value": {"patched": "yes"}}]'
    patches = {"patches": [{"target": {"kind": "ServiceAccount"}, "patch": operation}]}
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "patch", "namespace": namespace},
        "data": {"patch.yaml": yaml.safe_dump(patches)},
    }
    hub.kubectl("apply", "-f", "-", input=json.dumps(config_map))
    reference = {"configMapKeyRef": {"name": "patch", "namespace": namespace}}
    stage.release("sharing", "twice", namespace, patchesFrom=[reference], takeOwnership=True)
    stage.wait("sharing", "Ready")
    label = ("get", "sa", "sharing", "-n", namespace, "-o", "jsonpath={.metadata.labels.patched}")
    assert hub.kubectl(*label) == "yes"


def test_crds_are_left_out_when_asked(stage: Stage, hub, namespace) -> None:
    """Unlike provider-helm: CRDs."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "trinkets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Trinket", "plural": "trinkets"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }
    stage.chart("trinkets", {"cm.yaml": CONFIG_MAP}, crds__trinkets_dot_yaml=yaml.safe_dump(crd))
    values = {"name": "trinkets", "message": "x"}
    stage.release("bare", "trinkets", namespace, values, skipCRDs=True)
    release = stage.wait("bare", "Ready")
    assert "NotFound" in hub.kubectl("get", "crd", "trinkets.example.com", check=False)
    assert conditions(release)["Synced"]["status"] == "True"
    # Upgrades leave them out as well, and bring them once they may.
    for number, skipped in ((2, True), (3, False)):
        stage.release("bare", "trinkets", namespace, {**values, "n": number}, skipCRDs=skipped)
        eventually(lambda n=number: stage.get("bare")["status"]["atProvider"]["revision"] == n)
        answer = hub.kubectl("get", "crd", "trinkets.example.com", check=False)
        assert ("NotFound" in answer) is skipped
    stage.delete("bare")
    hub.kubectl("delete", "crd", "trinkets.example.com")


def test_no_more_revisions_are_kept_than_asked(stage: Stage, hub, helm4, namespace) -> None:
    """By upgrades, by the adoption of a long history, and by rollbacks."""
    stage.chart(
        "brief", {"cm.yaml": CONFIG_MAP, "hook.yaml": hook("pre-upgrade", "{{ .Values.hook }}")}
    )
    source = ("brief", "--repo", stage.repository.url, "-n", namespace)
    good = "name=brief,message=1,hook=succeeded"
    helm4(hub, "install", "short", *source, "--set", good)
    for number in (2, 3, 4):
        helm4(hub, "upgrade", "short", *source, "--set", f"{good},number={number}")
    values = {"name": "brief", "message": "mine", "hook": "succeeded"}
    stage.release("short", "brief", namespace, values, maxHistory=2)
    stage.wait("short", "Ready")
    assert [one["revision"] for one in history(helm4, hub, namespace, "short")] == [4, 5]
    patch = '{"spec":{"rollbackLimit":1}}'
    hub.kubectl("patch", "release", "short", "--type=merge", "-p", patch)
    stage.release("short", "brief", namespace, values | {"hook": "failed"}, maxHistory=2)
    stage.refused("short", "RollbackLimitReached")
    kept = [(one["revision"], one["status"]) for one in history(helm4, hub, namespace, "short")]
    # Helm never prunes what is deployed, so the failed one in between had to go.
    assert kept == [(5, "superseded"), (7, "deployed")]
