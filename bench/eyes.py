"""Measure how the eyes grow: with releases, and with credentials that lead to the same few clusters.

Releases are installed once on two clusters. Then the controller is started anew over them, each time with
their ProviderConfigs cut differently, and what it holds when it rests is read. With --each they are not installed
but copied, so that thousands fit on a small machine.
"""

import argparse
import base64
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import yaml
from adopt import PATIENCE_SECONDS, QUIET_SECONDS, adopt
from controller import running_controller
from kube import MERGE, BenchError, Kube, in_parallel
from measure import descendants, say, until_quiet
from releases import NAMESPACE, RELEASES, Bench, create_namespace
from run import CHARTS, Place, fresh_cluster, prepared
from seed import CHART, PATTERN, pattern, seed

from pilothouse.dev import charts
from pilothouse.dev.cluster import DevCluster
from pilothouse.errors import PilothouseError
from pilothouse.gobuild import GoBuildError

_CONFIGS = "/apis/helm.crossplane.io/v1beta1/providerconfigs"
_SECRETS = "/api/v1/namespaces/default/secrets"
_ACCOUNTS = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
_KILOBYTE = 1024
_DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True)
class Row:
    """What one start over so many configs and releases came to."""

    configs: int
    releases: int
    brain_mb: float
    engine_mb: float
    cpu_s: float
    settled_s: float

    def __str__(self) -> str:
        return (
            f"| {self.configs} | {self.releases} | {self.brain_mb:.0f} | {self.engine_mb:.0f} "
            f"| {self.cpu_s:.1f} | {self.settled_s:.1f} |"
        )


def megabytes_now(pid: int) -> float:
    """Return the memory one process has."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    held = next((line.split()[1] for line in lines if line.startswith("VmRSS")), "0")
    return int(held) / _KILOBYTE


def account(cluster: DevCluster, kube: Kube, name: str) -> bytes:
    """Return the kubeconfig of a ServiceAccount of its own."""
    kube.request("POST", _ACCOUNTS, {"metadata": {"name": name}})
    asked = {"spec": {"expirationSeconds": _DAY_SECONDS}}
    token = kube.request("POST", f"{_ACCOUNTS}/{name}/token", asked)["status"]["token"]
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"] = [{"name": one["name"], "user": {"token": token}} for one in config["users"]]
    return yaml.safe_dump(config).encode()


def let_accounts_in(kube: Kube) -> None:
    """Give every account of the bench's namespace all rights."""
    kube.request(
        "POST",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        {
            "metadata": {"name": "bench"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "cluster-admin",
            },
            "subjects": [
                {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "Group",
                    "name": f"system:serviceaccounts:{NAMESPACE}",
                }
            ],
        },
    )


def make_configs(hub: Kube, clusters: list[tuple[DevCluster, Kube]], count: int) -> None:
    """Make ProviderConfigs of distinct credentials, the clusters taking turns."""

    def make(number: int) -> None:
        name = f"eyes-{number}"
        cluster, kube = clusters[number % len(clusters)]
        data = base64.b64encode(account(cluster, kube, name)).decode()
        hub.request("POST", _SECRETS, {"metadata": {"name": name}, "data": {"kubeconfig": data}})
        reference = {"name": name, "namespace": "default", "key": "kubeconfig"}
        spec = {"credentials": {"source": "Secret", "secretRef": reference}}
        manifest = {
            "apiVersion": "helm.crossplane.io/v1beta1",
            "kind": "ProviderConfig",
            "metadata": {"name": name},
            "spec": spec,
        }
        hub.request("POST", _CONFIGS, manifest)

    in_parallel(make, range(count))


def assign(hub: Kube, releases: int, configs: int) -> None:
    """Cut the releases among so many configs; each stays on its cluster, so nothing is upgraded."""

    def point(number: int) -> None:
        patch = {"spec": {"providerConfigRef": {"name": f"eyes-{number % configs}"}}}
        hub.request("PATCH", f"{RELEASES}/e{number}", patch, content=MERGE)

    in_parallel(point, range(releases))


def start_over(hub: DevCluster, directory: Path, number: int, shape: tuple[int, int]) -> Row:
    """Start the controller over what is there, and read what it holds when it rests."""
    with running_controller(hub.kubeconfig, directory, number) as controller:
        controller.until_watching()
        rested = until_quiet(
            lambda: controller.usage().cpu_s, window=QUIET_SECONDS, patience=PATIENCE_SECONDS
        )
        if rested is None:
            raise BenchError("the controller did not come to rest")
        engines = list(descendants(controller.process.pid))
        return Row(
            *shape,
            brain_mb=megabytes_now(controller.process.pid),
            engine_mb=sum(map(megabytes_now, engines)),
            cpu_s=controller.usage().cpu_s,
            settled_s=rested - controller.started,
        )


def measure(place: Place, releases: int, shapes: list[int]) -> list[Row]:
    """Install, then start over with each number of configs, then with half the releases."""
    rows: list[Row] = []
    with (
        fresh_cluster(place, "hub") as hub,
        fresh_cluster(place, "edge") as edge,
        charts.serve(place.directory / "charts") as repository,
    ):
        repository.add(CHARTS / "tiny")
        clusters = [(one, Kube(one.kubeconfig)) for one in (hub, edge)]
        kube = clusters[0][1]
        with running_controller(hub.kubeconfig, place.directory) as controller:
            controller.until_watching()
            bench = Bench(kube, controller, repository.url)
            bench.prepare()
            create_namespace(clusters[1][1])
            for _, one in clusters:
                let_accounts_in(one)
            make_configs(kube, clusters, max(shapes))
            bench.install("tiny", "e", releases, config=lambda number: f"eyes-{number % 2}")
        for number, configs in enumerate(shapes, start=2):
            assign(kube, releases, configs)
            rows.append(start_over(hub, place.directory, number, (configs, releases)))
            say(str(rows[-1]))
        with running_controller(hub.kubeconfig, place.directory, 100) as controller:
            controller.until_watching()
            bench = Bench(kube, controller, repository.url)
            bench.remove([f"e{number}" for number in range(releases // 2, releases)])
        for number, configs in enumerate(shapes, start=101):
            assign(kube, releases // 2, configs)
            rows.append(start_over(hub, place.directory, number, (configs, releases // 2)))
            say(str(rows[-1]))
    return rows


def measure_copies(place: Place, each: int, shapes: list[int]) -> list[Row]:
    """Copy half, then all, and start over with all configs; then cut among fewer."""
    most, rows = max(shapes), list[Row]()
    total = most * each
    with (
        fresh_cluster(place, "hub") as hub,
        fresh_cluster(place, "edge") as edge,
        charts.serve(place.directory / "charts") as repository,
    ):
        repository.add(CHARTS / CHART)
        clusters = [(one, Kube(one.kubeconfig)) for one in (hub, edge)]
        kubes = [kube for _, kube in clusters]
        with running_controller(hub.kubeconfig, place.directory) as controller:
            controller.until_watching()
            bench = Bench(kubes[0], controller, repository.url)
            bench.prepare()
            create_namespace(kubes[1])
            for kube in kubes:
                let_accounts_in(kube)
            make_configs(kubes[0], clusters, most)
            bench.install(CHART, PATTERN.removesuffix("0"), 1, config=lambda _: "eyes-0")
        made_of = pattern(kubes[0], kubes[0])
        for number, (first, last) in enumerate([(0, total // 2), (total // 2, total)]):
            say(f"copying releases up to {last}")
            seed(made_of, kubes[0], kubes, range(first, last), lambda one: f"eyes-{one % most}")
            adopt(hub, kubes[0], place.directory, 200 + number, last)
            rows.append(start_over(hub, place.directory, 300 + number, (most, last)))
            say(str(rows[-1]))
        for configs in sorted(set(shapes) - {most}, reverse=True):
            assign(kubes[0], total, configs)
            adopt(hub, kubes[0], place.directory, 400 + configs, total)
            rows.append(start_over(hub, place.directory, 500 + configs, (configs, total)))
            say(str(rows[-1]))
    return rows


def growth(rows: list[Row]) -> list[str]:
    """Say what one more costs, from pairs of rows that differ in one thing only."""
    said = []
    for one in rows:
        for other in rows:
            if one.configs == other.configs and one.releases > other.releases:
                said.append(_each(one, other, one.releases - other.releases, "release"))
            if one.releases == other.releases and one.configs > other.configs:
                said.append(_each(one, other, one.configs - other.configs, "ProviderConfig"))
    return said


def _each(more: Row, less: Row, count: int, what: str) -> str:
    brain = 1000 * (more.brain_mb - less.brain_mb) / count
    engine = 1000 * (more.engine_mb - less.engine_mb) / count
    cpu = 1000 * (more.cpu_s - less.cpu_s) / count
    return (
        f"one more {what}, {less.configs} × {less.releases} to {more.configs} × {more.releases}: "
        f"brain {brain:.0f} kB, engine {engine:.0f} kB, CPU at start {cpu:.1f} ms"
    )


def main(arguments: list[str]) -> int:
    """Measure, print a table, and leave nothing running."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=200, dest="releases", help="how many releases")
    parser.add_argument(
        "--each", type=int, metavar="N", help="copy so many releases for each config instead"
    )
    parser.add_argument("--configs", type=int, nargs="+", default=[2, 10, 50], metavar="COUNT")
    asked = parser.parse_args(arguments)
    began = time.monotonic()
    try:
        with prepared() as place:
            if asked.each:
                rows = measure_copies(place, asked.each, asked.configs)
            else:
                rows = measure(place, asked.releases, asked.configs)
    except (BenchError, PilothouseError, GoBuildError) as error:
        say(f"bench: {error}")
        return 1
    print(
        "| configs | releases | brain, MB | engine, MB | CPU until at rest, s | at rest after, s |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for row in rows:
        print(row)
    for line in growth(rows):
        print(line)
    say(f"all of it took {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
