"""The small example of `make run`: two clusters, a chart repository, the controller, three Releases."""

import asyncio
import base64
import contextlib
import json
import os
import shlex
import signal
import string
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from pilothouse.dev import charts
from pilothouse.dev.binaries import KubeBinaries, find_helm4, find_kube_binaries
from pilothouse.dev.cluster import ClusterRequest, DevCluster
from pilothouse.dev.errors import DevClusterError
from pilothouse.dev.fleet import running_fleet
from pilothouse.dev.settings import DevSettings, child_environment

PACKAGE = Path(__file__).resolve().parents[1]
STOP_SECONDS = 30.0
LOOK_SECONDS = 0.5
LOOK_TIMEOUT_SECONDS = 60
TIDY_SECONDS = 60
RELEASES = "releases.helm.crossplane.io"
# What is ours in a user's own cluster, as examples/releases.yaml labels it.
LABEL, OURS = "app.kubernetes.io/part-of", "pilothouse-demo"
SELECTED = ("-l", f"{LABEL}={OURS}")

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Demo:
    """Everything a newcomer needs to look around."""

    hub: DevCluster
    edge: DevCluster
    helm: Path
    log: Path
    repository: charts.Repository


def find_example(package: Path = PACKAGE) -> Path:
    """Return where the example's files are: in the wheel, or in the checkout."""
    for candidate in (package / "examples", package.parents[1] / "examples"):
        if (candidate / "releases.yaml").is_file():
            return candidate
    raise DevClusterError(
        "the files of the example are not installed: run `make run` in a checkout"
    )


@dataclass(frozen=True, slots=True)
class Programs:
    """What the demo runs."""

    kube: KubeBinaries
    helm: Path


def find_programs(say: Say) -> Programs:
    """Find or build the programs; may take minutes."""
    find_example()  # before minutes are spent
    settings = DevSettings.from_environment()
    return Programs(find_kube_binaries(settings, say), find_helm4(settings, say))


async def run_demo(
    hub_kubeconfig: Path | None, programs: Programs, patience: timedelta, say: Say
) -> None:
    """Start everything, show progress, say where to look, and keep it running until cancelled."""
    async with contextlib.AsyncExitStack() as stack:
        demo = await _start(stack, hub_kubeconfig, programs, say)
        controller = await stack.enter_async_context(_controller(demo))
        if hub_kubeconfig:
            stack.push_async_callback(_tidy, demo.hub, say)
        shown = asyncio.create_task(_show(demo, patience, say), name="show the example")
        died = asyncio.create_task(controller.wait(), name="the controller's end")
        try:
            await asyncio.wait({shown, died}, return_when=asyncio.FIRST_COMPLETED)
            if not died.done():
                await shown
                await died
            last = demo.log.read_text(errors="replace").strip().rpartition("\n")[2]
            raise DevClusterError(f"the controller ended; its last words were: {last}")
        finally:
            shown.cancel()
            died.cancel()
            await asyncio.wait({shown, died})


async def _start(
    stack: contextlib.AsyncExitStack, hub: Path | None, programs: Programs, say: Say
) -> Demo:
    place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pilothouse-demo-")))
    by_name: dict[str, DevCluster] = {}
    if hub:
        described = "the cluster of your kubeconfig"
        by_name["hub"] = DevCluster("hub", place, described, hub, 0, programs.kube.kubectl)
        await _refuse_to_overwrite(by_name["hub"])
    names = ["edge"] if hub else ["hub", "edge"]
    requests = [ClusterRequest(name, place / name, ephemeral=True) for name in names]
    fleet = await stack.enter_async_context(
        running_fleet(requests, programs.kube, lambda name, text: say(f"{name}: {text}"))
    )
    by_name |= {cluster.name: cluster for cluster in fleet.clusters}
    repository = stack.enter_context(charts.serve(place / "charts"))
    for version in ("1.0.0", "1.1.0"):
        repository.add(find_example() / "charts" / "hello", version=version)
    say(f"chart repository at {repository.url}")
    return Demo(
        by_name["hub"], by_name["edge"], programs.helm, place / "controller.log", repository
    )


@contextlib.asynccontextmanager
async def _controller(demo: Demo) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run the controller beside us, in its own process, as an operator would."""
    with demo.log.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "pilothouse", "controller"),
            *("--kubeconfig", str(demo.hub.kubeconfig)),
            *("--archive", str(demo.log.with_name("archive.db"))),
            # The repository and the other cluster are on loopback, which users may not reach otherwise.
            *("--egress-allow", urlsplit(demo.repository.url).netloc),
            *("--egress-allow", urlsplit(demo.edge.server).netloc),
            # We hold the other end, which closes with us however we end.
            "--stop-on-eof",
            stdin=asyncio.subprocess.PIPE,
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            # Ctrl-C is for us; the controller is told when it is its turn.
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STOP_SECONDS):
                    await process.wait()
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _show(demo: Demo, patience: timedelta, say: Say) -> None:
    await _apply(demo)
    waiting = await _show_until_ready(demo, patience, say)
    for name, why in waiting.items():
        say(f"release {name} is not ready after {patience.total_seconds():.0f} s: {why}")
    say(where_to_look(demo, ready=not waiting))


async def _apply(demo: Demo) -> None:
    """Apply the example as soon as the controller has brought its CRDs."""
    edge = base64.b64encode(demo.edge.kubeconfig.read_bytes()).decode()
    text = string.Template((find_example() / "releases.yaml").read_text()).safe_substitute(
        repository=demo.repository.url, edge_kubeconfig=edge
    )
    crds = ["crd/releases.helm.crossplane.io", "crd/providerconfigs.helm.crossplane.io"]
    for crd in crds:  # kubectl waits for the creation of one thing at a time
        await _kubectl(demo.hub, "wait", "--for=create", crd, "--timeout=60s")
    await _kubectl(demo.hub, "wait", "--for=condition=Established", *crds, "--timeout=60s")
    await _kubectl(demo.hub, "apply", "-f", "-", text=text)


async def _refuse_to_overwrite(hub: DevCluster) -> None:
    """A cluster of the user's own may have objects of the example's names that are not ours."""
    look = ("get", "-f", "-", "--ignore-not-found", "-o", "json")
    documents = (find_example() / "releases.yaml").read_text().split("\n---\n")
    for ours in (True, False):
        text = "\n---\n".join(one for one in documents if ("apiVersion: helm" in one) is ours)
        try:
            answer = await _kubectl(hub, *look, text=text)
        except DevClusterError as error:
            if ours and "no matches for kind" in str(error):
                continue  # where our kinds are unknown nothing can be of one
            raise
        _refuse_strangers(answer)


def _refuse_strangers(answer: str) -> None:
    found = json.loads(answer) if answer.strip() else {}
    for one in found.get("items", [found] if found else []):
        metadata = one["metadata"]
        if metadata.get("labels", {}).get(LABEL) != OURS:
            raise DevClusterError(
                f"your cluster has a {one['kind']} {metadata['name']} of its own, which the example would "
                f"overwrite: rename or delete it, or label it {LABEL}={OURS} if it is left of an earlier example"
            )


async def _tidy(hub: DevCluster, say: Say) -> None:
    """Take the example out of someone's own cluster: the Releases first, while a controller can remove them."""
    with contextlib.suppress(OSError):  # whoever read us may be gone, and the example must go too
        say("removing the example from your cluster")
    remove = ("delete", "--ignore-not-found", f"--timeout={TIDY_SECONDS}s", *SELECTED)
    left = "left in your cluster: Pilothouse's CRDs, which other Releases may need"
    try:
        await _kubectl(hub, *remove, RELEASES)
        await _kubectl(hub, *remove, "providerconfigs.helm.crossplane.io")
        await _kubectl(hub, *remove, "-n", "default", "secret")
        await _kubectl(hub, *remove, "namespace")
    except DevClusterError as error:
        left = f"not everything could be removed, look for the label {LABEL}={OURS}: {error}"
    say(left)


async def _kubectl(cluster: DevCluster, *arguments: str, text: str = "") -> str:
    """Run kubectl so that it ends when the caller is cancelled."""
    process = await asyncio.create_subprocess_exec(
        *(str(cluster.kubectl_path), *arguments, "--kubeconfig", str(cluster.kubeconfig)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=child_environment(cluster.directory),
        start_new_session=True,
    )
    try:
        out, problem = await process.communicate(text.encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        command = " ".join(("kubectl", *arguments))
        raise DevClusterError(f"`{command}` failed on {cluster.name}: {problem.decode().strip()}")
    return out.decode()


async def _show_until_ready(demo: Demo, patience: timedelta, say: Say) -> dict[str, str]:
    """Say each change of each Release until all are ready; return why which are not, when it takes too long."""
    clock = asyncio.get_running_loop().time
    until = clock() + patience.total_seconds()
    look = ("get", RELEASES, *SELECTED, "-o", "json", f"--request-timeout={LOOK_TIMEOUT_SECONDS}s")
    shown: dict[str, str] = {}
    while True:
        waiting: dict[str, str] = {}
        for item in json.loads(await _kubectl(demo.hub, *look))["items"]:
            name, (ready, now) = item["metadata"]["name"], _state(item)
            if not ready:
                waiting[name] = now
            if shown.get(name) != now:
                shown[name] = now
                say(f"release {name}: {now}")
        if not waiting or clock() > until:
            return waiting
        await asyncio.sleep(LOOK_SECONDS)


def _state(item: dict[str, object]) -> tuple[bool, str]:
    """Say whether a Release is ready, and what its condition says."""
    status = item.get("status")
    if not isinstance(status, dict):
        return False, "seen"
    conditions = {one["type"]: one for one in status.get("conditions", [])}
    ready = conditions.get("Ready")
    if ready and ready["status"] == "True":
        return True, f"ready, {status.get('summary', '')} objects"
    return False, str((ready or {}).get("message") or "seen")


def where_to_look(demo: Demo, *, ready: bool) -> str:
    """Name the commands to go on with, as they are typed in any directory."""
    state = "Three Releases run on two clusters."
    if not ready:
        state = "Not all of the three Releases run yet; the controller keeps at it."
    kubectl, helm = _typed(demo.hub.kubectl_path), _typed(demo.helm)
    hub, edge = _typed(demo.hub.kubeconfig), _typed(demo.edge.kubeconfig)
    return f"""
{state} Look around, in another terminal:

  {kubectl} --kubeconfig {hub} get releases
  {kubectl} --kubeconfig {hub} describe release demo-edge
  {kubectl} --kubeconfig {edge} get all -n pilothouse-demo
  {helm} --kubeconfig {edge} list -A
  {kubectl} --kubeconfig {hub} edit release demo-hub
  tail -f {_typed(demo.log)}

Ctrl-C stops everything."""


def _typed(path: Path) -> str:
    return shlex.quote(str(path))
