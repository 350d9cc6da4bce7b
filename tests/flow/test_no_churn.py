"""A revision is made when something changed, and never otherwise."""

import json
from typing import Any

from stage import Stage, conditions, eventually, history

NUMBERS = {
    "int": 3,
    "float": 3.0,
    "fraction": 0.1,
    "big": 9007199254740993,
    "huge": 12345678901234567890,
    "exponent": 1e21,
    "negative": -0.0,
    "nothing": None,
    "text": "1",
    "yes": True,
    "empty": {},
    "none": [],
    "deep": [{"a": 1, "b": [1.0, None, "x"]}],
}
CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data: {version: {{ .Chart.Version | quote }}}
"""


def revisions(helm4, stage: Stage, namespace: str, name: str) -> int:
    return len(history(helm4, stage.hub, namespace, name))


def edit(stage: Stage, name: str, chart: dict[str, Any]) -> None:
    patch = json.dumps({"spec": {"forProvider": {"chart": chart}}})
    stage.hub.kubectl("patch", "release", name, "--type=merge", "-p", patch)
    stage.wait(name, "Ready")


def test_numbers_nulls_and_lists_cause_no_second_revision(
    stage: Stage, hub, helm3, helm4, namespace
) -> None:
    stage.chart("numeric", {"cm.yaml": CONFIG_MAP})
    source = ("numeric", "--repo", stage.repository.url, "-n", namespace, "-f", "-")
    for name, helm in (("numbers-by-three", helm3), ("numbers-by-four", helm4)):
        helm(hub, "install", name, *source, input=json.dumps(NUMBERS))
    for name in ("counted", "numbers-by-three", "numbers-by-four"):
        # `kubectl apply` would drop a null.
        manifest = json.dumps(stage.manifest(name, "numeric", namespace, NUMBERS))
        hub.kubectl("create", "-f", "-", input=manifest)
        stage.applied.append(name)
    for name in ("counted", "numbers-by-three", "numbers-by-four"):
        release = stage.wait(name, "Ready")
        assert release["status"]["atProvider"]["version"] == "1.0.0"
        stage.look_again(name)
        # Equal numbers, spelled another way.
        same = json.dumps({"spec": {"forProvider": {"values": {"int": 3.0, "float": 3}}}})
        hub.kubectl("patch", "release", name, "--type=merge", "-p", same)
        stage.look_again(name)
        assert revisions(helm4, stage, namespace, name) == 1


def test_a_version_is_what_semver_says_it_is(stage: Stage, helm4, namespace) -> None:
    """Unlike provider-helm: Versions."""
    stage.chart("lettered", {"cm.yaml": CONFIG_MAP})
    for version in ("v2.0.0", "3.0.0+build.7"):
        stage.repository.add(stage.charts / "lettered", version=version)
    stage.release("vee", "lettered", namespace, version="2.0.0")
    stage.release("built", "lettered", namespace, version="3.0.0")
    stage.release("ranged", "lettered", namespace, version="~2")
    for name, spellings in (
        ("vee", ("v2.0.0", "2.0.0")),
        ("built", ("3.0.0+build.7", "v3.0.0", "3.0.0")),
        ("ranged", ("v2.0.0", "~2")),
    ):
        stage.wait(name, "Ready")
        for version in spellings:
            edit(stage, name, {"version": version})
        stage.look_again(name)
        assert revisions(helm4, stage, namespace, name) == 1


def test_a_bumped_url_upgrades_once(stage: Stage, helm4, namespace) -> None:
    """Unlike provider-helm: Filled in."""
    stage.chart("packed", {"cm.yaml": CONFIG_MAP})
    stage.repository.add(stage.charts / "packed", version="1.1.0")
    url = f"{stage.repository.url}/packed-{{}}.tgz"
    stage.release("addressed", "packed", namespace, url=url.format("1.0.0"))
    stage.wait("addressed", "Ready")
    # The name is filled in; the version is not, or the next address would contradict it.
    first = url.format("1.0.0")
    assert stage.get("addressed")["spec"]["forProvider"]["chart"] == {
        "url": first,
        "name": "packed",
    }
    # A tool that applies the original again has the last word.
    edit(stage, "addressed", {"name": None})
    stage.look_again("addressed")
    assert stage.get("addressed")["spec"]["forProvider"]["chart"] == {"url": first}
    assert revisions(helm4, stage, namespace, "addressed") == 1
    edit(stage, "addressed", {"url": url.format("1.1.0")})
    stage.hub.kubectl(
        *("wait", "--for=jsonpath={.status.atProvider.version}=1.1.0", "release/addressed"),
        "--timeout=60s",
    )
    stage.look_again("addressed")
    assert revisions(helm4, stage, namespace, "addressed") == 2
    assert conditions(stage.get("addressed"))["Ready"]["status"] == "True"


def test_the_status_is_not_a_database(stage: Stage, hub, helm4, namespace) -> None:
    """Lost, as by a restored backup, it is written anew, and nothing else is. Unlike provider-helm: Status."""
    patch = {"patch.yaml": "patches:\n- target: {kind: ConfigMap}\n  patch: '" + LABELLED + "'\n"}
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "patch", "namespace": namespace},
        "data": patch,
    }
    hub.kubectl("apply", "-f", "-", input=json.dumps(config_map))
    reference = {"configMapKeyRef": {"name": "patch", "namespace": namespace}}
    stage.chart("forgetful", {"cm.yaml": CONFIG_MAP})
    stage.release("amnesia", "forgetful", namespace, patchesFrom=[reference])
    before = stage.wait("amnesia", "Ready")["status"]
    hub.kubectl(
        *("patch", "release", "amnesia", "--subresource=status", "--type=json", "-p"),
        '[{"op": "remove", "path": "/status"}]',
    )
    stage.wait("amnesia", "Ready")
    stage.look_again("amnesia")
    after = stage.get("amnesia")["status"]
    assert after["atProvider"]["revision"] == 1
    assert after["patchesSha"] == before["patchesSha"]
    assert after["atProvider"]["version"] == "1.0.0"
    assert revisions(helm4, stage, namespace, "amnesia") == 1

    # Written anew as another object: it finds its Helm release, patches and all.
    hub.kubectl(
        *("patch", "release", "amnesia", "--type=merge", "-p"),
        '{"spec":{"deletionPolicy":"Orphan"}}',
    )
    stage.delete("amnesia")
    stage.repository.add(stage.charts / "forgetful", version="1.1.0")
    stage.release("amnesia", "forgetful", namespace, patchesFrom=[reference], version="")
    stage.wait("amnesia", "Ready")
    stage.look_again("amnesia")
    assert revisions(helm4, stage, namespace, "amnesia") == 1

    # Another chart has numbers of its own, whoever deployed the one before.
    stage.repository.add(stage.charts / "forgetful", name="successor", version="0.3.0")
    for name, newest in (("successor", "0.3.0"), ("forgetful", "1.1.0")):
        edit(stage, "amnesia", {"name": name, "version": None})
        found = stage.wait("amnesia", "Ready")
        assert found["status"]["atProvider"]["version"] == newest
        assert found["spec"]["forProvider"]["chart"]["version"] == newest
    assert revisions(helm4, stage, namespace, "amnesia") == 3


LABELLED = '[{"op": "add", "path": "/metadata/labels", "value": {"patched": "yes"}}]'


def test_a_failed_create_backs_off_and_leaves_the_spec_alone(stage: Stage, namespace) -> None:
    """Unlike provider-helm: Filled in."""
    broken = "kind: ConfigMap\nmetadata:\n  name: x\ndata: {{ .Values.missing.deep }}\n"
    stage.chart("hopeless", {"broken.yaml": broken})
    stage.release("sisyphus", "hopeless", namespace, version="")
    stage.refused("sisyphus", "RenderFailed")
    stage.look_again("sisyphus")
    eventually(lambda: stage.get("sisyphus")["status"]["retries"] >= 2)
    found = stage.get("sisyphus")
    assert "version" not in found["spec"]["forProvider"]["chart"]
    assert found["metadata"]["generation"] == 1
    assert found["status"]["nextAttempt"] > found["status"]["lastAttempt"]["finished"]
    assert [one for one in found["metadata"]["annotations"] if "external-create" in one] == []
