"""Soak: many releases, minutes of edits, drift and ends of processes, then see that all is as written.

Every bar that is missed makes this end with an error, unlike in the other measurements.
"""

import argparse
import random
import sys
from dataclasses import dataclass
from pathlib import Path

import report
from kube import BenchError, Kube
from lives import Lives
from measure import say
from memory import Sampler, growth
from ordeal import Ordeal
from releases import Bench
from run import CHARTS, Place, fresh_cluster, prepared
from soak_rows import FLAT_FROM_MINUTES, rows_of

from pilothouse.dev import charts
from pilothouse.errors import PilothouseError
from pilothouse.gobuild import GoBuildError


@dataclass(frozen=True, slots=True)
class Asked:
    """How much of it."""

    releases: int
    minutes: float
    rate: float
    ends: float
    seed: int
    settle: float
    json: Path | None
    keep: Path | None


def soak(asked: Asked, place: Place) -> dict[str, object]:
    """Install, disturb, let settle, judge."""
    with (
        fresh_cluster(place, "soak") as cluster,
        charts.serve(place.directory / "charts") as repository,
        Lives(cluster.kubeconfig, place.directory) as lives,
    ):
        repository.add(CHARTS / "tiny")
        kube = Kube(cluster.kubeconfig)
        bench = Bench(kube, lives.controller, repository.url)
        bench.prepare()
        installed = bench.install("tiny", "s", asked.releases)
        ordeal = Ordeal(kube, cluster, lives, asked.releases, asked.seed)
        with Sampler(lives.pid) as sampler:
            found = ordeal.endure(asked.minutes * 60, rate=asked.rate, ends=asked.ends)
        memory = growth(sampler.samples, asked.minutes * 60)
        found |= ordeal.settle(asked.settle)
    return {
        "machine": report.machine(),
        "releases": asked.releases,
        "minutes": asked.minutes,
        "seed": asked.seed,
        "installed_s": installed,
        **found,
        "memory": memory,
        "memory_judged": asked.minutes >= FLAT_FROM_MINUTES,
    }


def main(arguments: list[str]) -> int:
    """Soak, print a table, and leave nothing running."""
    asked = _parse(arguments)
    say(f"seed {asked.seed}")
    try:
        with prepared(asked.keep) as place:
            found = soak(asked, place)
    except (BenchError, PilothouseError, GoBuildError) as error:
        say(f"bench: {error} (seed {asked.seed})")
        return 1
    except KeyboardInterrupt:
        say("bench: stopped")
        return 130
    rows = rows_of(found)
    print(report.table(rows))
    if asked.json:
        report.write(asked.json, found, rows)
    missed = [row.measure for row in rows if row.within is False]
    if missed:
        say(f"bench: missed with seed {asked.seed}: {'; '.join(missed)}")
    return 1 if missed else 0


def _parse(arguments: list[str]) -> Asked:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=1000, dest="releases", help="how many releases")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long they are disturbed")
    parser.add_argument("--rate", type=float, default=4.0, help="edits and touches a second")
    parser.add_argument(
        "--ends", type=float, default=1.0, metavar="TIMES", help="end processes so much more often"
    )
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument(
        "--settle", type=float, default=300.0, metavar="SECONDS", help="patience at the end"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write all numbers")
    parser.add_argument(
        "--keep", type=Path, metavar="DIRECTORY", help="keep logs and archive in an empty directory"
    )
    return Asked(**vars(parser.parse_args(arguments)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
