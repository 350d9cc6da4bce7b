"""A chart's CRDs are created when absent and never touched afterwards; one that is broken concerns only its own."""

import json
from typing import Any

import yaml
from stage import Stage, conditions


def crd(plural: str, described: str, *versions: str) -> str:
    """The first of the versions is the one that is stored; without any there is v1."""
    kind = plural.rstrip("s").capitalize()
    schema = {
        "type": "object",
        "description": described,
        "x-kubernetes-preserve-unknown-fields": True,
    }
    return yaml.safe_dump(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural},
                "versions": [
                    {
                        "name": version,
                        "served": True,
                        "storage": number == 0,
                        "schema": {"openAPIV3Schema": schema},
                    }
                    for number, version in enumerate(versions or ("v1",))
                ],
            },
        }
    )


WIDGET = """\
apiVersion: example.com/v1
kind: {kind}
metadata:
  name: {{{{ .Release.Name }}}}
"""


def describe(hub, name: str) -> str:
    found = json.loads(hub.kubectl("get", "crd", name, "-o", "json"))
    schema = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert "meta.helm.sh/release-name" not in found["metadata"].get("annotations", {})
    return str(schema["description"])


def test_crds_of_a_chart_outlive_it(stage: Stage, hub, namespace) -> None:
    stage.chart(
        "widgets",
        {"widget.yaml": WIDGET.format(kind="Widget")},
        crds__widgets_dot_yaml=crd("widgets", "first"),
    )
    stage.release("w", "widgets", namespace)
    stage.wait("w", "Ready")
    assert describe(hub, "widgets.example.com") == "first"

    stage.chart("widgets", {}, crds__widgets_dot_yaml=crd("widgets", "second"))
    stage.repository.add(stage.charts / "widgets", version="2.0.0")
    stage.release("w", "widgets", namespace, version="2.0.0")
    version = "--for=jsonpath={.status.atProvider.version}=2.0.0"
    hub.kubectl("wait", version, "release/w", "--timeout=60s")
    stage.wait("w", "Ready")
    assert describe(hub, "widgets.example.com") == "first", "Helm 4 would have overwritten it"

    stage.delete("w")
    assert describe(hub, "widgets.example.com") == "first"


def test_crds_in_templates_are_treated_alike(stage: Stage, hub, helm4, namespace) -> None:
    stage.chart(
        "gadgets",
        {"crd.yaml": crd("gadgets", "first"), "gadget.yaml": WIDGET.format(kind="Gadget")},
    )
    stage.release("g", "gadgets", namespace)
    stage.wait("g", "Ready")
    assert describe(hub, "gadgets.example.com") == "first"
    assert "CustomResourceDefinition" not in helm4(hub, "get", "manifest", "g", "-n", namespace)
    hub.kubectl(
        "apply",
        "-f",
        "-",
        "-n",
        namespace,
        input=WIDGET.format(kind="Gadget").replace("{{ .Release.Name }}", "by-hand"),
    )
    stage.delete("g")
    assert "by-hand" in hub.kubectl("get", "gadgets.example.com", "-n", namespace)


def test_an_adopted_chart_with_template_crds_keeps_its_custom_resources(
    stage: Stage, hub, helm4, namespace
) -> None:
    stage.chart(
        "gizmos",
        {
            "crd.yaml": crd("gizmos", "first"),
            "cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: gizmo\ndata: {n: {{ .Values.n | quote }}}\n",
        },
    )
    source = ("gizmos", "--repo", stage.repository.url)
    helm4(hub, "install", "gz", *source, "-n", namespace, "--set", "n=1")
    hub.kubectl("wait", "--for=condition=Established", "crd/gizmos.example.com")
    hub.kubectl(
        "apply",
        "-f",
        "-",
        "-n",
        namespace,
        input=WIDGET.format(kind="Gizmo").replace("{{ .Release.Name }}", "precious"),
    )
    stage.release("gz", "gizmos", namespace, {"n": 2})
    stage.wait("gz", "Ready")
    assert "precious" in hub.kubectl("get", "gizmos.example.com", "-n", namespace)
    stage.delete("gz")
    assert "precious" in hub.kubectl("get", "gizmos.example.com", "-n", namespace)


def convert(hub, plural: str, conversion: dict[str, Any]) -> None:
    change = json.dumps({"spec": {"conversion": conversion}})
    hub.kubectl("patch", "crd", f"{plural}.example.com", "--type=merge", "-p", change)


def test_a_kind_that_cannot_be_listed_holds_up_nobody_else(stage: Stage, hub, namespace) -> None:
    stage.chart(
        "doodads",
        {"doodad.yaml": WIDGET.format(kind="Doodad").replace("/v1", "/v2")},
        crds__doodads_dot_yaml=crd("doodads", "first", "v1", "v2"),
    )
    stage.release("doodad", "doodads", namespace)
    stage.wait("doodad", "Ready")
    nowhere = {"clientConfig": {"url": "https://127.0.0.1:1/"}, "conversionReviewVersions": ["v1"]}
    try:
        convert(hub, "doodads", {"strategy": "Webhook", "webhook": nowhere})
        message = conditions(stage.wait("doodad", "Ready=False"))["Ready"]["message"]
        assert "Doodad doodad is Unknown: objects of kind Doodad cannot be listed" in message
        stage.release("doodad-neighbour", "hello", namespace)
        stage.wait("doodad-neighbour", "Ready")
        stage.delete("doodad-neighbour")
        assert conditions(stage.get("doodad"))["Synced"]["status"] == "True"
    finally:
        convert(hub, "doodads", {"strategy": "None", "webhook": None})
    stage.wait("doodad", "Ready")
    stage.delete("doodad")
