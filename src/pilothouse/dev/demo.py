"""The small example of `make run`: two clusters, a chart repository, the controller, three Releases."""

import asyncio
import base64
import contextlib
import json
import os
import signal
import string
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pilothouse.dev import charts
from pilothouse.dev.binaries import find_helm4, find_kube_binaries
from pilothouse.dev.cluster import ClusterRequest, DevCluster
from pilothouse.dev.errors import DevClusterError
from pilothouse.dev.fleet import running_fleet
from pilothouse.dev.settings import DevSettings

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
STOP_SECONDS = 30.0
LOOK_SECONDS = 0.5
READY_SECONDS = 300.0

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Demo:
    """Everything a newcomer needs to look around."""

    hub: DevCluster
    edge: DevCluster
    helm: Path
    log: Path
    repository: charts.Repository


async def run_demo(hub_kubeconfig: Path | None, stop: asyncio.Event, say: Say) -> None:
    """Start everything, show progress, say where to look, and keep it running until `stop`."""
    async with contextlib.AsyncExitStack() as stack:
        demo = await _start(stack, hub_kubeconfig, say)
        controller = await stack.enter_async_context(_controller(demo))
        await _apply(demo)
        settled = asyncio.create_task(_show_until_ready(demo, say))
        stopped = asyncio.create_task(stop.wait())
        died = asyncio.create_task(controller.wait())
        try:
            await asyncio.wait({settled, stopped, died}, return_when=asyncio.FIRST_COMPLETED)
            if settled.done():
                settled.result()
                say(_where_to_look(demo))
                await asyncio.wait({stopped, died}, return_when=asyncio.FIRST_COMPLETED)
            if died.done() and not stop.is_set():
                raise DevClusterError(f"the controller ended; its log is {demo.log}")
        finally:
            for task in (settled, stopped, died):
                task.cancel()
        say("stopping")


async def _start(stack: contextlib.AsyncExitStack, hub: Path | None, say: Say) -> Demo:
    settings = DevSettings.from_environment()
    binaries = await asyncio.to_thread(find_kube_binaries, settings, say)
    helm = await asyncio.to_thread(find_helm4, settings, say)
    place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pilothouse-demo-")))
    names = ["edge"] if hub else ["hub", "edge"]
    requests = [ClusterRequest(name, place / name, ephemeral=True) for name in names]
    fleet = await stack.enter_async_context(
        running_fleet(requests, binaries, lambda name, text: say(f"{name}: {text}"))
    )
    by_name = {cluster.name: cluster for cluster in fleet.clusters}
    if hub:
        by_name["hub"] = DevCluster(
            "hub", place, "the cluster of your kubeconfig", hub, 0, binaries.kubectl
        )
    repository = stack.enter_context(charts.serve(place / "charts"))
    for version in ("1.0.0", "1.1.0"):
        repository.add(EXAMPLES / "charts" / "hello", version=version)
    say(f"chart repository at {repository.url}")
    return Demo(by_name["hub"], by_name["edge"], helm, place / "controller.log", repository)


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
            stdin=asyncio.subprocess.DEVNULL,
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


async def _apply(demo: Demo) -> None:
    """Apply the example as soon as the controller has brought its CRDs."""
    edge = base64.b64encode(demo.edge.kubeconfig.read_bytes()).decode()
    text = string.Template((EXAMPLES / "releases.yaml").read_text()).safe_substitute(
        repository=demo.repository.url, edge_kubeconfig=edge
    )
    crds = ["crd/releases.helm.crossplane.io", "crd/providerconfigs.helm.crossplane.io"]
    for crd in crds:  # kubectl waits for the creation of one thing at a time
        await asyncio.to_thread(demo.hub.kubectl, "wait", "--for=create", crd, "--timeout=60s")
    await asyncio.to_thread(
        demo.hub.kubectl, "wait", "--for=condition=Established", *crds, "--timeout=60s"
    )
    await asyncio.to_thread(demo.hub.kubectl, "apply", "-f", "-", input=text)


async def _show_until_ready(demo: Demo, say: Say) -> None:
    """Say each change of each Release until all are ready."""
    shown: dict[str, str] = {}
    async with asyncio.timeout(READY_SECONDS):
        while True:
            answer = await asyncio.to_thread(
                demo.hub.kubectl, "get", "releases.helm.crossplane.io", "-o", "json"
            )
            items = json.loads(answer)["items"]
            for item in items:
                name, now = item["metadata"]["name"], _state(item)
                if shown.get(name) != now:
                    shown[name] = now
                    say(f"release {name}: {now}")
            if items and all(state.startswith("ready") for state in shown.values()):
                return
            await asyncio.sleep(LOOK_SECONDS)


def _state(item: dict[str, object]) -> str:
    status = item.get("status")
    if not isinstance(status, dict):
        return "seen"
    conditions = {one["type"]: one for one in status.get("conditions", [])}
    ready = conditions.get("Ready")
    if ready and ready["status"] == "True":
        return f"ready, {status.get('summary', '')} objects"
    return str((ready or {}).get("message") or "seen")


def _where_to_look(demo: Demo) -> str:
    kubectl, helm = demo.hub.kubectl_path, demo.helm
    hub, edge = demo.hub.kubeconfig, demo.edge.kubeconfig
    return f"""
Three Releases run on two clusters. Look around, in another terminal:

  {kubectl} --kubeconfig {hub} get releases
  {kubectl} --kubeconfig {hub} describe release hello-edge
  {kubectl} --kubeconfig {edge} get all -n hello
  {helm} --kubeconfig {edge} list -A
  {kubectl} --kubeconfig {hub} edit release hello-hub
  tail -f {demo.log}

Ctrl-C stops everything."""
