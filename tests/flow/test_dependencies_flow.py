"""Releases wait for what they depend on, and go before it."""

import json
from typing import Any

import yaml
from moments import watched
from stage import RELEASES, Stage, conditions, eventually
from templates import hook

CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data:
  message: {{ .Values.message | default "none" | quote }}
"""


def on(*names: str) -> dict[str, Any]:
    return {"dependsOn": [{"name": name} for name in names]}


def install(stage: Stage, *manifests: dict[str, Any]) -> None:
    stage.hub.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(manifests))
    stage.applied += [one["metadata"]["name"] for one in manifests]


def created(stage: Stage, namespace: str, *names: str) -> list[int]:
    """Versions only ever grow, so they tell what was made first."""
    found = [
        json.loads(stage.hub.kubectl("get", "cm", name, "-n", namespace, "-o", "json"))
        for name in names
    ]
    return [int(one["metadata"]["resourceVersion"]) for one in found]


def reason(stage: Stage, name: str, kind: str = "DependenciesReady") -> str:
    return str(conditions(stage.get(name)).get(kind, {}).get("reason", ""))


def test_a_chain_is_installed_in_order(stage: Stage, namespace) -> None:
    stage.chart("link", {"cm.yaml": CONFIG_MAP})

    def link(name: str, *needs: str) -> dict[str, Any]:
        return stage.manifest(name, "link", namespace, beside=on(*needs))

    # The last first: nobody is told in which order to begin.
    install(stage, link("third", "second"), link("second", "first"))
    # That the second is there may come after the third has been looked at.
    said = 'waiting for Release "second", which is InProgress'
    eventually(lambda: stage.refused("third", "DependencyNotReady") == said, what=said)
    said = stage.refused("second", "DependencyNotReady")
    assert said == 'waiting for Release "first", which is NotFound'
    assert "second" not in stage.hub.kubectl("get", "cm", "-n", namespace, "-o", "name")
    found = stage.get("second")["status"]
    assert found["dependencies"][0]["state"] == "NotFound"
    assert "atProvider" not in found or "revision" not in found["atProvider"]
    install(stage, link("first"))
    for name in ("first", "second", "third"):
        stage.wait(name, "Ready")
    versions = created(stage, namespace, "first", "second", "third")
    assert versions == sorted(versions)
    found = stage.wait("third", "DependenciesReady")
    assert found["status"]["dependencies"][0]["state"] == "Current"
    # What was in sync stays so, whatever becomes of the others.
    stage.hub.kubectl(
        *("patch", "release", "second", "--type=merge", "-p"),
        json.dumps({"spec": {"forProvider": {"chart": {"version": "9.9.9"}}}}),
    )
    stage.wait("third", "DependenciesReady=False")
    held = conditions(stage.get("third"))
    assert (held["Synced"]["status"], held["Ready"]["status"]) == ("True", "True")
    # And forgets what it no longer asks for.
    stage.hub.kubectl(
        *("patch", "release", "third", "--type=merge", "-p"), '{"spec":{"dependsOn":null}}'
    )
    eventually(lambda: "DependenciesReady" not in conditions(stage.get("third")))
    assert "dependencies" not in stage.get("third")["status"]


def test_an_upgrade_waits_for_the_newest_of_its_dependency(stage: Stage, namespace) -> None:
    stage.chart("paired", {"cm.yaml": CONFIG_MAP})

    def pair(message: str) -> list[dict[str, Any]]:
        # The lower one becomes ready only when someone says so.
        check = {"apiVersion": "v1", "kind": "ConfigMap", "current": "has(object.data.ok)"}
        return [
            stage.manifest(
                *("lower", "paired", namespace, {"message": message}),
                beside={"healthChecks": [check]},
            ),
            stage.manifest("upper", "paired", namespace, {"message": message}, beside=on("lower")),
        ]

    def allow(value: str | None) -> None:
        stage.hub.kubectl(
            *("patch", "cm", "lower", "-n", namespace, "--type=merge", "-p"),
            json.dumps({"data": {"ok": value}}),
        )

    def message(name: str) -> str:
        return stage.hub.kubectl(
            *("get", "cm", name, "-n", namespace, "-o", "jsonpath={.data.message}")
        )

    install(stage, *pair("one"))
    eventually(lambda: "lower" in stage.hub.kubectl("get", "cm", "-n", namespace, "-o", "name"))
    stage.refused("upper", "DependencyNotReady")
    allow("yes")
    stage.wait("upper", "Ready")
    allow(None)
    stage.wait("lower", "Ready=False")
    stage.wait("upper", "Ready")
    stage.hub.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(pair("two")))
    eventually(lambda: message("lower") == "two")
    said = stage.refused("upper", "DependencyNotReady")
    assert 'Release "lower"' in said
    assert message("upper") == "one"
    assert stage.get("upper")["status"].get("synced", False) is False
    allow("yes")
    eventually(lambda: message("upper") == "two")
    stage.wait("upper", "Ready")
    assert stage.get("upper")["status"]["atProvider"]["revision"] == 2


def test_an_upgrade_through_a_shared_key_keeps_the_order(stage: Stage, hub, namespace) -> None:
    stage.chart("shared-low", {"cm.yaml": CONFIG_MAP, "hook.yaml": hook("pre-upgrade")})
    stage.chart("shared-high", {"cm.yaml": CONFIG_MAP})
    values = [{"configMapKeyRef": {"name": "shared", "namespace": namespace}}]

    def share(message: str, pod: str) -> None:
        data = {"values.yaml": json.dumps({"message": message, "pod": pod})}
        metadata = {"name": "shared", "namespace": namespace}
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        hub.kubectl("apply", "-f", "-", input=json.dumps(manifest))

    def message(name: str) -> str:
        return hub.kubectl("get", "cm", name, "-n", namespace, "-o", "jsonpath={.data.message}")

    share("one", "succeeded")
    install(
        stage,
        stage.manifest("keylow", "shared-low", namespace, valuesFrom=values),
        stage.manifest("keyhigh", "shared-high", namespace, valuesFrom=values, beside=on("keylow")),
    )
    stage.wait("keyhigh", "Ready")
    # Both are woken by one change, and no generation tells which of them is behind.
    share("two", "pending")
    said = stage.refused("keyhigh", "DependencyNotReady")
    assert 'Release "keylow"' in said
    assert (message("keylow"), message("keyhigh")) == ("one", "one")
    share("two", "succeeded")
    eventually(lambda: message("keyhigh") == "two")
    assert message("keylow") == "two"
    # No generation tells the Ready of before from that of now.
    eventually(lambda: stage.get("keyhigh")["status"]["atProvider"]["revision"] == 2)
    stage.wait("keyhigh", "Ready")


def test_an_expression_says_when_a_dependency_is_ready(stage: Stage, hub, namespace) -> None:
    needs = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "switch",
        "namespace": namespace,
        "ready": "object.data.position == 'on'",
    }
    stage.release("lamp", "hello", namespace, beside={"dependsOn": [needs]})
    said = stage.refused("lamp", "DependencyNotReady")
    assert f'ConfigMap "{namespace}/switch"' in said
    eventually(lambda: stage.get("lamp")["status"]["dependencies"][0]["state"] == "NotFound")
    hub.kubectl("create", "cm", "switch", "-n", namespace, "--from-literal=position=off")
    wanted = "spec.dependsOn[0].ready is false"
    eventually(lambda: stage.get("lamp")["status"]["dependencies"][0].get("message") == wanted)
    hub.kubectl(
        *("patch", "cm", "switch", "-n", namespace, "--type=merge", "-p"),
        '{"data":{"position":"on"}}',
    )
    stage.wait("lamp", "Ready")
    bad = {**needs, "ready": "object.data.position =="}
    stage.release("broken", "hello", namespace, beside={"dependsOn": [bad]})
    assert "spec.dependsOn[0].ready" in stage.refused("broken", "InvalidInput")


def test_a_dependency_may_be_on_another_cluster(stage: Stage, edge, namespace) -> None:
    config = f"edge-{namespace}"
    needs = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "beacon",
        "namespace": "default",
        "providerConfigRef": {"name": config},
    }
    stage.release("ship", "hello", namespace, beside={"dependsOn": [needs]})
    said = stage.refused("ship", "DependencyNotReady")
    assert f'ConfigMap "default/beacon" on ProviderConfig "{config}"' in said
    eventually(
        lambda: config in stage.get("ship")["status"]["dependencies"][0].get("message", ""),
        what="the missing config is named",
    )
    stage.config(config, edge.kubeconfig.read_bytes())
    eventually(lambda: stage.get("ship")["status"]["dependencies"][0]["state"] == "NotFound")
    edge.kubectl("create", "cm", "beacon", "-n", "default")
    stage.wait("ship", "Ready")
    edge.kubectl("delete", "cm", "beacon", "-n", "default")
    stage.wait("ship", "DependenciesReady=False")
    assert conditions(stage.get("ship"))["Ready"]["status"] == "True"


def test_a_cycle_is_named_in_each_of_its_releases(stage: Stage, namespace) -> None:
    circle = {"ring-a": "ring-b", "ring-b": "ring-c", "ring-c": "ring-a"}
    install(
        stage,
        *(stage.manifest(name, "hello", namespace, beside=on(to)) for name, to in circle.items()),
    )
    for name, to in circle.items():
        said = stage.refused(name, "DependencyCycle")
        assert f"{name} → {to} → {circle[to]} → {name}" in said
    found = stage.hub.kubectl("get", "cm", "-n", namespace, "-o", "name")
    assert "ring" not in found
    stage.hub.kubectl(
        *("patch", "release", "ring-c", "--type=merge", "-p"), '{"spec":{"dependsOn":null}}'
    )
    for name in circle:
        stage.wait(name, "Ready")
    versions = created(stage, namespace, "ring-c", "ring-b", "ring-a")
    assert versions == sorted(versions)


def test_dependants_are_removed_first(stage: Stage, hub, namespace) -> None:
    """The upper one's object has a finalizer, so its removal takes as long as we like."""
    held = CONFIG_MAP.replace("\ndata:", "\n  finalizers: [example.test/hold]\ndata:")
    stage.chart("base", {"cm.yaml": CONFIG_MAP})
    stage.chart("held", {"cm.yaml": held})
    install(
        stage,
        stage.manifest("below", "base", namespace),
        stage.manifest(
            "above", "held", namespace, beside=on("below"), waitTimeout="60s", wait=True
        ),
    )
    stage.wait("above", "Ready")
    hub.kubectl("delete", "release", "below", "above", "--wait=false")
    eventually(lambda: reason(stage, "below", "Synced") == "DependedOn")
    eventually(
        lambda: 'after Release "above"' in conditions(stage.get("below"))["Synced"]["message"]
    )
    assert "below" in hub.kubectl("get", "cm", "-n", namespace, "-o", "name")
    hub.kubectl(
        *("patch", "cm", "above", "-n", namespace, "--type=merge", "-p"),
        '{"metadata":{"finalizers":null}}',
    )
    for name in ("above", "below"):
        hub.kubectl("wait", "--for=delete", f"release/{name}", "--timeout=60s")
        stage.applied.remove(name)
    assert "below" not in hub.kubectl("get", "cm", "-n", namespace, "-o", "name")


def test_who_stays_holds_nobody_back_for_long(stage: Stage, namespace) -> None:
    install(
        stage,
        stage.manifest("ground", "hello", namespace),
        stage.manifest("house", "hello", namespace, beside=on("ground")),
    )
    stage.wait("house", "Ready")
    # It says so for some seconds only: whoever looks now and then may come too late.
    with watched(stage.kube, RELEASES) as releases:
        stage.delete("ground")
        why = 'Release "house" depends on it'
        releases.first("ground", lambda one: why in _said(one), what=why)
    stage.wait("house", "DependenciesReady=False")
    assert conditions(stage.get("house"))["Ready"]["status"] == "True"


def _said(release: dict[str, Any]) -> str:
    return str(conditions(release)["Synced"]["message"])
