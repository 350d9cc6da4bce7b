"""Charts from everywhere: what a user writes, and what comes of it."""

import base64
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from stage import Stage, conditions, eventually, history

from pilothouse.dev import charts
from pilothouse.dev.registry import Registry, serve_registry

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
HELLO = EXAMPLES / "charts" / "hello"
LOGIN = ("joe", "hunter2-of-the-chart-server")
PASSWORD = LOGIN[1]


@pytest.fixture(scope="module")
def guarded(
    tmp_path_factory: pytest.TempPathFactory, dev_report: Callable[[str], None]
) -> Iterator[Registry]:
    """A repository and a registry that want TLS to be trusted and a password."""
    place = tmp_path_factory.mktemp("guarded")
    charts.add_chart(place, HELLO, version="1.0.0")
    with serve_registry(
        tmp_path_factory.mktemp("passwords"), dev_report, charts=place, tls=True, login=LOGIN
    ) as served:
        yield served


@pytest.fixture(scope="module")
def registry(
    tmp_path_factory: pytest.TempPathFactory, dev_report: Callable[[str], None]
) -> Iterator[Registry]:
    with serve_registry(tmp_path_factory.mktemp("registry"), dev_report) as served:
        yield served


def put(
    stage: Stage, kind: str, name: str, namespace: str, data: dict[str, str], **more: str
) -> None:
    field = "stringData" if kind == "Secret" else "data"
    metadata = {"name": name, "namespace": namespace}
    manifest = {"apiVersion": "v1", "kind": kind, "metadata": metadata, field: data, **more}
    stage.hub.kubectl("apply", "-f", "-", input=json.dumps(manifest))


def push(helm4: Any, stage: Stage, registry: Registry, version: str, place: Path) -> str:
    """Push with the real helm; return the digest it reports."""
    described, content = charts.pack(HELLO, version=version)
    packed = place / f"{described['name']}-{version}.tgz"
    packed.write_bytes(content)
    said = helm4(stage.hub, "push", str(packed), f"oci://{registry.address}/charts", "--plain-http")
    return str(said).split("Digest:")[1].split()[0]


def version_of(release: dict[str, Any]) -> str:
    return str(release["status"]["atProvider"]["version"])


def test_a_repository_that_wants_trust_and_a_password(
    stage: Stage, guarded: Registry, namespace: str
) -> None:
    chart = {"repository": guarded.charts, "name": "hello", "version": "1.0.0"}
    stage.release_from("wary", namespace, chart)
    assert "certificate" in stage.refused("wary", "ChartUnavailable")
    put(stage, "ConfigMap", "authority", namespace, {"ca.crt": guarded.certificate})
    trust = {"configMapKeyRef": {"name": "authority", "namespace": namespace}}
    stage.release_from("wary", namespace, chart, caBundle=trust)
    eventually(lambda: "refused the credentials" in stage.refused("wary", "ChartUnavailable"))
    put(stage, "Secret", "login", namespace, {"username": LOGIN[0]})
    chart |= {"pullSecretRef": {"name": "login", "namespace": namespace}}
    stage.release_from("wary", namespace, chart, caBundle=trust)
    assert 'has no key "password"' in stage.refused("wary", "NotFound")
    put(stage, "Secret", "login", namespace, {"username": LOGIN[0], "password": "mistyped"})
    eventually(lambda: "refused the credentials" in stage.refused("wary", "ChartUnavailable"))
    due = stage.postponed("wary")
    login = dict(zip(("username", "password"), LOGIN, strict=True))
    put(stage, "Secret", "login", namespace, login)
    stage.ready_before(due)
    assert PASSWORD not in json.dumps([stage.get("wary"), stage.events("wary")])
    assert PASSWORD not in stage.controller.log.read_text()


def test_a_registry_with_a_docker_config(
    stage: Stage, guarded: Registry, namespace: str, helm4: Any, tmp_path: Path
) -> None:
    _, content = charts.pack(HELLO, version="1.0.0")
    (tmp_path / "hello-1.0.0.tgz").write_bytes(content)
    helm4(
        stage.hub,
        *("push", str(tmp_path / "hello-1.0.0.tgz"), f"oci://{guarded.address}/charts"),
        *("--insecure-skip-tls-verify", "--username", LOGIN[0], "--password", PASSWORD),
    )
    token = base64.b64encode(":".join(LOGIN).encode()).decode()
    config = json.dumps({"auths": {guarded.address: {"auth": token}}})
    put(
        *(stage, "Secret", "pull", namespace, {".dockerconfigjson": config}),
        type="kubernetes.io/dockerconfigjson",
    )
    put(stage, "Secret", "authority", namespace, {"ca.pem": guarded.certificate})
    stage.release_from(
        *("registered", namespace),
        {
            "url": f"oci://{guarded.address}/charts/hello:1.0.0",
            "pullSecretRef": {"name": "pull", "namespace": namespace},
        },
        caBundle={"secretKeyRef": {"name": "authority", "namespace": namespace, "key": "ca.pem"}},
    )
    release = stage.wait("registered", "Ready")
    assert release["status"]["chart"]["source"] == f"oci://{guarded.address}/charts/hello:1.0.0"
    assert token not in json.dumps(release["status"])


def test_oci_by_tag_and_by_digest(
    stage: Stage, registry: Registry, namespace: str, helm4: Any, tmp_path: Path
) -> None:
    """Unlike provider-helm: Versions."""
    pinned = push(helm4, stage, registry, "1.0.0", tmp_path)
    push(helm4, stage, registry, "1.1.0", tmp_path)
    base = f"oci://{registry.address}/charts"
    sources = {
        "by-tag": ({"url": f"{base}/hello:1.1.0"}, "1.1.0"),
        "by-digest": ({"url": f"{base}/hello@{pinned}"}, "1.0.0"),
        "by-both": ({"url": f"{base}/hello:1.0.0@{pinned}"}, "1.0.0"),
        "by-pin": ({"repository": base, "name": "hello", "digest": pinned}, "1.0.0"),
        "by-version": ({"repository": base, "name": "hello", "version": "v1.0.0"}, "1.0.0"),
        "latest": ({"repository": base, "name": "hello"}, "1.1.0"),
        "by-repository": ({"repository": f"{base}/hello"}, "1.1.0"),
        "by-address": ({"name": f"{base}/hello", "version": "1.0.0"}, "1.0.0"),
        "by-path": (
            {"repository": f"oci://{registry.address}", "name": "charts/hello", "version": "1.0.0"},
            "1.0.0",
        ),
    }
    for name, (chart, _) in sources.items():
        stage.release_from(name, namespace, chart, plainHTTP=True)
    for name, (_, version) in sources.items():
        assert version_of(stage.wait(name, "Ready")) == version, name
    stage.look_again(*sources)
    again = [one for one in map(stage.get, sources) if one["status"]["atProvider"]["revision"] != 1]
    assert [(one["metadata"]["name"], one["status"]["lastAttempt"]) for one in again] == []
    # The names beside the urls were filled in. Whoever asks for another source means his own words only.
    for name, chart, version in (
        ("by-tag", {"repository": f"{base}/hello", "version": "1.0.0"}, "1.0.0"),
        ("by-both", {"repository": base, "name": "hello", "version": "1.1.0"}, "1.1.0"),
    ):
        assert stage.get(name)["spec"]["forProvider"]["chart"]["name"] == "hello"
        stage.release_from(name, namespace, chart, plainHTTP=True)
        eventually(
            lambda name=name, version=version: version_of(stage.get(name)) == version,
            what=f"{name}, from its new source",
        )
        assert stage.get(name)["spec"]["forProvider"]["chart"] == chart


def test_inline(stage: Stage, hub: Any, namespace: str) -> None:
    _, content = charts.pack(HELLO, version="1.0.0")
    stage.release_from("inline", namespace, {"inline": base64.b64encode(content).decode()})
    release = stage.wait("inline", "Ready")
    assert version_of(release) == "1.0.0"
    _, content = charts.pack(HELLO, version="1.0.1")
    # As `base64` prints it, with line breaks.
    stage.release_from("inline", namespace, {"inline": base64.encodebytes(content).decode()})
    eventually(lambda: version_of(stage.get("inline")) == "1.0.1")
    stage.release_from("inline", namespace, {"inline": "bm90IGEgY2hhcnQ="})
    assert "not a gzip archive" in stage.refused("inline", "ChartInvalid")
    large = {
        "apiVersion": "helm.crossplane.io/v1beta1",
        "kind": "Release",
        "metadata": {"name": "large"},
        "spec": {"forProvider": {"chart": {"inline": "A" * 800_000}, "namespace": namespace}},
    }
    said = hub.kubectl("create", "-f", "-", input=json.dumps(large), check=False)
    assert "push the chart to an OCI registry" in said


def test_the_guide_can_be_applied(stage: Stage, hub: Any) -> None:
    guide = (EXAMPLES.parent / "docs" / "guides" / "charts.md").read_text()
    blocks = re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL)
    releases = [one for text in blocks for one in yaml.safe_load_all(text)]
    names = [one["metadata"]["name"] for one in releases if one["kind"] == "Release"]
    assert len(names) == len(set(names)) == 13
    for one in releases:
        if one["kind"] == "Release":
            said = hub.kubectl("create", "--dry-run=server", "-f", "-", input=json.dumps(one))
            assert "Warning" not in said


def test_a_chart_on_disk_is_not_a_source(stage: Stage, namespace: str) -> None:
    stage.release_from("disk", namespace, {"url": f"file://{HELLO}"})
    assert "is not a source" in stage.refused("disk", "ChartInvalid")


@pytest.fixture
def own(tmp_path: Path) -> Iterator[charts.Repository]:
    """A repository that only this story changes."""
    with charts.serve(tmp_path / "own") as served:
        served.add(HELLO, version="1.2.0")
        served.add(HELLO, version="2.0.0")
        yield served


def test_a_range_follows_by_itself(
    stage: Stage, own: charts.Repository, namespace: str, helm4: Any
) -> None:
    chart = {"repository": own.url, "name": "hello", "version": "~1.2"}
    follow = {"automatic": True, "interval": "10s"}
    for name in ("follows", "follows-too"):
        stage.release_from(name, namespace, chart, upgrade=follow)
        assert version_of(stage.wait(name, "Ready")) == "1.2.0"
    assert stage.get("follows")["spec"]["forProvider"]["chart"]["version"] == "~1.2"
    own.add(HELLO, version="1.2.1")
    own.add(HELLO, version="1.3.0")
    for name in ("follows", "follows-too"):
        eventually(lambda name=name: version_of(stage.get(name)) == "1.2.1")
    release = stage.wait("follows", "Ready")
    reason = "chart 1.2.0 → 1.2.1: newer version in range ~1.2"
    assert release["status"]["lastAttempt"]["reason"] == reason
    assert any(reason in said for said in stage.told("follows", "UpdatedExternalResource"))
    assert len(history(helm4, stage.hub, namespace, "follows")) == 2


def test_a_range_that_only_reports(
    stage: Stage, own: charts.Repository, namespace: str, helm4: Any
) -> None:
    chart = {"repository": own.url, "name": "hello", "version": "^1"}
    stage.release_from("reports", namespace, chart, upgrade={"interval": "10s"})
    stage.wait("reports", "Ready")
    own.add(HELLO, version="1.4.0")
    eventually(lambda: stage.get("reports")["status"].get("availableVersion") == "1.4.0")
    stage.release_from(
        "reports", namespace, chart, upgrade={"interval": "10s"}, values={"message": "x"}
    )
    eventually(lambda: len(history(helm4, stage.hub, namespace, "reports")) == 2)
    release = stage.wait("reports", "Synced")
    assert version_of(release) == "1.2.0"
    eventually(lambda: stage.get("reports")["status"].get("availableVersion") == "1.4.0")
    assert stage.told("reports", "NewVersionAvailable") == [
        "chart version 1.4.0 is available in range ^1; deployed is 1.2.0"
    ]
    stage.release_from("reports", namespace, chart, upgrade={"automatic": True})
    eventually(lambda: version_of(stage.get("reports")) == "1.4.0")


def test_a_range_adopts_what_it_allows(
    stage: Stage, own: charts.Repository, namespace: str, helm4: Any
) -> None:
    source = ("hello", "--repo", own.url, "--version", "1.2.0", "--set", "message=by hand")
    helm4(stage.hub, "install", "adopted", *source, "-n", namespace)
    own.add(HELLO, version="1.2.1")
    chart = {"repository": own.url, "name": "hello", "version": "~1.2"}
    values = {"message": "by hand"}
    stage.release_from("adopted", namespace, chart, values=values)
    stage.wait("adopted", "Ready")
    eventually(lambda: stage.get("adopted")["status"].get("availableVersion") == "1.2.1")
    assert len(history(helm4, stage.hub, namespace, "adopted")) == 1
    stage.release_from("adopted", namespace, chart, values=values, upgrade={"automatic": True})
    eventually(lambda: len(history(helm4, stage.hub, namespace, "adopted")) == 2)
    eventually(lambda: version_of(stage.get("adopted")) == "1.2.1")
    release = stage.wait("adopted", "Ready")
    reason = "chart 1.2.0 → 1.2.1: newer version in range ~1.2"
    assert release["status"]["lastAttempt"]["reason"] == reason
    # Its repository is asked every ten minutes. A look now is a look at it too, and a range does not loop.
    own.add(HELLO, version="1.2.2")
    stage.look_again("adopted")
    eventually(lambda: version_of(stage.get("adopted")) == "1.2.2")
    assert len(history(helm4, stage.hub, namespace, "adopted")) == 3


def test_a_version_that_is_published_again(
    stage: Stage, own: charts.Repository, namespace: str, helm4: Any
) -> None:
    """Unlike provider-helm: Chart cache."""
    chart = {"repository": own.url, "name": "hello", "version": "1.2.0"}
    stage.release_from("again", namespace, chart, upgrade={"interval": "10s"})
    before = stage.wait("again", "Ready")["status"]["chart"]["digest"]
    own.add(HELLO, version="1.2.0", description="something else")
    entry = yaml.safe_load((own.directory / "index.yaml").read_text())["entries"]["hello"]
    after = "sha256:" + next(one["digest"] for one in entry if one["version"] == "1.2.0")
    eventually(
        lambda: stage.get("again")["status"]["chart"].get("republishedDigest") == after,
        what="the other digest is reported",
    )
    (said,) = stage.told("again", "ChartRepublished")
    assert after in said
    # Not even with another change: what was deployed stays, until its digest is named.
    stage.release_from("again", namespace, chart, values={"message": "edited"})
    eventually(lambda: len(history(helm4, stage.hub, namespace, "again")) == 2)
    assert stage.wait("again", "Ready")["status"]["chart"]["digest"] == before
    stage.release_from("again", namespace, chart | {"digest": after}, values={"message": "edited"})
    eventually(lambda: stage.get("again")["status"]["chart"]["digest"] == after)
    assert conditions(stage.wait("again", "Ready"))["Synced"]["status"] == "True"


def test_a_repository_that_is_down_disturbs_nobody(
    stage: Stage, namespace: str, tmp_path: Path
) -> None:
    with charts.serve(tmp_path / "gone") as served:
        served.add(HELLO, version="1.2.0")
        chart = {"repository": served.url, "name": "hello", "version": "~1.2"}
        stage.release_from(
            "orphaned", namespace, chart, upgrade={"automatic": True, "interval": "10s"}
        )
        stage.wait("orphaned", "Ready")
    stage.hub.kubectl("annotate", "release", "orphaned", "crossplane.io/reconcile-requested-at=now")
    eventually(lambda: stage.get("orphaned")["status"].get("lastHandledReconcileAt") == "now")
    assert conditions(stage.get("orphaned"))["Synced"]["status"] == "True"
