"""What can never work is refused when it is written, in a sentence that names the field."""

import json
import re
from typing import Any

from stage import Stage

CHART = {"repository": "https://charts.example.com", "name": "shop", "version": "1.0.0"}
DIGEST = "sha256:" + "a" * 64


def manifest(
    version: str = "v1beta1", spec: dict[str, Any] | None = None, **wanted: Any
) -> dict[str, Any]:
    return {
        "apiVersion": f"helm.crossplane.io/{version}",
        "kind": "Release",
        # Paused, so that the controller does not try it.
        "metadata": {"name": "admitted", "annotations": {"crossplane.io/paused": "true"}},
        "spec": {"forProvider": {"chart": CHART, "namespace": "web", **wanted}, **(spec or {})},
    }


def dry_run(stage: Stage, *manifests: dict[str, Any]) -> list[str]:
    """What the server says of each, in one call."""
    named = [
        {**one, "metadata": {**one["metadata"], "name": f"judged-{number}x"}}
        for number, one in enumerate(manifests)
    ]
    answer = stage.hub.kubectl(
        *("create", "--dry-run=server", "--validate=false", "-f", "-"),
        input=json.dumps({"apiVersion": "v1", "kind": "List", "items": named}),
        check=False,
    )
    said = re.split(r"(?=judged-\d+x)", answer)
    return said[1:]


REFUSED = [
    (manifest(chart={}), "spec.forProvider.chart: give repository and name, or url"),
    (manifest(chart={}, spec={"managementPolicies": ["Observe", "Delete"]}), "give repository"),
    (manifest(chart={"version": "1.0.0", "url": ""}), "give repository and name, or url"),
    (manifest(chart={"name": "shop"}), "give repository and name, or url"),
    (manifest(chart={"repository": "https://x"}), "give repository and name, or url"),
    (manifest(chart={"repository": "oci://x"}), "give repository and name, or url"),
    (manifest(chart={**CHART, "digest": "sha256:short"}), "spec.forProvider.chart.digest"),
    (manifest(values="a: 1"), "spec.forProvider.values"),
    (manifest(values=["a"]), "spec.forProvider.values"),
    (manifest(values=1), "spec.forProvider.values"),
    (manifest(waitTimeout="soon"), "not a duration such as 90s, 5m or 1h30m"),
    (manifest(waitTimeout="5"), "spec.forProvider.waitTimeout"),
    (manifest(valuesFrom=[{}]), "give configMapKeyRef or secretKeyRef"),
    (manifest(patchesFrom=[{}]), "spec.forProvider.patchesFrom[0]"),
    (manifest(set=[{"name": "a", "valueFrom": {}}]), "spec.forProvider.set[0].valueFrom"),
    (manifest(set=[{"value": "a"}]), "spec.forProvider.set[0].name"),
    (manifest(maxHistory="many"), "spec.forProvider.maxHistory"),
    (manifest(spec={"managementPolicies": ["Destroy"]}), "spec.managementPolicies[0]"),
    (manifest(spec={"deletionPolicy": "Keep"}), "spec.deletionPolicy"),
    (manifest(spec={"writeConnectionSecretToRef": {"name": "x"}}), "namespace"),
]
ACCEPTED = [
    manifest("v1alpha1", values="a: 1"),
    manifest("v1alpha1", values={"a": None, "b": 1e300, "c": 12345678901234567890}),
    manifest(chart={"url": "oci://x/y:1"}),
    manifest(chart={"repository": "oci://x/y"}),
    manifest(chart={"name": "oci://x/y"}),
    manifest(chart={"url": "oci://x/y", "digest": DIGEST}),
    manifest(chart={}, spec={"managementPolicies": ["Observe"]}),
    manifest(chart={}, spec={"managementPolicies": ["Observe", "LateInitialize"]}),
    manifest(chart={}, spec={"managementPolicies": []}),
    *(manifest(waitTimeout=text) for text in ("10m", "1h30m", "1.5h", ".5s", "0", "100ms")),
    manifest(maxHistory=-1),
    manifest(set=[{"name": "blogName"}]),
    manifest(spec={"managementPolicies": ["*", "Observe"]}),
]


def test_what_can_never_work_is_refused_by_name(stage: Stage) -> None:
    said = dry_run(stage, *(one for one, _ in REFUSED))
    assert len(said) == len(REFUSED)
    for answer, (_, sentence) in zip(said, REFUSED, strict=True):
        assert "is invalid" in answer
        assert sentence in answer


def test_what_might_work_is_accepted(stage: Stage) -> None:
    said = dry_run(stage, *ACCEPTED)
    assert [one for one in said if "created (server dry run)" not in one] == []
    assert len(said) == len(ACCEPTED)


def test_a_config_says_where_its_kubeconfig_comes_from(stage: Stage) -> None:
    config = {
        "apiVersion": "helm.crossplane.io/v1beta1",
        "kind": "ProviderConfig",
        "metadata": {},
        "spec": {},
    }
    older = config | {"spec": {"credentialsSecretRef": {"name": "cluster"}}}
    accepted, refused = sorted(dry_run(stage, config, older), key=lambda one: "invalid" in one)
    assert "spec.credentials: say where the kubeconfig comes from" in refused
    assert "created (server dry run)" in accepted


TEXTUAL = manifest("v1alpha1", values="message: as text\n")


def test_what_is_stored_already_stays_writable(stage: Stage, hub) -> None:
    """Text through the older version: whoever writes anything else through the newer one is not stopped."""
    hub.kubectl("create", "-f", "-", input=json.dumps(TEXTUAL))
    stage.applied.append("admitted")
    hub.kubectl("wait", "--for=condition=Synced=False", "release/admitted", "--timeout=60s")
    hub.kubectl("label", "releases.v1beta1.helm.crossplane.io", "admitted", "touched=yes")
    for patch in ('{"spec":{"forProvider":{"wait":true}}}', '{"metadata":{"finalizers":null}}'):
        hub.kubectl(
            *("patch", "releases.v1beta1.helm.crossplane.io", "admitted", "--type=merge", "-p"),
            patch,
        )
    found = stage.get("admitted")
    assert found["apiVersion"] == "helm.crossplane.io/v1beta1"
    assert found["spec"]["forProvider"]["values"] == "message: as text\n"
    answer = hub.kubectl(
        *("patch", "releases.v1beta1.helm.crossplane.io", "admitted", "--type=merge", "-p"),
        '{"spec":{"forProvider":{"values":"other: text"}}}',
        check=False,
    )
    assert "spec.forProvider.values" in answer
