"""What a story needs: a controller in its own process, a chart repository, and eyes that wait."""

import base64
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote
from urllib.request import urlopen

import yaml
from kube import Kube
from prometheus_client.parser import text_string_to_metric_families

from pilothouse.dev.charts import Repository
from pilothouse.dev.cluster import DevCluster
from pilothouse.dev.errors import DevClusterError

T = TypeVar("T")
PATIENCE = 60.0
# A look is often a whole kubectl, which costs more than what is looked at.
LOOK_SECONDS = 0.2
# The engine reads what it may not watch every 30 seconds: what is seen sooner was watched.
SOONER_THAN_READ = 25
RELEASES = "/apis/helm.crossplane.io/v1beta1/releases"
ENGINE = "/pilothouse-engine"
ESTABLISHED = '{range .items[*]}{.status.conditions[?(@.type=="Established")].status}{end}'
CRDS = ["crd/releases.helm.crossplane.io", "crd/providerconfigs.helm.crossplane.io"]


def read_of_process(path: Path) -> str:
    """Read a file of a process; nothing when the process is gone."""
    try:
        return path.read_text()
    except OSError:
        return ""


def is_engine(pid: int) -> bool:
    """Whether this process is an engine and lives: what has ended has no program any more."""
    return read_of_process(Path(f"/proc/{pid}/cmdline")).split("\0")[0].endswith(ENGINE)


def eventually(look: Callable[[], T], *, within: float = PATIENCE, what: str = "") -> T:
    """Look until the answer is truthy; the answer, or a failure that shows the last one."""
    deadline = time.monotonic() + within
    while True:
        answer = look()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within:.0f} s: {what or look}: {answer!r}")
        time.sleep(LOOK_SECONDS)


@dataclass
class ControllerProcess:
    """`pilothouse controller` as an operator runs it."""

    hub: DevCluster
    directory: Path
    process: "subprocess.Popen[bytes] | None" = None
    # What an operator adds to the command line.
    options: tuple[str, ...] = ()

    @property
    def log(self) -> Path:
        return self.directory / "controller.log"

    def start(self) -> None:
        command = [
            *(sys.executable, "-m", "pilothouse", "controller", "--verbose"),
            *("--kubeconfig", str(self.hub.kubeconfig)),
            *("--archive", str(self.directory / "archive.db")),
            # Clusters and charts of these stories are on ports of this one address.
            *("--egress-allow", "127.0.0.1:*"),
            *("--metrics", "127.0.0.1:0"),
            *self.options,
        ]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=os.environ
            )

    def metrics(self) -> dict[tuple[str, ...], float]:
        """What Prometheus would read, by name and the values of its labels in the order of their names."""
        address = re.findall(r"event=metrics address=(\S+)", self.log.read_text())[-1]
        with urlopen(f"http://{address}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        return {
            (one.name, *(one.labels[label] for label in sorted(one.labels))): one.value
            for family in text_string_to_metric_families(text)
            for one in family.samples
        }

    def engine_pid(self) -> int | None:
        """Find the living engine among the controller's children; Go, which builds it, may be another."""
        assert self.process
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return next(
            (pid for pid in map(int, read_of_process(children).split()) if is_engine(pid)), None
        )

    def kill(self) -> None:
        assert self.process
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        assert self.process
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=40)


@contextmanager
def running(hub: DevCluster, directory: Path) -> Iterator[ControllerProcess]:
    controller = ControllerProcess(hub, directory)
    controller.start()
    try:
        yield controller
    finally:
        controller.stop()


@dataclass
class Stage:
    """Two clusters, a repository, and short words for what a user does."""

    hub: DevCluster
    repository: Repository
    controller: ControllerProcess
    charts: Path
    applied: list[str] = field(default_factory=list)

    @cached_property
    def kube(self) -> Kube:
        return Kube(self.hub.kubeconfig)

    def read(self, path: str) -> dict[str, Any]:
        """Read from the hub over plain HTTP: stories look all the time, and a kubectl costs a third of a second."""
        try:
            found: dict[str, Any] = self.kube.request("GET", path)
            return found
        finally:
            self.kube.close()

    def chart(self, name: str, templates: dict[str, str] | None = None, **files: str) -> str:
        """Make a chart of the given files and publish it as version 1.0.0."""
        place = self.charts / name
        (place / "templates").mkdir(parents=True, exist_ok=True)
        (place / "Chart.yaml").write_text(
            yaml.safe_dump({"apiVersion": "v2", "name": name, "version": "1.0.0"})
        )
        for file, text in (templates or {}).items():
            (place / "templates" / file).write_text(textwrap.dedent(text))
        for file, text in files.items():
            path = place / file.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        self.repository.add(place)
        return name

    def release(self, name: str, chart: str, namespace: str, *values: Any, **more: Any) -> None:
        """Apply a Release; the arguments are those of `manifest`."""
        manifest = self.manifest(name, chart, namespace, *values, **more)
        self.hub.kubectl("apply", "-f", "-", input=json.dumps(manifest))
        self.applied.append(name)

    def release_from(
        self,
        name: str,
        namespace: str,
        chart: dict[str, Any],
        *,
        upgrade: dict[str, Any] | None = None,
        **parameters: Any,
    ) -> None:
        """Apply a Release of a chart that is named in a way of its own, and nothing that it does not need."""
        wanted = {"chart": chart, "namespace": namespace, **parameters}
        manifest = {
            "apiVersion": "helm.crossplane.io/v1beta1",
            "kind": "Release",
            "metadata": {"name": name},
            "spec": {"forProvider": wanted} | ({} if upgrade is None else {"upgrade": upgrade}),
        }
        self.hub.kubectl("apply", "-f", "-", input=json.dumps(manifest))
        if name not in self.applied:
            self.applied.append(name)

    def manifest(
        self,
        name: str,
        chart: str,
        namespace: str,
        values: dict[str, Any] | None = None,
        *,
        version: str = "1.0.0",
        repository: str = "",
        url: str = "",
        config: str = "default",
        annotations: dict[str, str] | None = None,
        policies: tuple[str, ...] = ("*",),
        beside: dict[str, Any] | None = None,
        **parameters: Any,
    ) -> dict[str, Any]:
        """A Release as a user writes it; `parameters` go into forProvider, `beside` beside it."""
        source = {"repository": repository or self.repository.url, "name": chart}
        source |= {"version": version} if version else {}
        return {
            "apiVersion": "helm.crossplane.io/v1beta1",
            "kind": "Release",
            "metadata": {"name": name, "annotations": annotations or {}},
            "spec": {
                "providerConfigRef": {"name": config},
                "managementPolicies": list(policies),
                "forProvider": {
                    "chart": {"url": url} if url else source,
                    "namespace": namespace,
                    "values": values or {},
                    **parameters,
                },
                **(beside or {}),
            },
        }

    def config(self, name: str, kubeconfig: bytes) -> None:
        """Apply a ProviderConfig with its Secret."""
        self.hub.kubectl(
            "apply",
            "-f",
            "-",
            input=json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": {"name": name, "namespace": "default"},
                    "data": {"kubeconfig": base64.b64encode(kubeconfig).decode()},
                }
            ),
        )
        self.hub.kubectl("apply", "-f", "-", input=json.dumps(secret_config(name)))

    def get(self, name: str) -> dict[str, Any]:
        return self.read(f"{RELEASES}/{name}")

    def wait(self, name: str, condition: str, *, seconds: int = 60) -> dict[str, Any]:
        """Wait for a condition the way users do, for the current generation."""
        try:
            self.hub.kubectl(
                "wait", f"--for=condition={condition}", f"release/{name}", f"--timeout={seconds}s"
            )
        except DevClusterError as error:
            status = json.dumps(self.get(name).get("status"), indent=1)
            tail = "\n".join(self.controller.log.read_text().splitlines()[-25:])
            raise AssertionError(f"{error}\n{status}\n{tail}") from None
        return self.get(name)

    def refused(self, name: str, reason: str) -> str:
        """Wait until Synced is False for a reason, for the current generation; return the message."""

        def look() -> str:
            release = self.get(name)
            synced = conditions(release).get("Synced", {})
            current = synced.get("observedGeneration") == release["metadata"]["generation"]
            done = current and synced.get("status") == "False" and synced.get("reason") == reason
            return str(synced.get("message", "")) if done else ""

        return eventually(look, what=f"{name} refused for {reason}: {self.get(name).get('status')}")

    def look_again(self, *names: str) -> None:
        """Ask for a pass of each, and wait until all were made."""
        token = uuid.uuid4().hex
        request = f"crossplane.io/reconcile-requested-at={token}"
        self.hub.kubectl("annotate", "release", *names, "--overwrite", request)
        for name in names:
            eventually(
                lambda name=name: self.get(name)["status"].get("lastHandledReconcileAt") == token,
                what=f"another look at {name}",
            )

    def postponed(self, *names: str) -> dict[str, str]:
        """Let each fail twice more, so that its next try by itself is some 40 seconds away; return when that is."""
        for failures in (2, 3):
            self.look_again(*names)
            due = {name: self._next_try(name, failures) for name in names}
        return due

    def _next_try(self, name: str, failures: int) -> str:
        def look() -> str:
            status = self.get(name)["status"]
            # None is due while one is under way.
            return str(status.get("nextAttempt", "")) if status["retries"] >= failures else ""

        return eventually(look, what=f"{name} failed {failures} times: {self.get(name)['status']}")

    def ready_before(self, due: dict[str, str]) -> None:
        """Wait until each is ready, and not by the try that was due anyway."""
        for name, moment in due.items():
            tried = self.wait(name, "Ready")["status"]["lastAttempt"]["started"]
            assert tried < moment, f"it is the next try that helped {name}"

    def delete(self, name: str) -> None:
        self.hub.kubectl("delete", "release", name, "--timeout=60s")
        self.applied.remove(name)

    def events(self, name: str) -> list[dict[str, Any]]:
        selector = f"involvedObject.kind=Release,involvedObject.name={name}"
        path = f"/api/v1/namespaces/default/events?fieldSelector={quote(selector)}"
        found: list[dict[str, Any]] = self.read(path)["items"]
        return sorted(found, key=lambda event: event["metadata"]["creationTimestamp"])

    def told(self, name: str, reason: str) -> list[str]:
        """Wait for an Event, which is written after the status; the messages of all with this reason."""
        return eventually(
            lambda: [one["message"] for one in self.events(name) if one["reason"] == reason],
            what=f"{name} is told {reason}",
        )

    def leaks(self, name: str, secret: str) -> list[str]:
        """Name everything that is told of a Release, or of any, and has the secret in it."""
        told = {"the Release": json.dumps(self.get(name)), "Events": json.dumps(self.events(name))}
        kept = [self.controller.log, *self.controller.directory.glob("archive.db*")]
        told |= {file.name: file.read_bytes().decode(errors="replace") for file in kept}
        return [where for where, text in told.items() if secret in text]


def secret_config(name: str) -> dict[str, Any]:
    reference = {"name": name, "namespace": "default", "key": "kubeconfig"}
    return {
        "apiVersion": "helm.crossplane.io/v1beta1",
        "kind": "ProviderConfig",
        "metadata": {"name": name},
        "spec": {"credentials": {"source": "Secret", "secretRef": reference}},
    }


INJECTED = {
    "apiVersion": "helm.crossplane.io/v1beta1",
    "kind": "ProviderConfig",
    "metadata": {"name": "default"},
    "spec": {"credentials": {"source": "InjectedIdentity"}},
}


def conditions(release: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = release.get("status", {}).get("conditions", [])
    # An empty message is not written.
    return {one["type"]: {"message": ""} | one for one in found}


def history(helm: Callable[..., str], cluster: DevCluster, namespace: str, name: str) -> list[Any]:
    """What the real helm says of a release."""
    answer = helm(cluster, "history", name, "-n", namespace, "-o", "json")
    found: list[Any] = json.loads(answer)
    return found


def await_crds(hub: DevCluster, controller: ControllerProcess) -> None:
    """Wait until the controller has brought its CRDs; one that died shows why at once."""

    def there() -> bool:
        assert controller.process
        assert controller.process.poll() is None, controller.log.read_text()[-2000:]
        # `kubectl wait` fails on one that has no conditions yet.
        found = hub.kubectl("get", *CRDS, "-o", f"jsonpath={ESTABLISHED}", check=False)
        return found == "True" * len(CRDS)

    eventually(there, within=120)
