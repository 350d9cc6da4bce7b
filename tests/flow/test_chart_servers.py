"""How servers of charts are reached: as each Release says, and never as another one does."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from stage import Stage
from turnstile import turnstile

from pilothouse.dev import charts
from pilothouse.dev.cluster import DevCluster
from pilothouse.dev.pytest_plugin import Helm
from pilothouse.dev.registry import Registry, serve_registry

HELLO = Path(__file__).resolve().parents[2] / "examples" / "charts" / "hello"
WHERE = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data: {where: "%s"}
"""


class Yard:
    """Where registries are made, and filled with the real helm."""

    def __init__(self, hub: DevCluster, helm4: Helm, place: Path, say: Callable[[str], None]):
        self._hub, self._helm4, self._place, self._say = hub, helm4, place, say

    def registry(self, name: str, **how: Any) -> AbstractContextManager[Registry]:
        return serve_registry(self._place / name, self._say, **how)

    def push(self, to: str, *options: str) -> str:
        """Push the chart; return the digest that helm reports."""
        _, content = charts.pack(HELLO, version="1.0.0")
        packed = self._place / "hello-1.0.0.tgz"
        packed.write_bytes(content)
        said = self._helm4(self._hub, "push", str(packed), f"oci://{to}", *options)
        return said.split("Digest:")[1].split()[0]


@pytest.fixture
def yard(hub: DevCluster, helm4: Helm, tmp_path: Path, dev_report: Callable[[str], None]) -> Yard:
    return Yard(hub, helm4, tmp_path, dev_report)


def give_login(stage: Stage, name: str, namespace: str, password: str) -> dict[str, Any]:
    """Make a pull secret; return what refers to it."""
    stage.hub.kubectl(
        *("create", "secret", "generic", name, "-n", namespace),
        *(f"--from-literal=username={name}", f"--from-literal=password={password}"),
    )
    return {"pullSecretRef": {"name": name, "namespace": namespace}}


def test_a_registry_need_not_be_trusted_with_a_password_or_without(
    stage: Stage, namespace: str, yard: Yard
) -> None:
    """provider-helm skips the check of a registry's certificate only for those who bring credentials.

    Unlike provider-helm: Registries.
    """
    login = ("joe", "hunter2-of-the-registry")
    with (
        yard.registry("open", tls=True) as public,
        yard.registry("locked", tls=True, login=login) as private,
    ):
        blindly = "--insecure-skip-tls-verify"
        yard.push(f"{public.address}/charts", blindly)
        shown = ("--username", login[0], "--password", login[1])
        yard.push(f"{private.address}/charts", blindly, *shown)
        given = give_login(stage, *(login[0], namespace, login[1]))
        sources = {
            "blind": {"url": f"oci://{public.address}/charts/hello:1.0.0"},
            "blind-known": {"url": f"oci://{private.address}/charts/hello:1.0.0", **given},
        }
        for name, chart in sources.items():
            stage.release_from(name, namespace, chart)
        for name in sources:
            assert "certificate" in stage.refused(name, "ChartUnavailable")
        due = stage.postponed(*sources)
        for name, chart in sources.items():
            stage.release_from(name, namespace, chart, insecureSkipTLSVerify=True)
        stage.ready_before(due)


def test_credentials_are_for_the_release_that_names_them(
    stage: Stage, namespace: str, yard: Yard
) -> None:
    """provider-helm keeps them by host, for all, and does not log in to registries without TLS.

    Unlike provider-helm: Registries, Credentials.
    """
    passwords = {"red": "hunter2-of-red", "blue": "hunter2-of-blue"}
    with (
        yard.registry("open") as registry,
        turnstile(registry.address, passwords) as door,
    ):
        chart, given = {}, {}
        for user, password in passwords.items():
            digest = yard.push(f"{registry.address}/{user}", "--plain-http")
            chart[user] = {"url": f"oci://{door.address}/{user}/hello@{digest}"}
            given[user] = give_login(stage, user, namespace, password)
        for user in passwords:
            stage.release_from(user, namespace, chart[user] | given[user], plainHTTP=True)
        for user in passwords:
            stage.wait(user, "Ready")
        # What is known and kept by now is still not for everybody.
        stage.release_from("nameless", namespace, chart["red"], plainHTTP=True)
        said = stage.refused("nameless", "ChartUnavailable")
        assert "wants credentials, and none were given" in said
        stage.release_from("thief", namespace, chart["red"] | given["blue"], plainHTTP=True)
        assert "refused the credentials" in stage.refused("thief", "ChartUnavailable")
        assert door.shown - {("red", "nobody"), ("blue", "nobody")} == {
            ("red", "red"),
            ("blue", "blue"),
            ("red", "blue"),
        }
        assert stage.leaks("thief", "hunter2-of") == []


def test_a_repository_is_its_whole_address(stage: Stage, namespace: str, tmp_path: Path) -> None:
    """provider-helm takes it for a registry's, which must not look so, and a chart for that of another's.

    Unlike provider-helm: Addresses, Chart cache.
    """
    with charts.serve(tmp_path / "served") as served:
        folders = {"Upper": "Feggah/~Joe", "lower": "feggah/~joe"}
        for said, folder in folders.items():
            made = tmp_path / said
            (made / "templates").mkdir(parents=True)
            (made / "Chart.yaml").write_text("apiVersion: v2\nname: twin\nversion: 1.0.0\n")
            (made / "templates" / "cm.yaml").write_text(WHERE % said)
            (served.directory / folder).mkdir(parents=True)
            charts.add_chart(served.directory / folder, made)
            address = f"{served.url}/{folder}?ref=Main&sig=a=b~"
            chart = {"repository": address, "name": "twin", "version": "1.0.0"}
            stage.release_from(f"at-{said.lower()}", namespace, chart)
        for said, folder in folders.items():
            name = f"at-{said.lower()}"
            stage.wait(name, "Ready")
            found = stage.read(f"/api/v1/namespaces/{namespace}/configmaps/{name}")
            assert found["data"]["where"] == said
            for file in ("index.yaml", "twin-1.0.0.tgz"):
                asked = f'"GET /{folder}/{file}?ref=Main&sig=a=b~ HTTP/1.1" 200 -'
                assert asked in served.requests
