"""A changed key reaches the cluster within a second, and wakes nobody who does not use it."""

import base64
import itertools
import json
import re
import time
from typing import Any

import pytest
import yaml
from moments import TIMES, assert_prompt, watched
from stage import Stage, eventually

TEMPLATE = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data:
  message: {{ .Values.message | quote }}
"""
CROWD = 40


def secret(name: str, namespace: str, **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "stringData": data,
    }


def apply(hub, *manifests: dict[str, Any]) -> None:
    """In one process, so that several come within milliseconds."""
    hub.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(manifests))


def key_of(name: str, namespace: str, key: str) -> list[dict[str, Any]]:
    reference = {"name": name, "namespace": namespace, "key": key}
    return [{"secretKeyRef": reference}]


def wakes(stage: Stage, reference: str) -> list[int]:
    """How many were woken by each change of an object, as the controller tells."""
    found = []
    for line in stage.controller.log.read_text().splitlines():
        if "reference changed" in line and reference in line:
            number = re.search(r"woken\W+(?:\x1b\[[0-9;]*m)*(\d+)", line)
            assert number, line
            found.append(int(number[1]))
    return found


@pytest.mark.timed
def test_a_changed_key_is_in_the_cluster_within_a_second(stage: Stage, hub, namespace) -> None:
    """Unlike provider-helm: Polling."""
    stage.chart("told", {"cm.yaml": TEMPLATE})
    apply(hub, secret("hot", namespace, values="message: m0"))
    stage.release("hot", "told", namespace, valuesFrom=key_of("hot", namespace, "values"))
    stage.wait("hot", "Ready")
    numbers = itertools.count(1)
    with (
        watched(stage.kube, f"/api/v1/namespaces/{namespace}/secrets") as secrets,
        watched(stage.kube, f"/api/v1/namespaces/{namespace}/configmaps") as maps,
    ):

        def change() -> float:
            number = next(numbers)
            told = f"m{number}"
            new = base64.b64encode(f"message: {told}".encode()).decode()
            secrets.patch("hot", {"data": {"values": new}})
            asked = secrets.first("hot", lambda one: one["data"]["values"] == new, what=told)
            done = maps.first("hot", lambda one: one["data"]["message"] == told, what=told)
            eventually(lambda: stage.get("hot")["status"]["atProvider"]["revision"] == number + 1)
            return done.moment - asked.moment

        assert_prompt(lambda: {"key change to cluster": [change() for _ in range(TIMES)]})
    stage.wait("hot", "Ready")


def test_only_users_of_the_key_are_woken(stage: Stage, hub, namespace) -> None:
    stage.chart("keyed", {"cm.yaml": TEMPLATE})
    apply(hub, secret("many", namespace, a="message: a1", b="message: b1", c="c1"))
    for name in ("a", "b"):
        used = key_of("many", namespace, name)
        stage.release(f"keyed-{name}", "keyed", namespace, valuesFrom=used)
        stage.wait(f"keyed-{name}", "Ready")
    at = f"Secret {namespace}/many"
    assert wakes(stage, at) == []
    for data, woken in (
        ({"a": "message: a1", "b": "message: b1", "c": "c2"}, 0),
        ({"a": "message: a2", "b": "message: b1", "c": "c2"}, 1),
        ({"a": "message: a2", "b": "message: b1"}, 0),
        ({"a": "message: a3", "b": "message: b3"}, 2),
    ):
        before = len(wakes(stage, at))
        apply(hub, secret("many", namespace, **data))
        eventually(lambda n=before: len(wakes(stage, at)) > n, what=f"{data} heard")
        assert wakes(stage, at)[before:] == [woken]
    for name, revision in (("a", 3), ("b", 2)):
        eventually(
            lambda name=name, revision=revision: (
                stage.get(f"keyed-{name}")["status"]["atProvider"]["revision"] == revision
            )
        )
    # A key that goes, and an object that goes, are news for their users.
    hub.kubectl(
        *("patch", "secret", "many", "-n", namespace, "--type=merge", "-p"), '{"data":{"b":null}}'
    )
    assert 'has no key "b"' in stage.refused("keyed-b", "NotFound")
    hub.kubectl("delete", "secret", "many", "-n", namespace)
    assert "not found" in stage.refused("keyed-a", "NotFound")
    apply(hub, secret("many", namespace, a="message: a4", b="message: b4"))
    for name in ("a", "b"):
        stage.wait(f"keyed-{name}", "Ready")


def test_only_the_key_a_config_names_concerns_it(stage: Stage, hub, namespace) -> None:
    config = f"keyed-{namespace}"
    stage.config(config, hub.kubeconfig.read_bytes())
    stage.release("keyed-far", "hello", namespace, config=config)
    stage.wait("keyed-far", "Ready")
    at = f"Secret default/{config}"
    before = len(wakes(stage, at))
    for patch, woken in (
        ({"stringData": {"note": "unused"}}, 0),
        ({"stringData": {"kubeconfig": "no kubeconfig"}}, 1),
    ):
        hub.kubectl(
            *("patch", "secret", config, "-n", "default", "--type=merge", "-p"), json.dumps(patch)
        )
        eventually(lambda n=before: len(wakes(stage, at)) > n)
        assert wakes(stage, at)[before:] == [woken]
        before += 1
    assert config in stage.refused("keyed-far", "InvalidInput")
    stage.config(config, hub.kubeconfig.read_bytes())
    stage.wait("keyed-far", "Ready")
    stage.delete("keyed-far")


def test_a_crowd_is_upgraded_once_per_change(stage: Stage, hub, namespace) -> None:
    stage.chart("crowded", {"cm.yaml": TEMPLATE})
    apply(hub, secret("shared", namespace, values="message: m0"))
    used = key_of("shared", namespace, "values")
    names = [f"crowd-{number}" for number in range(CROWD)]
    stage.applied += names
    apply(hub, *(stage.manifest(name, "crowded", namespace, valuesFrom=used) for name in names))

    def all_say(message: str) -> bool:
        shown = "{range .items[*]}{.metadata.name}={.data.message}{'\\n'}{end}"
        said = hub.kubectl("get", "cm", "-n", namespace, "-o", f"jsonpath={shown}").split()
        return {f"{name}={message}" for name in names} <= set(said)

    def by_name() -> dict[str, int]:
        listed = json.loads(hub.kubectl("get", "release", "-o", "json"))["items"]
        return {
            one["metadata"]["name"]: one["status"]["atProvider"].get("revision", 0)
            for one in listed
            if one["metadata"]["name"] in names
        }

    def revisions() -> set[int]:
        return set(by_name().values())

    eventually(lambda: all_say("m0"), within=240, what="all installed")
    hub.kubectl(
        *("wait", "--for=condition=Ready", "--timeout=120s"), *(f"release/{n}" for n in names)
    )
    shared = f"Secret {namespace}/shared"
    apply(hub, *(secret("shared", namespace, values=f"message: m{n}") for n in range(1, 6)))
    eventually(lambda: all_say("m5"), within=240, what="all upgraded")
    # On a quiet machine these five are one change; never are they more upgrades than changes.
    heard = [woken for woken in wakes(stage, shared) if woken]
    print(f"five changes at once woke {heard}, revisions {sorted(revisions())}")
    assert set(heard) == {CROWD}
    # The cluster has what the statuses do not tell yet: those of now count, and not while an upgrade is under way.
    stage.look_again(*names)
    hub.kubectl(
        *("wait", "--for=condition=Ready", "--timeout=120s"), *(f"release/{n}" for n in names)
    )
    assert max(revisions()) <= 1 + len(heard)
    before = {one: number + 1 for one, number in by_name().items()}
    began = time.monotonic()
    apply(hub, secret("shared", namespace, values="message: m6"))
    eventually(lambda: all_say("m6"), within=240, what="all upgraded again")
    print(f"{CROWD} releases upgraded in {time.monotonic() - began:.1f} s")
    eventually(lambda: by_name() == before, within=60, what="each exactly once")
    assert [woken for woken in wakes(stage, shared) if woken] == [*heard, CROWD]
    # In one call: one for each would take minutes.
    hub.kubectl("delete", "release", *names, "--wait=false")
    stage.applied.clear()
