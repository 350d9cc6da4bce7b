"""Values from everywhere, in Helm's order, and nothing of a Secret in anything that is said."""

import json
import re

from stage import Stage, conditions, eventually, history


def put(hub, kind: str, name: str, namespace: str, **data: str) -> None:
    key = "stringData" if kind == "Secret" else "data"
    manifest = {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        key: {name.replace("_", "."): text for name, text in data.items()},
    }
    hub.kubectl("apply", "-f", "-", input=json.dumps(manifest))


def ref(kind: str, name: str, namespace: str, **more: object) -> dict[str, object]:
    field = "secretKeyRef" if kind == "Secret" else "configMapKeyRef"
    return {field: {"name": name, "namespace": namespace, **more}}


def values(helm4, hub, namespace: str, name: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(
        helm4(hub, "get", "values", name, "-n", namespace, "-o", "json")
    )
    return found


def test_values_are_merged_in_order(stage: Stage, hub, helm4, namespace) -> None:
    put(
        hub,
        "ConfigMap",
        "base",
        namespace,
        values_yaml="message: base\nreplicas: 1\ndeep: {a: 1, b: 1}",
    )
    put(hub, "Secret", "more", namespace, custom="deep: {b: 2, c: 2}\nimage: from-secret")
    put(hub, "ConfigMap", "host", namespace, value="db.example")
    put(hub, "Secret", "blank", namespace, value="")
    stage.release(
        "composed",
        "hello",
        namespace,
        {"deep": {"c": 3}, "message": "inline"},
        valuesFrom=[
            ref("ConfigMap", "base", namespace),
            ref("Secret", "more", namespace, key="custom"),
            ref("ConfigMap", "absent", namespace, optional=True),
        ],
        set=[
            {"name": "deep.d", "value": "4"},
            {"name": "host", "valueFrom": ref("ConfigMap", "host", namespace)},
            {"name": "nothing", "value": ""},
            {"name": "blank", "valueFrom": ref("Secret", "blank", namespace)},
            {"name": "skipped", "valueFrom": ref("Secret", "absent", namespace, optional=True)},
        ],
    )
    stage.wait("composed", "Ready")
    assert values(helm4, hub, namespace, "composed") == {
        "message": "inline",
        "replicas": 1,
        "image": "from-secret",
        "deep": {"a": 1, "b": 2, "c": 3, "d": 4},
        "host": "db.example",
        "nothing": "",
        "blank": "",
    }


def test_a_changed_reference_upgrades_what_uses_it(stage: Stage, hub, helm4, namespace) -> None:
    put(hub, "ConfigMap", "words", namespace, values_yaml="message: first")
    for name in ("user", "bystander"):
        used = [ref("ConfigMap", "words", namespace)] if name == "user" else []
        stage.release(name, "hello", namespace, valuesFrom=used)
        stage.wait(name, "Ready")
    put(hub, "ConfigMap", "words", namespace, values_yaml="message: second")
    eventually(
        lambda: (
            hub.kubectl("get", "cm", "user", "-n", namespace, "-o", "jsonpath={.data.message}")
            == "second"
        )
    )
    event = eventually(
        lambda: [one for one in stage.events("user") if one["reason"] == "UpdatedExternalResource"]
    )
    assert "values changed: message" in event[-1]["message"]
    assert len(history(helm4, hub, namespace, "bystander")) == 1


def test_a_missing_reference_is_named_and_waited_for(stage: Stage, hub, namespace) -> None:
    stage.release("waits", "hello", namespace, valuesFrom=[ref("Secret", "later", namespace)])
    message = stage.refused("waits", "NotFound")
    assert f"spec.forProvider.valuesFrom[0]: Secret {namespace}/later not found" in message
    due = stage.postponed("waits")
    put(hub, "Secret", "later", namespace, values_yaml="message: here")
    stage.ready_before(due)


def test_bad_yaml_names_its_reference_and_shows_nothing_of_it(stage: Stage, hub, namespace) -> None:
    put(hub, "Secret", "broken", namespace, values_yaml="password: hunter2\n  bad: [indent")
    stage.release("mangled", "hello", namespace, valuesFrom=[ref("Secret", "broken", namespace)])
    message = stage.refused("mangled", "InvalidInput")
    assert "spec.forProvider.valuesFrom[0]" in message
    assert "hunter2" not in json.dumps(stage.get("mangled")["status"])


def test_nothing_of_a_secret_is_said(stage: Stage, hub, namespace) -> None:
    """The value makes an object the server refuses, and the server quotes it: then, and when it is tried again."""
    template = "apiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .Release.Name }}\nspec:\n  type: {{ .Values.kind }}\n  ports: [{port: 80}]\n"
    stage.chart("leaky", {"service.yaml": template})
    put(hub, "Secret", "hush", namespace, values_yaml="kind: sw0rdf1sh")
    put(hub, "Secret", "turns", namespace, values_yaml="kind: ClusterIP")
    limited = {"rollbackLimit": 1}
    stage.release("whispers", "leaky", namespace, valuesFrom=[ref("Secret", "hush", namespace)])
    stage.release(
        *("mutters", "leaky", namespace),
        valuesFrom=[ref("Secret", "turns", namespace)],
        beside=limited,
    )
    stage.release(
        *("mumbles", "leaky", namespace),
        valuesFrom=[ref("Secret", "hush", namespace)],
        beside=limited,
    )
    assert "***" in stage.refused("whispers", "ObjectRejected")
    for request in ("once", "twice"):
        wish = f"crossplane.io/reconcile-requested-at={request}"
        tried = stage.get("whispers")["status"]["retries"]
        hub.kubectl("annotate", "--overwrite", "release", "whispers", wish)
        eventually(lambda tried=tried: stage.get("whispers")["status"]["retries"] > tried)
    stage.wait("mutters", "Ready")
    put(hub, "Secret", "turns", namespace, values_yaml="kind: sw0rdf1sh")
    for name, done in (("mutters", "RolledBack"), ("mumbles", "Deleted")):
        assert "***" in stage.refused(name, "RollbackLimitReached")
        assert "***" in stage.told(name, f"{done}ExternalResource")[0]
    log = stage.controller.log.read_text()
    assert re.search(r"plan=Upgrade reason=.*retry: .*\*\*\*", log), "and that is in the log"
    for name in ("whispers", "mutters", "mumbles"):
        assert not stage.leaks(name, "sw0rdf1sh")


def test_values_may_be_text(stage: Stage, hub, helm4, namespace) -> None:
    manifest = {
        "apiVersion": "helm.crossplane.io/v1alpha1",
        "kind": "Release",
        "metadata": {"name": "textual"},
        "spec": {
            "reclaimPolicy": "Delete",
            "forProvider": {
                "chart": {
                    "repository": stage.repository.url,
                    "name": "hello",
                    "version": "1.0.0",
                },
                "namespace": namespace,
                "values": "message: as text\nreplicas: 2\n",
            },
        },
    }
    hub.kubectl("apply", "-f", "-", input=json.dumps(manifest))
    stage.applied.append("textual")
    stage.wait("textual", "Ready")
    assert values(helm4, hub, namespace, "textual") == {"message": "as text", "replicas": 2}
    assert (
        stage.get("textual")["spec"]["forProvider"]["values"] == "message: as text\nreplicas: 2\n"
    )


PATCH = """\
patches:
- patch: |-
    - op: add
      path: /metadata/labels/patched
      value: "{value}"
  target:
    kind: ConfigMap
"""


def test_patches_change_what_the_chart_renders(stage: Stage, hub, helm4, namespace) -> None:
    chart = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n  labels: {a: b}\n"
    hook = chart.replace(
        "labels: {a: b}", "labels: {a: b}\n  annotations: {helm.sh/hook: pre-install}"
    )
    stage.chart(
        "patched", {"cm.yaml": chart, "hook.yaml": hook.replace("Name }}", "Name }}-hook", 1)}
    )
    put(hub, "ConfigMap", "patch", namespace, patch_yaml=PATCH.format(value="one"))
    stage.release("quilt", "patched", namespace, patchesFrom=[ref("ConfigMap", "patch", namespace)])
    release = stage.wait("quilt", "Ready")
    label = ("get", "cm", "quilt", "-n", namespace, "-o", "jsonpath={.metadata.labels.patched}")
    assert hub.kubectl(*label) == "one"
    hooked = hub.kubectl("get", "cm", "quilt-hook", "-n", namespace, "-o", "json")
    assert "patched" not in json.loads(hooked)["metadata"]["labels"]
    assert len(release["status"]["patchesSha"]) == 64
    put(hub, "ConfigMap", "patch", namespace, patch_yaml=PATCH.format(value="two"))
    eventually(lambda: hub.kubectl(*label) == "two")
    eventually(lambda: "patches changed" in stage.get("quilt")["status"]["lastAttempt"]["reason"])
    stage.wait("quilt", "Ready")


def test_config_text_comes_between_references_and_values(
    stage: Stage, hub, helm4, namespace
) -> None:
    put(hub, "ConfigMap", "first", namespace, values_yaml="message: base\na: 1\nb: 1\nc: 1")
    stage.release(
        "texted",
        "hello",
        namespace,
        {"c": 3},
        valuesFrom=[ref("ConfigMap", "first", namespace)],
    )

    def write(config: str) -> None:
        patch = json.dumps({"spec": {"forProvider": {"config": config}}})
        hub.kubectl("patch", "release", "texted", "--type=merge", "-p", patch)

    stage.wait("texted", "Ready")
    write("b: 2\nc: 2\n")
    merged = {"message": "base", "a": 1, "b": 2, "c": 3}
    eventually(lambda: values(helm4, hub, namespace, "texted") == merged)
    write("b: [")
    assert "spec.forProvider.config" in stage.refused("texted", "InvalidInput")


def test_a_kustomization_changes_what_is_rendered(stage: Stage, hub, namespace) -> None:
    shown = "jsonpath={.metadata.labels.shape}"
    label = ("get", "cm", "shaped", "-n", namespace, "-o", shown, "--ignore-not-found")
    for shape in ("round", "square"):
        stage.release(
            "shaped", "hello", namespace, kustomize={"labels": [{"pairs": {"shape": shape}}]}
        )
        eventually(lambda shape=shape: hub.kubectl(*label) == shape)
    reason = stage.wait("shaped", "Ready")["status"]["lastAttempt"]["reason"]
    assert reason == "kustomize changed"
    stage.release("shaped", "hello", namespace, kustomize={"namePrefix": "x-"})
    assert "namePrefix is refused" in stage.refused("shaped", "InvalidInput")
    stage.release("shaped", "hello", namespace, kustomize={"resources": ["https://example/base"]})
    assert "resources is refused" in stage.refused("shaped", "InvalidInput")
    assert hub.kubectl(*label) == "square"


def test_unrelated_changes_make_no_revision(stage: Stage, hub, helm4, namespace) -> None:
    put(hub, "ConfigMap", "steady", namespace, values_yaml="message: same", other="1")
    stage.release("calm", "hello", namespace, valuesFrom=[ref("ConfigMap", "steady", namespace)])
    stage.wait("calm", "Ready")
    put(hub, "ConfigMap", "steady", namespace, values_yaml="message: same", other="2")
    put(hub, "ConfigMap", "steady", namespace, values_yaml="message:   same", other="3")
    stage.release("probe", "hello", namespace)
    stage.wait("probe", "Ready")
    assert len(history(helm4, hub, namespace, "calm")) == 1
    assert conditions(stage.get("calm"))["Ready"]["status"] == "True"
