"""Charts from git, and charts that somebody must have signed."""

import base64
import hashlib
import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from stage import Stage, conditions, eventually, history

from pilothouse.dev import charts
from pilothouse.dev.registry import Registry, serve_registry

ROOT = Path(__file__).resolve().parents[2]
HELLO = ROOT / "examples" / "charts" / "hello"
SIGNED = ROOT / "tests" / "data" / "signed"
# Nobody has its private half.
STRANGER = """-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE8rW/Xk729iSg132/BgsnaEYj1Rpc
pa6TBGZdkYiZp1XM/14hsxFV4QCav8RB8fG41mjuQ2IXpCfsav1sn8/Oxw==
-----END PUBLIC KEY-----
"""
LOGIN = ("joe", "hunter2-of-the-git-server")


class Repository:
    """A git repository that the real git serves, over HTTPS and SSH."""

    def __init__(self, work: Path, served: Path) -> None:
        # The server is everybody's, the repository is not.
        self.name = f"{uuid.uuid4().hex[:10]}.git"
        self.work, self.bare = work, served / self.name
        self.work.mkdir()
        self.git("init", "-q", "-b", "main")
        self.git("init", "-q", "--bare", "-b", "main", str(self.bare))

    def git(self, *arguments: str) -> str:
        quiet = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
        done = subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *arguments],
            cwd=self.work,
            env=os.environ | quiet,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def publish(self, version: str) -> str:
        """Commit the chart as that version, under a tag; return the commit."""
        place = self.work / "charts" / "hello"
        shutil.copytree(HELLO, place, dirs_exist_ok=True)
        described = (place / "Chart.yaml").read_text().splitlines()
        lines = [one for one in described if not one.startswith("version:")]
        (place / "Chart.yaml").write_text("\n".join([*lines, f"version: {version}", ""]))
        self.git("add", "-A")
        self.git("commit", "-q", "-m", version)
        self.git("tag", f"v{version}")
        self.git("push", "-q", "--all", str(self.bare))
        self.git("push", "-q", "--tags", str(self.bare))
        return self.git("rev-parse", "HEAD")


@pytest.fixture(scope="module")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("repositories")


@pytest.fixture
def repository(tmp_path: Path, repositories: Path) -> Repository:
    return Repository(tmp_path / "git", repositories)


@pytest.fixture(scope="module")
def server(
    repositories: Path,
    tmp_path_factory: pytest.TempPathFactory,
    dev_report: Callable[[str], None],
) -> Iterator[Registry]:
    """A registry, and git over HTTPS and SSH; all of it wants to be shown something."""
    with serve_registry(
        tmp_path_factory.mktemp("server"), dev_report, git=repositories, tls=True, login=LOGIN
    ) as served:
        yield served


def put(stage: Stage, name: str, namespace: str, data: dict[str, bytes]) -> dict[str, str]:
    encoded = {key: base64.b64encode(content).decode() for key, content in data.items()}
    where = {"name": name, "namespace": namespace}
    manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": where, "data": encoded}
    stage.hub.kubectl("apply", "-f", "-", input=json.dumps(manifest))
    return where


def trusted(stage: Stage, namespace: str, server: Registry) -> dict[str, Any]:
    authority = put(stage, "authority", namespace, {"ca.crt": server.certificate.encode()})
    return {"caBundle": {"secretKeyRef": authority}}


def known_as_another(server: Registry) -> bytes:
    """Return a line of known_hosts with the right host and the wrong key."""
    parts = (b"ssh-ed25519", os.urandom(32))
    key = b"".join(len(part).to_bytes(4) + part for part in parts)
    host = server.known_hosts.split()[0]
    return f"{host} ssh-ed25519 {base64.b64encode(key).decode()}".encode()


def test_a_branch_follows_when_it_may(
    stage: Stage, repository: Repository, server: Registry, namespace: str, helm4: Any
) -> None:
    first = repository.publish("1.0.0")
    trust = trusted(stage, namespace, server)
    url = f"{server.git}/{repository.name}"
    git = {"url": url, "ref": {"branch": "main"}, "path": "charts/hello"}
    stage.release_from("branch", namespace, {"git": git}, **trust)
    assert "wants credentials" in stage.refused("branch", "ChartUnavailable")
    git |= {"secretRef": {"name": "git", "namespace": namespace}}
    stage.release_from("branch", namespace, {"git": git}, upgrade={"interval": "10s"}, **trust)
    assert "spec.forProvider.chart.git.secretRef" in stage.refused("branch", "NotFound")
    put(stage, "git", namespace, {"username": LOGIN[0].encode(), "password": LOGIN[1].encode()})
    release = stage.wait("branch", "Ready")
    source = f"{url}@{first}:charts/hello"
    assert release["status"]["chart"]["source"] == source
    assert release["status"]["atProvider"]["version"] == "1.0.0"
    second = repository.publish("1.1.0")
    newer = f"main@{second[:12]}"
    eventually(lambda: stage.get("branch")["status"].get("availableVersion") == newer)
    # The status is lost: the commit that stands is found on the record.
    lost = '[{"op": "remove", "path": "/status"}]'
    stage.hub.kubectl(
        *("patch", "release", "branch", "--subresource=status", "--type=json", "-p", lost)
    )
    eventually(lambda: stage.get("branch").get("status", {}).get("availableVersion") == newer)
    assert stage.wait("branch", "Ready")["status"]["chart"]["source"] == source
    assert len(history(helm4, stage.hub, namespace, "branch")) == 1
    # An edit of something else deploys the commit that stands.
    stage.release_from(
        *("branch", namespace, {"git": git}),
        **{"upgrade": {"interval": "10s"}, "values": {"message": "x"}, **trust},
    )
    eventually(lambda: len(history(helm4, stage.hub, namespace, "branch")) == 2)
    assert stage.wait("branch", "Ready")["status"]["chart"]["source"] == source
    follow = {"upgrade": {"automatic": True}, "values": {"message": "x"}}
    stage.release_from("branch", namespace, {"git": git}, **follow, **trust)
    eventually(lambda: stage.get("branch")["status"]["atProvider"]["version"] == "1.1.0")
    release = stage.wait("branch", "Ready")
    assert release["status"]["lastAttempt"]["reason"] == (
        f"chart {first[:12]} → {newer}: branch main has moved"
    )
    assert not release["status"].get("availableVersion")
    assert LOGIN[1] not in json.dumps([release, stage.events("branch")])
    assert LOGIN[1] not in stage.controller.log.read_text()


def test_tags_ranges_and_commits(
    stage: Stage, repository: Repository, server: Registry, namespace: str
) -> None:
    first = repository.publish("1.0.0")
    repository.publish("1.1.0")
    trust = trusted(stage, namespace, server)
    login = {"username": LOGIN[0].encode(), "password": LOGIN[1].encode()}
    secret = put(stage, "git", namespace, login)
    git = {"url": f"{server.git}/{repository.name}", "path": "charts/hello", "secretRef": secret}
    identity = {"identity": server.ssh_key.encode()}
    known = identity | {"known_hosts": server.known_hosts.encode()}
    strange = identity | {"known_hosts": known_as_another(server)}
    ssh = git | {"url": f"ssh://git@{server.ssh}/{repository.name}"}
    wanted: dict[str, tuple[dict[str, Any], dict[str, str], str]] = {
        "git-tag": (git, {"tag": "v1.0.0"}, "1.0.0"),
        "git-semver": (git, {"semver": "~1.0"}, "1.0.0"),
        "git-commit": (git, {"commit": first}, "1.0.0"),
        "git-default": (git, {}, "1.1.0"),
        "git-ssh": (ssh | {"secretRef": put(stage, "ssh", namespace, known)}, {}, "1.1.0"),
    }
    impostor = ssh | {"secretRef": put(stage, "impostor", namespace, strange)}
    stage.release_from("git-impostor", namespace, {"git": impostor}, **trust)
    for name, (where, ref, _) in wanted.items():
        stage.release_from(name, namespace, {"git": where | {"ref": ref}}, **trust)
    for name, (_, _, version) in wanted.items():
        assert stage.wait(name, "Ready")["status"]["atProvider"]["version"] == version, name
    said = stage.refused("git-impostor", "ChartInvalid")
    assert "is not the one in known_hosts: the server shows ssh-ed25519 SHA256:" in said
    shown = json.dumps([stage.get("git-ssh"), stage.get("git-impostor")])
    assert not any(line in shown for line in server.ssh_key.splitlines())
    stage.release_from("git-tag", namespace, {"git": git | {"ref": {"tag": "v9"}}}, **trust)
    assert 'there is no tag "v9"' in stage.refused("git-tag", "ChartNotFound")
    both = {"git": git | {"ref": {"tag": "v1.0.0", "branch": "main"}}}
    with pytest.raises(Exception, match="only branch and commit go together"):
        stage.release_from("git-tag", namespace, both, **trust)


def test_only_signed_charts(stage: Stage, namespace: str, tmp_path: Path, helm4: Any) -> None:
    place = tmp_path / "signed"
    with charts.serve(place) as served:
        served.add(HELLO, version="2.0.0")
        for one in SIGNED.glob("hello-*"):
            shutil.copy(one, place)
        signed = f"{served.url}/hello-1.0.0.tgz"
        # Somebody else has fetched it already, unverified.
        stage.release_from("careless", namespace, {"url": signed})
        stage.wait("careless", "Ready")
        keys = {"name": "signers", "namespace": namespace}
        verify = {"provider": "gpg", "secretRef": keys}
        stage.release_from("careful", namespace, {"url": signed, "verify": verify})
        assert "chart.verify.secretRef" in stage.refused("careful", "NotFound")
        put(stage, "signers", namespace, {"john.asc": (SIGNED / "john.asc").read_bytes()})
        said = stage.refused("careful", "ChartNotVerified")
        assert "expected" in said
        assert "John" in said
        assert "careful" not in helm4(stage.hub, "list", "-n", namespace)
        put(stage, "signers", namespace, {"jane.gpg": (SIGNED / "jane.gpg").read_bytes()})
        stage.wait("careful", "Ready")
        keys_come_later(stage, namespace, {"url": signed}, helm4)
        unsigned = {"repository": served.url, "name": "hello", "version": "2.0.0"}
        stage.release_from("unsigned", namespace, unsigned | {"verify": verify})
        assert "no provenance file" in stage.refused("unsigned", "ChartNotVerified")
        stage.release_from(
            "unsigned", namespace, unsigned | {"verify": verify | {"provider": "cosign"}}
        )
        assert "ends in .pub" in stage.refused("unsigned", "NotFound")


def keys_come_later(stage: Stage, namespace: str, chart: dict[str, Any], helm4: Any) -> None:
    """What is deployed is checked at once; whatever comes of it, no revision does."""
    later = {"name": "later", "namespace": namespace}
    put(stage, **later, data={"john.asc": (SIGNED / "john.asc").read_bytes()})
    checked = chart | {"verify": {"provider": "gpg", "secretRef": later}}
    stage.release_from("careless", namespace, checked)
    assert "John" in stage.refused("careless", "ChartNotVerified")
    assert conditions(stage.get("careless"))["Ready"]["status"] == "True"
    put(stage, **later, data={"jane.gpg": (SIGNED / "jane.gpg").read_bytes()})
    stage.wait("careless", "Synced")
    pin = hashlib.sha256((SIGNED / "hello-1.0.0.tgz").read_bytes()).hexdigest()
    stage.release_from("careless", namespace, checked | {"digest": f"sha256:{'0' * 64}"})
    assert f"is sha256:{pin}, but the pin says" in stage.refused("careless", "ChartInvalid")
    stage.release_from("careless", namespace, checked | {"digest": f"sha256:{pin}"})
    stage.wait("careless", "Synced")
    assert len(history(helm4, stage.hub, namespace, "careless")) == 1
    told = [one["message"] for one in stage.events("careless")]
    assert sum("expected" in one for one in told) == 1, told


def push(helm4: Any, stage: Stage, server: Registry, version: str, place: Path) -> str:
    """Push with the real helm; return the digest it reports."""
    _, content = charts.pack(HELLO, version=version)
    packed = place / f"hello-{version}.tgz"
    packed.write_bytes(content)
    said = helm4(
        stage.hub,
        *("push", str(packed), f"oci://{server.address}/charts", "--insecure-skip-tls-verify"),
        *("--username", LOGIN[0], "--password", LOGIN[1]),
    )
    return str(said).split("Digest:")[1].split()[0]


def called(public_key: str) -> str:
    """Return what a key is called in messages."""
    content = base64.b64decode("".join(public_key.strip().splitlines()[1:-1]))
    return f"SHA256:{hashlib.sha256(content).hexdigest()[:32]}"


def test_only_charts_signed_with_cosign(
    stage: Stage, server: Registry, namespace: str, tmp_path: Path, helm4: Any
) -> None:
    server.sign("charts/hello", push(helm4, stage, server, "3.0.0", tmp_path), LOGIN)
    push(helm4, stage, server, "3.1.0", tmp_path)
    trust = trusted(stage, namespace, server)
    login = {"username": LOGIN[0].encode(), "password": LOGIN[1].encode()}
    chart = {
        "repository": f"oci://{server.address}/charts",
        "name": "hello",
        "pullSecretRef": put(stage, "pull", namespace, login),
    }
    right = put(stage, "right", namespace, {"right.pub": server.signer.encode()})
    wrong = put(stage, "wrong", namespace, {"wrong.pub": STRANGER.encode()})
    for name, version, keys in (
        ("cosigned", "3.0.0", right),
        ("cosigned-by-another", "3.0.0", wrong),
        ("not-cosigned", "3.1.0", right),
    ):
        verify = {"provider": "cosign", "secretRef": keys}
        stage.release_from(name, namespace, chart | {"version": version, "verify": verify}, **trust)
    stage.wait("cosigned", "Ready")
    said = stage.refused("cosigned-by-another", "ChartNotVerified")
    assert "none of the 1 signatures" in said
    assert called(STRANGER) in said
    said = stage.refused("not-cosigned", "ChartNotVerified")
    assert "no cosign signature" in said
    assert called(server.signer) in said
    assert [
        one["name"] for one in json.loads(helm4(stage.hub, "list", "-n", namespace, "-o", "json"))
    ] == ["cosigned"]
