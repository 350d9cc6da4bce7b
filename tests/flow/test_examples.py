"""What was written for provider-helm, or in the first design of it, applies unchanged and loses nothing."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from pilothouse.dev.cluster import DevCluster

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
EXAMPLES = sorted((DATA / "provider-helm").rglob("*.yaml"))
KINDS = {
    ("helm.crossplane.io", "Release"),
    ("helm.crossplane.io", "ProviderConfig"),
    ("helm.m.crossplane.io", "Release"),
    ("helm.m.crossplane.io", "ProviderConfig"),
    ("helm.m.crossplane.io", "ClusterProviderConfig"),
}


@pytest.fixture(scope="module")
def bare(edge: DevCluster) -> DevCluster:
    """A cluster that has the CRDs and no controller, so that nothing is downloaded or installed."""
    crds = str(ROOT / "src/pilothouse/api/crds")
    edge.kubectl("apply", "--server-side", "-f", crds)
    edge.kubectl("wait", "--for=condition=Established", "-f", crds, "--timeout=60s")
    for name in ("crossplane-system", "wordpress"):  # other stories may have made them
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        edge.kubectl("apply", "-f", "-", input=json.dumps(space))
    return edge


def documents(path: Path) -> list[dict[str, Any]]:
    """The objects that a cluster without Crossplane can take: those of a Composition, as it would make them."""
    found = []
    for one in yaml.safe_load_all(path.read_text()):
        if one["kind"] == "Composition":
            parts = one["spec"].get("resources") or one["spec"]["to"]
            found += [composed(part) for part in parts]
        else:
            found.append(one)
    ours = {"v1", "rbac.authorization.k8s.io/v1"}
    return [one for one in found if one["apiVersion"] in ours or group_of(one).startswith("helm.")]


def composed(part: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"metadata": {"name": "composed"}, **part["base"]}
    for patch in part.get("patches", []):
        put(made, re.findall(r"[^.\[\]]+", patch["toFieldPath"]), "patched-in")
    # The first design's Composition says `toFieldPath` twice in one patch, so YAML loses one of them.
    for one in made.get("spec", {}).get("forProvider", {}).get("set", []):
        if "valueFrom" in one:
            one["valueFrom"]["secretKeyRef"].setdefault("name", "patched-in")
    return made


def put(place: Any, path: list[str], value: str) -> None:
    for step, following in zip(path, [*path[1:], ""], strict=True):
        if isinstance(place, list):
            # The same design counts one too far: what it means is the last entry.
            index = min(int(step), len(place) - 1)
            place = place[index]
        elif following:
            place = place.setdefault(step, {})
        else:
            place[step] = value


def group_of(one: dict[str, Any]) -> str:
    return str(one["apiVersion"].split("/")[0])


def names(one: dict[str, Any]) -> tuple[str, ...]:
    metadata = one["metadata"]
    return (group_of(one), one["kind"], metadata.get("namespace", ""), metadata["name"])


def rounds(found: list[tuple[str, dict[str, Any]]]) -> list[dict[tuple[str, ...], Any]]:
    """Share the objects out so that no round has two of one name; each with the file it is from."""
    shared: list[dict[tuple[str, ...], Any]] = []
    for origin, one in found:
        free = next((those for those in shared if names(one) not in those), None)
        if free is None:
            shared.append(free := {})
        free[names(one)] = (origin, one)
    return shared


def text_of(objects: Iterable[dict[str, Any]]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


def assert_accepted(bare: DevCluster, found: list[tuple[str, dict[str, Any]]]) -> None:
    for those in rounds(found):
        everything = text_of(one for _, one in those.values())
        bare.kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", input=everything)
        bare.kubectl("apply", "--server-side", "-f", "-", input=everything)
        ours = {key: one for key, (_, one) in those.items() if key[0].startswith("helm.")}
        for version in ("v1alpha1", "v1beta1"):
            assert_kept(bare, those, ours, version)
        bare.kubectl("delete", "--wait=false", "-f", "-", input=text_of(ours.values()))


def assert_kept(
    bare: DevCluster, those: dict[Any, Any], ours: dict[Any, dict[str, Any]], version: str
) -> None:
    served = {key: one for key, one in ours.items() if version == "v1beta1" or ".m." not in key[0]}
    asked = text_of(one | {"apiVersion": f"{key[0]}/{version}"} for key, one in served.items())
    if not served:
        return
    items = items_of(answer := bare.kubectl("get", "-f", "-", "-o", "json", input=asked))
    assert len(items) == len(served)
    for one, (key, asked_for) in zip(items, served.items(), strict=True):
        assert one["apiVersion"] == f"{key[0]}/{version}"
        assert lost(asked_for["spec"], one["spec"], those[key][0]) == []
    # Written back through this version, as a person's edit is, it is the same object still.
    bare.kubectl("replace", "-f", "-", input=answer)
    again = items_of(bare.kubectl("get", "-f", "-", "-o", "json", input=asked))
    assert [one["spec"] for one in again] == [one["spec"] for one in items]


def items_of(answer: str) -> list[dict[str, Any]]:
    found = json.loads(answer)
    return list(found["items"]) if found["kind"] == "List" else [found]


def lost(asked: Any, found: Any, path: str) -> list[str]:
    """Paths that were written and are not there any more, or differ."""
    if isinstance(asked, dict) and isinstance(found, dict):
        return [
            gone for name in asked for gone in lost(asked[name], found.get(name), f"{path}.{name}")
        ]
    if isinstance(asked, list) and isinstance(found, list) and len(asked) == len(found):
        both = enumerate(zip(asked, found, strict=True))
        return [gone for at, (one, two) in both for gone in lost(one, two, f"{path}[{at}]")]
    return [] if asked == found else [f"{path}: {asked!r} became {found!r}"]


def test_the_examples_of_provider_helm_apply_unchanged(bare) -> None:
    """41 files upstream, and eight more for what they only mention: every field, other identities."""
    found = [
        (str(path.relative_to(DATA / "provider-helm")), one)
        for path in EXAMPLES
        for one in documents(path)
    ]
    assert len(EXAMPLES) == 41 + 8
    assert {(group_of(one), one["kind"]) for _, one in found} >= KINDS
    assert_accepted(bare, found)


def test_the_first_design_applies_exactly_as_written(bare) -> None:
    found = [
        (name, one)
        for name in ("release.yaml", "composition.yaml")
        for one in documents(DATA / "first-design" / name)
    ]
    expected = ("helm.crossplane.io/v1alpha1", "Release")
    assert [(one["apiVersion"], one["kind"]) for _, one in found] == [expected, expected]
    assert_accepted(bare, found)
