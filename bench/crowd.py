"""Measure how many releases that share one Secret take a change of it: each once, and no stampede.

The Secret is changed a few times in a burst. Exits with an error when a release did not end with the last value, or
made more than one new revision.
"""

import argparse
import base64
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from controller import running_controller
from kube import MERGE, BenchError, Kube, in_parallel
from measure import Progress, until_quiet
from phases import Found, readable
from releases import CONFIG_MAPS, NAMESPACE, RELEASES, SECRETS, Bench
from report import Row, machine, table, write
from run import CHARTS, Place, fresh_cluster, prepared

from pilothouse.dev import charts
from pilothouse.errors import PilothouseError
from pilothouse.gobuild import GoBuildError

CHANGES = 5
SHARED = "shared"
PATIENCE_SECONDS = 900.0


def measure(place: Place, count: int) -> Found:
    """Install, change the Secret in a burst, and follow the change to every object."""
    with (
        fresh_cluster(place, "hub") as hub,
        charts.serve(place.directory / "charts") as repository,
    ):
        repository.add(CHARTS / "tiny")
        kube = Kube(hub.kubeconfig)
        with running_controller(hub.kubeconfig, place.directory) as controller:
            controller.until_watching()
            bench = Bench(kube, controller, repository.url)
            bench.prepare()
            kube.request("POST", SECRETS, {"metadata": {"name": SHARED}, "data": said("before")})
            source = {"secretKeyRef": {"name": SHARED, "namespace": NAMESPACE}}
            bench.install("tiny", "c", count)
            in_parallel(lambda number: share(kube, f"c{number}", source), range(count))
            until_all(kube, count, "before")
            until_quiet(lambda: controller.usage().cpu_s, what="settling")
            before, used = kube.requests_at_rest(), controller.usage()
            revisions = newest(kube)
            started = time.monotonic()
            for change in range(CHANGES):
                kube.request(
                    "PATCH", f"{SECRETS}/{SHARED}", {"data": said(f"after {change}")}, content=MERGE
                )
            until_all(kube, count, f"after {CHANGES - 1}")
            seconds = time.monotonic() - started
            until_quiet(lambda: controller.usage().cpu_s, what="settling")
            asked = kube.requests_at_rest().since(before)
            made = Counter(newest(kube)) - Counter(revisions)
            return {
                "machine": machine(),
                "releases": count,
                "changes": CHANGES,
                "seconds": seconds,
                "cpu_s": controller.usage().since(used).cpu_s,
                "most_revisions": max(made.values()),
                "revisions": made.total(),
                "requests": readable(asked.by_kind()),
            }


def said(message: str) -> dict[str, str]:
    """Return a Secret's data with values that say so."""
    return {"values.yaml": base64.b64encode(json.dumps({"message": message}).encode()).decode()}


def share(kube: Kube, name: str, source: dict[str, Any]) -> None:
    """Let a release take its value from the Secret."""
    patch = {"spec": {"forProvider": {"values": None, "valuesFrom": [source]}}}
    kube.request("PATCH", f"{RELEASES}/{name}", patch, content=MERGE)


def until_all(kube: Kube, count: int, message: str) -> None:
    """Wait until the ConfigMap of every release has a message."""
    missing = {f"c{number}" for number in range(count)}
    until = time.monotonic() + PATIENCE_SECONDS
    with kube.watching(CONFIG_MAPS) as watch, Progress(f'until all say "{message}"') as progress:
        while missing:
            seen = watch.next(1.0)
            if seen and seen.object.get("data", {}).get("message") == message:
                missing.discard(seen.name)
            progress.tell(f"{count - len(missing)} of {count}")
            if time.monotonic() > until:
                raise BenchError(f'{len(missing)} of {count} do not say "{message}"')


def newest(kube: Kube) -> dict[str, int]:
    """Return the newest revision of every Helm release."""
    found: dict[str, int] = {}
    for name in kube.versions(SECRETS):
        _, record, rest = name.partition("sh.helm.release.v1.")
        if record:
            release, _, revision = rest.rpartition(".v")
            found[release] = max(found.get(release, 0), int(revision))
    return found


def rows_of(found: Found) -> list[Row]:
    """Judge what was found."""
    what = f"{found['changes']} changes of a Secret that {found['releases']} releases share"
    return [
        Row(f"{what}: all have the last", found["seconds"], "s"),
        Row(f"{what}: CPU", found["cpu_s"], "s"),
        Row(
            f"{what}: new revisions of one release",
            found["most_revisions"],
            "at most",
            limit=1,
            digits=0,
        ),
        Row(
            f"{what}: new revisions",
            found["revisions"],
            "in all",
            limit=found["releases"],
            digits=0,
        ),
    ]


def main(arguments: list[str]) -> int:
    """Measure, print, and leave nothing running."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=500, dest="count", help="how many releases")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write all numbers")
    asked = parser.parse_args(arguments)
    try:
        with prepared() as place:
            found = measure(place, asked.count)
    except (BenchError, PilothouseError, GoBuildError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    rows = rows_of(found)
    print(table(rows))
    if asked.json:
        write(asked.json, found, rows)
    return 0 if all(row.within is not False for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
