"""The measurements, one function each; every one says what it returns in its keys' units."""

import contextlib
import json
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from controller import Controller, running_controller
from kube import BenchError, Kube
from measure import PROGRESS_SECONDS, Progress, middle, until_quiet
from releases import CONFIG_MAPS, NAMESPACE, RELEASES, SECRETS, Bench

from pilothouse.dev.charts import Repository

Found = dict[str, Any]
# How often each verb was used on each resource.
Asked = Counter[tuple[str, str]]
EDITS = 20
HOOKED = 20
FROM_CHARTS, CHARTS = 200, 20
CHART = Path(__file__).resolve().parent / "charts" / "tiny"
_FLOOR_SECONDS = 900.0


def floor(kube: Kube, program: Path, kubeconfig: Path, count: int, prefix: str) -> Found:
    """Install with the bare SDK."""
    before = kube.requests_at_rest()
    command = [
        *(str(program), "--kubeconfig", str(kubeconfig), "--chart", str(CHART)),
        *("--namespace", NAMESPACE, "--prefix", prefix, "-n", str(count)),
        f"--timeout={_FLOOR_SECONDS:.0f}s",
    ]
    answer = _run(command, "installing with the bare SDK")
    found: Found = json.loads(answer)
    requests = kube.requests_at_rest().since(before)
    found["requests_per_release"] = requests.total() / count
    found["requests"] = readable(requests.by_kind())
    return found


def install(bench: Bench, count: int, prefix: str) -> Found:
    """Install with Pilothouse, from idle to all ready; CPU and requests until it rests again."""
    until_quiet(lambda: bench.controller.usage().cpu_s, what="waiting until idle")
    before, used = bench.kube.requests_at_rest(), bench.controller.usage()
    ready = bench.install("tiny", prefix, count)
    at_ready = bench.controller.usage().since(used)
    requests = bench.kube.requests_at_rest().since(before)
    until_quiet(lambda: bench.controller.usage().cpu_s)
    after = bench.controller.usage().since(used)
    return {
        "ready_s": ready,
        "cpu_until_ready_s": at_ready.cpu_s,
        "cpu_s": after.cpu_s,
        "brain_cpu_s": after.brain_cpu_s,
        "engine_cpu_s": after.engine_cpu_s,
        "peak_mb": after.peak_mb,
        "brain_peak_mb": after.brain_peak_mb,
        "engine_peak_mb": after.engine_peak_mb,
        "requests_per_release": requests.total() / count,
        "requests": readable(requests.by_kind()),
    }


def bare(kube: Kube, seconds: float) -> Asked:
    """See who asks for what on a cluster that nobody uses: its own controllers poll."""
    return _asked_while(kube, seconds, "watching the bare cluster")


def idle(bench: Bench, seconds: float, on_bare: Asked) -> Found:
    """Do nothing, and see who asks for what that nobody asked for on the bare cluster."""
    used = bench.controller.usage()
    asked = _asked_while(bench.kube, seconds, "idling")
    after = bench.controller.usage().since(used)
    extra = asked - on_bare
    return {
        "seconds": seconds,
        "extra_requests": extra.total(),
        "extra_by_kind": readable(extra),
        "by_kind": readable(asked),
        "on_bare_cluster": readable(on_bare),
        "cpu_s": after.cpu_s,
        "brain_cpu_s": after.brain_cpu_s,
        "engine_cpu_s": after.engine_cpu_s,
    }


def mean(rounds: Sequence[Found]) -> Found:
    """Return one round that stands for all: the mean of each number, the most of each peak, else the last."""

    def whole(name: str) -> Any:
        values = [one[name] for one in rounds]
        if not isinstance(values[-1], int | float):
            return values[-1]
        return max(values) if "peak" in name else sum(values) / len(values)

    return {name: whole(name) for name in rounds[-1]}


def edit(bench: Bench, names: Sequence[str]) -> Found:
    """Edit Releases, one after another."""
    used = bench.controller.usage()
    taken = []
    with bench.kube.watching(CONFIG_MAPS) as watch, Progress("editing") as progress:
        for name in names[:EDITS]:
            taken.append(1000 * bench.edit(name, f"edited {name}", watch))
            progress.tell(f"{len(taken)} of {len(names[:EDITS])}")
    until_quiet(lambda: bench.controller.usage().cpu_s)
    return {
        "p50_ms": middle(taken),
        "max_ms": max(taken),
        "all_ms": [round(one) for one in taken],
        "cpu_ms_each": 1000 * bench.controller.usage().since(used).cpu_s / len(taken),
    }


def remove(bench: Bench, names: Sequence[str]) -> Found:
    """Delete them all."""
    used = bench.controller.usage()
    seconds = bench.remove(names)
    until_quiet(lambda: bench.controller.usage().cpu_s)
    return {"gone_s": seconds, "cpu_s": bench.controller.usage().since(used).cpu_s}


def hooked(bench: Bench) -> Found:
    """Install a chart with hooks, and take it away again."""
    until_quiet(lambda: bench.controller.usage().cpu_s)
    used = bench.controller.usage()
    seconds = bench.install("hooked", "h", HOOKED)
    cpu = bench.controller.usage().since(used).cpu_s
    bench.remove([f"h{number}" for number in range(HOOKED)])
    return {"releases": HOOKED, "ready_s": seconds, "cpu_s": cpu}


def sources(bench: Bench, repository: Repository) -> Found:
    """Install many releases of some charts from one repository, and see what it is asked for."""
    names = [f"chart-{number}" for number in range(CHARTS)]
    for name in names:
        repository.add(CHART, name=name)
    seconds = replace(bench, repository=repository.url).install_several(names, "s", FROM_CHARTS)
    asked = list(repository.requests)
    bench.remove([f"s{number}" for number in range(FROM_CHARTS)])
    return {
        "releases": FROM_CHARTS,
        "charts": CHARTS,
        "ready_s": seconds,
        "index_fetches": sum("/index.yaml" in one for one in asked),
        "downloads": sum(".tgz" in one for one in asked),
    }


def populate(bench: Bench, count: int) -> Found:
    """Install many, for the restart."""
    used = bench.controller.usage()
    seconds = bench.install("tiny", "r", count)
    until_quiet(lambda: bench.controller.usage().cpu_s)
    after = bench.controller.usage().since(used)
    return {"releases": count, "ready_s": seconds, "cpu_s": after.cpu_s, "peak_mb": after.peak_mb}


def restart(kube: Kube, kubeconfig: Path, place: Path) -> Found:
    """Start the controller over installed releases, and see that it leaves them alone."""
    before = kube.requests_at_rest()
    releases, secrets = kube.versions(RELEASES), kube.versions(SECRETS)
    with running_controller(kubeconfig, place, number=2) as controller:
        controller.until_watching()
        watching = time.monotonic()
        quiet = until_quiet(lambda: controller.usage().cpu_s, what="settling after the restart")
        controller.check()
        used = controller.usage()
        requests = kube.requests_at_rest().since(before)
        found = _settled(controller, watching, quiet)
    changed = _changed(releases, kube.versions(RELEASES))
    changed += _changed(secrets, kube.versions(SECRETS))
    return {
        **found,
        "cpu_s": used.cpu_s,
        "peak_mb": used.peak_mb,
        "brain_peak_mb": used.brain_peak_mb,
        "engine_peak_mb": used.engine_peak_mb,
        "writes": requests.writes().total(),
        "writes_by_kind": readable(requests.writes()),
        "requests": readable(requests.by_kind()),
        "objects_changed": len(changed),
        "changed": changed[:10],
    }


def hop(command: list[str]) -> Found:
    """Measure the way through the engine, in a process of its own."""
    found: Found = json.loads(_run(command, "measuring the engine hop"))
    return found


def readable(kinds: Asked) -> dict[str, int]:
    """Return counts by one word each, the largest first."""
    return {f"{verb} {kind or '(no resource)'}": n for (verb, kind), n in kinds.most_common()}


def _asked_while(kube: Kube, seconds: float, what: str) -> Asked:
    before = kube.requests_at_rest()
    with Progress(what) as progress:
        progress.sleep(seconds)
    asked = kube.requests().since(before).by_kind()
    # Watches are renewed after minutes, by chance within the window or not.
    return Counter({kind: n for kind, n in asked.items() if kind[0] != "WATCH"})


def _settled(controller: Controller, watching: float, quiet: float | None) -> Found:
    if quiet is None:
        raise BenchError("the restarted controller never came to rest")
    return {
        "watching_s": watching - controller.started,
        "settled_s": max(quiet, watching) - controller.started,
    }


def _changed(before: dict[str, str], after: dict[str, str]) -> list[str]:
    names = sorted(before.keys() | after.keys())
    return [name for name in names if before.get(name) != after.get(name)]


def _run(command: list[str], what: str) -> str:
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is for us, who then stop it
    )
    try:
        with Progress(what) as progress:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    answer, errors = process.communicate(timeout=PROGRESS_SECONDS)
                    break
                progress.tell("")
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
    if process.returncode:
        raise BenchError(f"{what} failed: {errors.strip()[-2000:]}")
    return answer
