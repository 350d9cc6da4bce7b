"""What others change of what a chart set is put back, or told: at once, and without a revision."""

import json
import os
import signal
import sqlite3
from typing import Any

import pytest
from moments import TIMES, assert_prompt, watched
from stage import Stage, conditions, eventually, history

from pilothouse.dev.cluster import DevCluster

FIGHTS = 20
# What is edited by hand, and how it is put back; each often enough, and not so often that it is a fight.
EDITED = [
    ("configmaps", lambda n: {"data": {"colour": f"red{n}"}}),
    ("configmaps", lambda n: {"data": {"shape": f"flat{n}"}}),
    ("deployments", lambda n: {"spec": {"replicas": 2 + n % 2}}),
    ("deployments", lambda n: {"metadata": {"labels": {"tier": f"back{n}"}}}),
    ("deployments", lambda n: {"spec": {"revisionHistoryLimit": 5 + n}}),
]
WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
  labels: {tier: front}
spec:
  replicas: 1
  revisionHistoryLimit: 4
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata:
      labels: {app: {{ .Release.Name }}}
    spec:
      containers: [{name: main, image: registry.example/main:1}]
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data:
  colour: {{ .Values.colour | default "blue" }}
  shape: round
---
apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}
spec:
  selector: {app: {{ .Release.Name }}}
  ports: [{port: 80}]
"""
RINGS = """\
{{- range until 20 }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ printf "ring%02d" . }}
  labels: {ring: "yes"}
data:
  colour: blue
  shape: round
{{- end }}
"""
HOOKED = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: {{ .Release.Name }}
webhooks:
{{- range list "checks" "others" }}
- name: {{ . }}.example.test
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  clientConfig:
    url: https://127.0.0.1:1/check
    caBundle: Cg==
  rules: [{apiGroups: [none.test], apiVersions: [v1], operations: [CREATE], resources: [nones]}]
{{- end }}
"""
OTHER_BUNDLE = (
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJmekNDQVNXZ0F3SUJBZ0lVSDZTd0FtTT0KLS0tLS1FTkQg"
    "Q0VSVElGSUNBVEUtLS0tLQo="
)


class Ground:
    """One release of the chart `web`, and short words for what others do to it."""

    def __init__(self, stage: Stage, namespace: str) -> None:
        self.stage, self.hub, self.namespace = stage, stage.hub, namespace

    def deploy(self, name: str, drift: dict[str, Any] | None = None, **more: Any) -> None:
        self.stage.chart("web", {"all.yaml": WEB})
        beside = {"drift": drift} if drift else None
        self.stage.release(name, "web", self.namespace, beside=beside, **more)
        self.stage.wait(name, "Ready")

    def edit(self, kind: str, name: str, patch: dict[str, Any], *options: str) -> None:
        self.hub.kubectl(
            *("patch", kind, name, "-n", self.namespace, "--type=merge", "-p", json.dumps(patch)),
            *(options or ("--field-manager=kubectl-edit",)),
        )

    def colour(self, name: str) -> str:
        return self.value("cm", name, "{.data.colour}")

    def value(self, kind: str, name: str, path: str) -> str:
        where = ("get", kind, name, "-n", self.namespace, "--ignore-not-found")
        return self.hub.kubectl(*where, "-o", f"jsonpath={path}")

    def drift(self, name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.stage.get(name)["status"].get("drift", [])
        return found

    def events(self, name: str, reason: str) -> list[str]:
        return [one["message"] for one in self.stage.events(name) if one["reason"] == reason]

    def drifted(self, name: str) -> dict[str, Any]:
        return conditions(self.stage.get(name)).get("Drifted", {})

    def repairs(self, name: str) -> list[tuple[str, str]]:
        """What the archive keeps of repairs, as (reason, error)."""
        path = self.stage.controller.directory / "archive.db"
        query = "SELECT reason, error FROM entry WHERE action = 'Repair' AND helm_release = ?"
        with sqlite3.connect(path) as archive:
            return list(archive.execute(query, (f"{self.namespace}/{name}",)))

    def logged(self, word: str, name: str) -> list[str]:
        lines = self.stage.controller.log.read_text().splitlines()
        return [line for line in lines if word in line and f"releases/{name}" in line]

    def upgrade(self, name: str, revision: int) -> None:
        """Ask for a new revision of the same objects, and wait for it."""
        values = {"spec": {"forProvider": {"values": {"any": f"thing{revision}"}}}}
        self.hub.kubectl("patch", "release", name, "--type=merge", "-p", json.dumps(values))
        self.hub.kubectl(
            *("wait", f"--for=jsonpath={{.status.atProvider.revision}}={revision}"),
            *(f"release/{name}", "--timeout=60s"),
        )
        self.stage.wait(name, "Synced")


@pytest.fixture
def ground(stage: Stage, namespace: str) -> Ground:
    return Ground(stage, namespace)


def chosen(thing: dict[str, Any]) -> list[Any]:
    """What of an object is edited here."""
    spec, labels = thing.get("spec", {}), thing["metadata"].get("labels", {})
    limits = [spec.get("replicas"), spec.get("revisionHistoryLimit")]
    return [thing.get("data"), *limits, labels.get("tier")]


@pytest.mark.timed
def test_a_hand_edit_is_put_back_at_once(ground: Ground, helm4) -> None:
    """Unlike provider-helm: Drift."""
    # Each series has a release of its own: one more would be a fight.
    names = iter(("edited", "edited-again", "edited-once-more"))
    assert_prompt(lambda: {"hand edit to repair": repairs_of_edits(ground, next(names))})
    assert len(history(helm4, ground.hub, ground.namespace, "edited")) == 1
    ground.stage.wait("edited", "Ready")
    assert ground.drift("edited") == []
    said = "put back: /data/colour of ConfigMap edited was changed by kubectl-edit"
    eventually(lambda: said in ground.events("edited", "CorrectedDrift"))
    eventually(
        lambda: len(ground.repairs("edited")) == TIMES, what="a line for each in the archive"
    )
    metrics = ground.stage.controller.metrics()
    assert metrics["pilothouse_drift_repairs_total", "succeeded"] >= TIMES
    reasons = {reason for reason, error in ground.repairs("edited") if not error}
    assert "/spec/replicas of Deployment edited was changed by kubectl-edit" in reasons


def repairs_of_edits(ground: Ground, name: str) -> list[float]:
    """Deploy, edit again and again, and tell how long each edit stood."""
    ground.deploy(name)
    took = []
    with (
        watched(ground.stage.kube, f"/api/v1/namespaces/{ground.namespace}/configmaps") as maps,
        watched(
            ground.stage.kube, f"/apis/apps/v1/namespaces/{ground.namespace}/deployments"
        ) as runs,
    ):
        sights = {"configmaps": maps, "deployments": runs}
        written = {
            kind: chosen(one.first(name, lambda _: True, what="there").object)
            for kind, one in sights.items()
        }
        for number in range(TIMES):
            kind, edit = EDITED[number % len(EDITED)]
            seen, right = sights[kind], written[kind]
            seen.patch(name, edit(number))
            edited = seen.first(name, lambda one, right=right: chosen(one) != right, what="edited")
            back = seen.first(name, lambda one, right=right: chosen(one) == right, what="put back")
            took.append(back.moment - edited.moment)
    return took


def test_what_was_deleted_comes_back(ground: Ground, helm4) -> None:
    ground.deploy("robbed")
    ground.hub.kubectl("delete", "cm,deployment", "robbed", "-n", ground.namespace)
    eventually(lambda: ground.colour("robbed") == "blue")
    eventually(lambda: ground.value("deployment", "robbed", "{.spec.replicas}") == "1")
    owner = "{.metadata.annotations.meta\\.helm\\.sh/release-name}"
    assert ground.value("cm", "robbed", owner) == "robbed"
    ground.stage.wait("robbed", "Ready")
    assert len(history(helm4, ground.hub, ground.namespace, "robbed")) == 1
    eventually(
        lambda: any("ConfigMap robbed was deleted" in why for why, _ in ground.repairs("robbed"))
    )


def test_an_object_that_lost_its_label_is_not_lost(ground: Ground) -> None:
    ground.deploy("peeled")
    label = "app.kubernetes.io/managed-by"
    ground.hub.kubectl("label", "cm", "peeled", "-n", ground.namespace, f"{label}-")
    shown = "{.metadata.labels.app\\.kubernetes\\.io/managed-by}"
    eventually(lambda: ground.value("cm", "peeled", shown) == "Helm")
    ground.edit("cm", "peeled", {"data": {"colour": "red"}})
    eventually(lambda: ground.colour("peeled") == "blue", what="it is watched again")


def test_what_others_add_is_theirs(ground: Ground) -> None:
    ground.deploy("shared")
    ground.edit("cm", "shared", {"data": {"extra": "mine"}, "metadata": {"labels": {"a": "b"}}})
    ground.edit("cm", "shared", {"data": {"colour": "red"}})
    eventually(lambda: ground.colour("shared") == "blue")
    assert ground.value("cm", "shared", "{.data.extra} {.metadata.labels.a}") == "mine b"


def test_a_replaced_port_is_put_back(ground: Ground) -> None:
    ground.deploy("rewired")
    shown = "{.spec.ports[*].port}"
    ground.edit("service", "rewired", {"spec": {"ports": [{"port": 81}]}})
    eventually(lambda: ground.value("service", "rewired", shown) == "80")
    said = eventually(lambda: ground.events("rewired", "CorrectedDrift"))
    assert "put back: /spec/ports/0/port of Service rewired was changed by kubectl-edit" in said
    ground.hub.kubectl(
        *("patch", "release", "rewired", "--type=merge", "-p"), '{"spec":{"drift":{"mode":"Warn"}}}'
    )
    ground.stage.look_again("rewired")
    ground.edit("service", "rewired", {"spec": {"ports": [{"port": 82}]}})
    ground.stage.wait("rewired", "Drifted")
    assert [one["paths"] for one in ground.drift("rewired")] == [["/spec/ports/0/port"]]
    # An upgrade takes it back where a repair would, in one go with the new mode.
    ground.hub.kubectl(
        *("patch", "release", "rewired", "--type=merge", "-p"),
        '{"spec":{"forProvider":{"values":{"any":"thing"}},"drift":{"mode":"Correct"}}}',
    )
    eventually(lambda: ground.stage.get("rewired")["status"]["atProvider"]["revision"] == 2)
    eventually(lambda: ground.value("service", "rewired", shown) == "80")
    ground.stage.wait("rewired", "Synced")


def test_warn_tells_and_touches_nothing(ground: Ground) -> None:
    ground.deploy("watched", {"mode": "Warn"})
    ground.edit("deployment", "watched", {"spec": {"replicas": 2}})
    ground.hub.kubectl("delete", "cm", "watched", "-n", ground.namespace)
    ground.stage.wait("watched", "Drifted")
    eventually(lambda: len(ground.drift("watched")) == 2)
    by_kind = {one["kind"]: one for one in ground.drift("watched")}
    deployment = by_kind["Deployment"]
    assert (deployment["paths"], deployment["manager"]) == (["/spec/replicas"], "kubectl-edit")
    assert by_kind["ConfigMap"]["paths"] == [""]
    assert {one["state"] for one in by_kind.values()} == {"Warn"}
    assert ground.value("deployment", "watched", "{.spec.replicas}") == "2"
    assert "ConfigMap watched was deleted" in ground.drifted("watched")["message"]
    said = "/spec/replicas of Deployment watched was changed by kubectl-edit"
    eventually(lambda: said in ground.events("watched", "Drifted"))
    since = ground.drifted("watched")["lastTransitionTime"]
    controller = ground.stage.controller
    engine = controller.engine_pid()
    assert engine
    os.kill(engine, signal.SIGKILL)
    # Put right by hand, it is no drift any more.
    ground.edit("deployment", "watched", {"spec": {"replicas": 1}})
    eventually(lambda: [one["kind"] for one in ground.drift("watched")] == ["ConfigMap"])
    controller.stop()
    controller.start()
    # And changed again by the same hand, it is.
    ground.edit("deployment", "watched", {"spec": {"replicas": 3}})
    eventually(lambda: len(ground.drift("watched")) == 2)
    # Who looks for the first time, a new engine or a new controller, takes nothing back and tells nothing twice.
    assert ground.drifted("watched")["lastTransitionTime"] == since
    deleted = [one for one in ground.stage.events("watched") if "was deleted" in one["message"]]
    assert [one["count"] for one in deleted] == [1]
    # What is only told is not taken by an upgrade either: whose it is, is said.
    ground.hub.kubectl(
        *("patch", "release", "watched", "--type=merge", "-p"),
        '{"spec":{"forProvider":{"values":{"any":"thing"}}}}',
    )
    assert "kubectl-edit" in ground.stage.refused("watched", "FieldConflict")
    ground.hub.kubectl(
        *("patch", "release", "watched", "--type=merge", "-p"),
        '{"spec":{"forProvider":{"values":{"any":null}},"drift":{"mode":"Correct"}}}',
    )
    ground.stage.wait("watched", "Drifted=False")
    assert ground.value("deployment", "watched", "{.spec.replicas}") == "1"
    assert ground.colour("watched") == "blue"


def test_what_is_to_be_ignored_is_left_while_the_rest_is_put_back(ground: Ground) -> None:
    rules = [
        {"paths": ["/spec/replicas"], "target": {"kind": "Deployment", "name": "le*"}},
        {"paths": ["/data/colour"], "target": {"kind": "Secret"}},
    ]
    ground.deploy("lenient", {"ignore": rules})
    ground.edit("deployment", "lenient", {"spec": {"replicas": 3}})
    ground.stage.look_again("lenient")
    container = {"name": "main", "image": "registry.example/other:2"}
    spec = {"template": {"spec": {"containers": [container]}}, "replicas": 4}
    ground.edit("deployment", "lenient", {"spec": spec})
    image = "{.spec.template.spec.containers[0].image}"
    eventually(lambda: ground.value("deployment", "lenient", image) == "registry.example/main:1")
    assert ground.value("deployment", "lenient", "{.spec.replicas}") == "4"
    ground.edit("cm", "lenient", {"data": {"colour": "red"}})
    eventually(lambda: ground.colour("lenient") == "blue", what="that rule is for Secrets")
    assert ground.drift("lenient") == []
    # Nor does an upgrade fail because of it, or take it back.
    ground.upgrade("lenient", 2)
    assert ground.value("deployment", "lenient", "{.spec.replicas}") == "4"


def test_an_autoscaler_has_the_replicas(ground: Ground) -> None:
    ground.deploy("elastic")
    ground.hub.kubectl("autoscale", "deployment", "elastic", "-n", ground.namespace, "--max=5")
    eventually(lambda: ground.stage.get("elastic")["status"].get("external"))
    ground.hub.kubectl("scale", "deployment", "elastic", "-n", ground.namespace, "--replicas=3")
    ground.edit("deployment", "elastic", {"metadata": {"labels": {"tier": "back"}}})
    eventually(lambda: ground.value("deployment", "elastic", "{.metadata.labels.tier}") == "front")
    assert ground.value("deployment", "elastic", "{.spec.replicas}") == "3"
    assert not any("/spec/replicas" in why for why, _ in ground.repairs("elastic"))
    ground.upgrade("elastic", 2)
    # Helm has applied none now, so only who compares everything finds that they differ.
    ground.hub.kubectl("annotate", "release", "elastic", "crossplane.io/poll-interval=1s")
    eventually(lambda: len(ground.logged("searching", "elastic")) > 2)
    ground.hub.kubectl("annotate", "release", "elastic", "crossplane.io/poll-interval-")
    assert ground.value("deployment", "elastic", "{.spec.replicas}") == "3"
    # What is only told is told each time, though the replicas differ all the while.
    ground.hub.kubectl(
        *("patch", "release", "elastic", "--type=merge", "-p"), '{"spec":{"drift":{"mode":"Warn"}}}'
    )
    ground.hub.kubectl("scale", "deployment", "elastic", "-n", ground.namespace, "--replicas=4")
    for tier, wanted in (("back", "Drifted"), ("front", "Drifted=False"), ("back", "Drifted")):
        ground.edit("deployment", "elastic", {"metadata": {"labels": {"tier": tier}}})
        ground.stage.wait("elastic", wanted)
    assert [one["paths"] for one in ground.drift("elastic")] == [["/metadata/labels/tier"]]


def test_an_injected_certificate_is_no_drift(ground: Ground) -> None:
    stage = ground.stage
    stage.chart("hooked", {"all.yaml": HOOKED})
    name = f"hooked-{ground.namespace}"
    stage.release(name, "hooked", ground.namespace)
    stage.wait(name, "Ready")
    place = ("validatingwebhookconfiguration", name)
    patch = [{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": OTHER_BUNDLE}]
    ground.hub.kubectl(
        *("patch", *place, "--type=json", "-p", json.dumps(patch)),
        "--field-manager=cainjector",
    )
    shown = "{.webhooks[*].failurePolicy} {.webhooks[*].clientConfig.caBundle}"
    right = f"Ignore Ignore {OTHER_BUNDLE} Cg=="

    def edit() -> None:
        patch = [
            {"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Fail"},
            {"op": "remove", "path": "/webhooks/1"},
        ]
        ground.hub.kubectl("patch", *place, "--type=json", "-p", json.dumps(patch))

    edit()
    eventually(lambda: ground.value(*place, shown) == right)
    ground.stage.look_again(name)
    assert ground.drift(name) == []
    # Nor does an upgrade take it that meets the same edit.
    controller = stage.controller
    controller.stop()
    edit()
    values = {"spec": {"forProvider": {"values": {"any": "thing"}}}}
    ground.hub.kubectl("patch", "release", name, "--type=merge", "-p", json.dumps(values))
    controller.start()
    eventually(lambda: ground.value(*place, shown) == right)
    stage.wait(name, "Ready")


def test_a_fight_is_stopped_and_named_once(ground: Ground) -> None:
    names = [f"ring{number:02}" for number in range(FIGHTS)]
    ground.stage.chart("rings", {"all.yaml": RINGS})
    ground.stage.release("arena", "rings", ground.namespace)
    ground.stage.wait("arena", "Ready")

    def colours() -> set[str]:
        shown = "jsonpath={range .items[*]}{.data.colour} {end}"
        where = ("get", "cm", "-n", ground.namespace, "-l", "ring=yes", "-o", shown)
        return set(ground.hub.kubectl(*where).split())

    for turn in range(6):
        patch = json.dumps({"data": {"colour": f"red{turn}"}})
        ground.hub.kubectl(
            *("patch", "cm", *names, "-n", ground.namespace, "--type=merge", "-p", patch),
            "--field-manager=kubectl-edit",
        )
        if turn < 5:
            eventually(lambda: colours() == {"blue"})
    eventually(lambda: len(ground.drift("arena")) == FIGHTS)
    assert colours() == {"red5"}
    assert ground.drifted("arena")["reason"] == "Fighting"
    assert {(one["state"], one["manager"], *one["paths"]) for one in ground.drift("arena")} == {
        ("Fight", "kubectl-edit", "/data/colour")
    }
    # What is not fought over is still put back, and the fight is not named again.
    ground.edit("cm", "ring00", {"data": {"colour": "red9", "shape": "flat"}})
    eventually(lambda: ground.value("cm", "ring00", "{.data.shape}") == "round")
    assert ground.colour("ring00") == "red9"
    ground.stage.look_again("arena")
    once = [
        (f"/data/colour of ConfigMap {name} is set by kubectl-edit again and again", 1)
        for name in names
    ]

    def told() -> list[tuple[str, int]]:
        events = ground.stage.events("arena")
        return sorted(
            (one["message"], one["count"]) for one in events if one["reason"] == "DriftFight"
        )

    eventually(lambda: told() == once, what="each fight is named once")


@pytest.mark.parametrize("client", ["helm3", "helm4"])
def test_what_another_client_deployed_is_told_first(
    ground: Ground, request, helm4, client: str
) -> None:
    """Client-side applied by Helm 3, server-side by Helm 4."""
    stage, hub, namespace = ground.stage, ground.hub, ground.namespace
    stage.chart("web", {"all.yaml": WEB})
    helm = request.getfixturevalue(client)
    name = f"by-{client}"
    source = ("web", "--repo", stage.repository.url, "--version", "1.0.0")
    helm(hub, "install", name, *source, "-n", namespace)
    ground.edit("cm", name, {"data": {"colour": "red"}})
    stage.release(name, "web", namespace)
    stage.wait(name, "Drifted")
    assert ground.colour(name) == "red", "it was so when it was adopted"
    (found,) = ground.drift(name)
    assert (found["paths"], found["manager"]) == (["/data/colour"], "kubectl-edit")
    hub.kubectl(
        *("patch", "release", name, "--type=merge", "-p"), '{"spec":{"drift":{"mode":"Correct"}}}'
    )
    eventually(lambda: ground.colour(name) == "blue")
    stage.wait(name, "Drifted=False")
    ground.edit("deployment", name, {"spec": {"replicas": 2}})
    eventually(lambda: ground.value("deployment", name, "{.spec.replicas}") == "1")
    hub.kubectl("delete", "cm", name, "-n", namespace)
    eventually(lambda: ground.colour(name) == "blue")
    assert len(history(helm4, hub, namespace, name)) == 1
    applied = ground.value("cm", name, "{.metadata.managedFields[*].operation}")
    assert ("Apply" in applied) == (client == "helm4"), "repaired the way it was applied"


def test_paused_or_without_update_nothing_is_put_back(ground: Ground) -> None:
    ground.deploy("asleep", annotations={"crossplane.io/paused": "false"})
    ground.hub.kubectl("annotate", "release", "asleep", "crossplane.io/paused=true", "--overwrite")
    eventually(
        lambda: conditions(ground.stage.get("asleep"))["Synced"]["reason"] == "ReconcilePaused"
    )
    ground.deploy("guarded")
    ground.hub.kubectl(
        *("patch", "release", "guarded", "--type=merge", "-p"),
        '{"spec":{"managementPolicies":["Observe","Create","Delete"]}}',
    )
    ground.stage.look_again("guarded")
    for name in ("asleep", "guarded"):
        ground.edit("cm", name, {"data": {"colour": "red"}})
    ground.stage.wait("guarded", "Drifted")
    assert (ground.colour("guarded"), ground.colour("asleep")) == ("red", "red")
    ground.hub.kubectl("annotate", "release", "asleep", "crossplane.io/paused-")
    eventually(lambda: ground.colour("asleep") == "blue")


def test_a_change_made_while_nobody_looked_is_found(ground: Ground, helm4) -> None:
    ground.deploy("unseen")
    ground.deploy("unseen-too")
    ground.stage.look_again("unseen")
    controller = ground.stage.controller
    controller.stop()
    ground.edit("cm", "unseen", {"data": {"colour": "red"}})
    ground.edit("cm", "unseen-too", {"data": {"colour": "red"}})
    ground.stage.release("unseen-too", "web", ground.namespace, {"colour": "green"})
    controller.start()
    eventually(lambda: ground.colour("unseen") == "blue")
    # A field that would be put back does not stand in the way of an upgrade.
    eventually(lambda: ground.colour("unseen-too") == "green")
    ground.stage.wait("unseen-too", "Ready")
    statuses = [one["status"] for one in history(helm4, ground.hub, ground.namespace, "unseen-too")]
    assert statuses == ["superseded", "deployed"]


def test_a_poll_finds_what_no_watch_can_tell(ground: Ground, hub: DevCluster) -> None:
    """A change in Helm's own name looks like Helm's; an object of others is not watched at all."""
    ground.deploy("polled")
    where = ("-n", ground.namespace)
    hub.kubectl("create", "configmap", "neighbour", "--from-literal=key=old", *where)
    detail = {"apiVersion": "v1", "kind": "ConfigMap", "name": "neighbour", "fieldPath": "data.key"}
    detail |= {"namespace": ground.namespace, "toConnectionSecretKey": "key"}
    details = {
        "connectionDetails": [detail | {"skipPartOfReleaseCheck": True}],
        "writeConnectionSecretToRef": {"name": "polled", "namespace": ground.namespace},
    }
    hub.kubectl("patch", "release", "polled", "--type=merge", "-p", json.dumps({"spec": details}))
    eventually(lambda: ground.value("secret", "polled", "{.data.key}") == "b2xk")
    hub.kubectl("patch", "cm", "neighbour", *where, "-p", '{"data":{"key":"new"}}')

    live = json.loads(hub.kubectl("get", "cm", "polled", *where, "-o", "json"))
    kept = {name: live["metadata"][name] for name in ("name", "labels", "annotations")}
    forged = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": kept}
    apply = ("apply", "--server-side", "--field-manager=helm", *where, "-f", "-")

    def forge(**data: str) -> None:
        hub.kubectl(*apply, input=json.dumps(forged | {"data": live["data"] | data}))

    forge(colour="red")
    ground.stage.look_again("polled")
    assert ground.colour("polled") == "red"
    assert ground.value("secret", "polled", "{.data.key}") == "b2xk"

    hub.kubectl("annotate", "release", "polled", "crossplane.io/poll-interval=1s")
    eventually(lambda: ground.colour("polled") == "blue")
    eventually(lambda: ground.value("secret", "polled", "{.data.key}") == "bmV3")
    # Not only once: the same object, and then another place in it.
    forge(colour="green")
    eventually(lambda: ground.colour("polled") == "blue")
    forge(shape="square")
    eventually(lambda: ground.value("cm", "polled", "{.data.shape}") == "round")
    assert ground.stage.get("polled")["status"]["atProvider"]["revision"] == 1


def test_our_own_writes_are_never_compared(ground: Ground, hub: DevCluster) -> None:
    ground.deploy("clean")
    ground.hub.kubectl(
        *("patch", "release", "clean", "--type=merge", "-p"),
        '{"spec":{"forProvider":{"values":{"any":"thing"}}}}',
    )
    hub.kubectl(
        *("wait", "--for=jsonpath={.status.atProvider.revision}=2", "release/clean"),
        "--timeout=60s",
    )
    ground.stage.wait("clean", "Ready")
    ground.stage.look_again("clean")
    assert ground.logged("comparing", "clean") == []
    ground.edit("cm", "clean", {"data": {"colour": "red"}})
    assert eventually(lambda: ground.logged("comparing", "clean"))


def test_a_bad_pointer_is_refused_by_name(ground: Ground) -> None:
    beside = {"drift": {"ignore": [{"paths": ["spec.replicas"]}]}}
    ground.stage.release("mistaken", "hello", ground.namespace, beside=beside)
    assert "spec.drift.ignore[0].paths" in ground.stage.refused("mistaken", "InvalidInput")
