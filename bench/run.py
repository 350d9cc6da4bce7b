"""Measure Pilothouse against the bare Helm SDK, each on a fresh cluster of its own.

Prints a table, and JSON where asked. A missed bar is marked; it is a measurement, not a failure.
"""

import argparse
import contextlib
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import phases
import report
from controller import running_controller
from kube import BenchError, Kube
from measure import say
from releases import Bench, create_namespace
from rows import rows_of

from pilothouse import telemetry
from pilothouse.dev import charts
from pilothouse.dev.binaries import KubeBinaries, find_kube_binaries
from pilothouse.dev.blocking import ClusterPool
from pilothouse.dev.cluster import ClusterRequest, DevCluster
from pilothouse.dev.settings import DevSettings
from pilothouse.engine.process import locate
from pilothouse.errors import PilothouseError
from pilothouse.gobuild import GoBuildError, GoProgram, build

HERE = Path(__file__).resolve().parent
CHARTS = HERE / "charts"


@dataclass(frozen=True, slots=True)
class Asked:
    """What to measure."""

    count: int
    rounds: int
    restart: int
    idle: float
    hop: bool
    skip_floor: bool
    skip_main: bool
    skip_sources: bool
    json: Path | None


@dataclass(frozen=True, slots=True)
class Place:
    """Where things run, and from which programs."""

    directory: Path
    binaries: KubeBinaries
    settings: DevSettings


def measure(asked: Asked, place: Place) -> phases.Found:
    """Run all that was asked for."""
    found: phases.Found = {"n": asked.count, "machine": report.machine()}
    if asked.skip_main and not asked.skip_floor:
        with bare_sdk(asked, place) as install:
            found["floor"] = phases.mean([install(f"f{number}-") for number in range(asked.rounds)])
    if asked.hop:
        found["hop"] = measure_hop(asked, place)
    if not asked.skip_main or asked.restart or not asked.skip_sources:
        found |= measure_pilothouse(asked, place)
    return found


@contextlib.contextmanager
def bare_sdk(asked: Asked, place: Place) -> Iterator[Callable[[str], phases.Found]]:
    """Give the bare SDK a cluster of its own, and what installs on it with a prefix."""
    built = floor_program(place)
    with fresh_cluster(place, "floor") as cluster:
        kube = Kube(cluster.kubeconfig)
        create_namespace(kube)
        yield lambda prefix: phases.floor(kube, built, cluster.kubeconfig, asked.count, prefix)


def floor_program(place: Place) -> Path:
    """Return the program that does without Pilothouse."""
    program = GoProgram(name="bench-floor", module_dir=HERE / "floor", ldflags="-s -w")
    return build(program, place.settings.cache_root, say)


def measure_rounds(asked: Asked, place: Place, bench: Bench) -> phases.Found:
    """Install in turn with the bare SDK and with Pilothouse.

    A machine that others use too is not as fast at one time as at another, so the two take turns.
    """
    with contextlib.ExitStack() as stack:
        bare = None if asked.skip_floor else stack.enter_context(bare_sdk(asked, place))
        rounds = []
        for number in range(asked.rounds):
            floor = {"floor": bare(f"f{number}-")} if bare else {}
            install = phases.install(bench, asked.count, f"b{number}-")
            rounds.append({**floor, "install": install})
    kinds = rounds[0].keys()
    return {
        "rounds": rounds,
        **{kind: phases.mean([one[kind] for one in rounds]) for kind in kinds},
    }


def measure_main(asked: Asked, place: Place, bench: Bench, on_bare: phases.Asked) -> phases.Found:
    """Measure the life of many equal releases."""
    found = measure_rounds(asked, place, bench)
    names = [[f"b{n}-{one}" for one in range(asked.count)] for n in range(asked.rounds)]
    found["idle"] = phases.idle(bench, asked.idle, on_bare)
    found["edit"] = phases.edit(bench, names[-1])
    found["delete"] = phases.remove(bench, names[-1])
    bench.remove([name for some in names[:-1] for name in some])
    found["hooked"] = phases.hooked(bench)
    return found


def measure_hop(asked: Asked, place: Place) -> phases.Found:
    """Measure the engine hop."""
    floor = [] if asked.skip_floor else ["--floor", floor_program(place)]
    with fresh_cluster(place, "hop") as cluster:
        command = [sys.executable, HERE / "hop.py", "--kubeconfig", cluster.kubeconfig, *floor]
        return phases.hop([str(part) for part in command])


def measure_pilothouse(asked: Asked, place: Place) -> phases.Found:
    """Measure the controller: the main run, hooks, the restart."""
    found: phases.Found = {}
    with (
        fresh_cluster(place, "pilothouse") as cluster,
        charts.serve(place.directory / "charts") as repository,
    ):
        for chart in ("tiny", "hooked"):
            repository.add(CHARTS / chart)
        kube = Kube(cluster.kubeconfig)
        on_bare = phases.bare(kube, 0 if asked.skip_main else asked.idle)
        with running_controller(cluster.kubeconfig, place.directory) as controller:
            controller.until_watching()
            bench = Bench(kube, controller, repository.url)
            bench.prepare()
            if not asked.skip_main:
                found |= measure_main(asked, place, bench, on_bare)
            if not asked.skip_sources:
                with charts.serve(place.directory / "many") as many:
                    found["sources"] = phases.sources(bench, many)
            if asked.restart:
                found["populate"] = phases.populate(bench, asked.restart)
        if asked.restart:
            found["restart"] = phases.restart(kube, cluster.kubeconfig, place.directory)
    return found


@contextlib.contextmanager
def fresh_cluster(place: Place, name: str) -> Iterator[DevCluster]:
    """Run a cluster that nobody has used, for as long as the block lasts."""
    pool = ClusterPool(place.binaries, lambda cluster, text: say(f"cluster {cluster}: {text}"))
    try:
        yield pool.start(ClusterRequest(name, place.directory / name, ephemeral=True))
    finally:
        say(f"cluster {name}: stopping")
        pool.close()


@contextlib.contextmanager
def prepared(keep: Path | None = None) -> Iterator[Place]:
    """Build what is missing, before anything is timed, and give the run a directory, its own or one that is kept."""
    # As for Ctrl-C: everything is stopped on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    telemetry.configure()
    settings = DevSettings.from_environment()
    binaries = find_kube_binaries(settings, say)
    locate()
    with tempfile.TemporaryDirectory(prefix="pilothouse-bench-") as temporary:
        directory = keep or Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        yield Place(directory, binaries, settings)


def main(arguments: list[str]) -> int:
    """Measure, print, and leave nothing running."""
    asked = _parse(arguments)
    try:
        with prepared() as place:
            found = measure(asked, place)
    except (BenchError, PilothouseError, GoBuildError) as error:
        say(f"bench: {error}")
        return 1
    except KeyboardInterrupt:
        say("bench: stopped")
        return 130
    rows = rows_of(found)
    print(report.table(rows))
    print(report.judged(found, rows))
    if asked.json:
        report.write(asked.json, found, rows)
    return 0


def _parse(arguments: list[str]) -> Asked:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=100, dest="count", help="how many releases")
    parser.add_argument(
        "--rounds", type=int, default=3, help="how often, in turn with the bare SDK"
    )
    parser.add_argument(
        "--restart", type=int, default=0, metavar="N", help="also restart the controller over N"
    )
    parser.add_argument("--idle", type=float, default=30.0, metavar="SECONDS", help="idle window")
    parser.add_argument("--hop", action="store_true", help="also measure the engine hop")
    parser.add_argument("--skip-floor", action="store_true", help="do not run the bare SDK")
    parser.add_argument("--skip-main", action="store_true", help="leave the main run out")
    parser.add_argument(
        "--skip-sources", action="store_true", help="do not install from many charts"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write all numbers")
    return Asked(**vars(parser.parse_args(arguments)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
