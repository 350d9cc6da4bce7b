"""`pilothouse dev`: run real Kubernetes control planes on this machine."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pilothouse.cli.signals import exit_on_terminate, until_signal

if TYPE_CHECKING:
    from pilothouse.dev.cluster import ClusterReport, DevCluster
    from pilothouse.dev.fleet import Known

LOGS = ("supervisor", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
_FOLLOW_SECONDS = 0.2
_TAIL_LINES = 20

_name = click.option("--name", default="dev", show_default=True, help="Name of the cluster.")


@click.group()
def dev() -> None:
    """Run real Kubernetes control planes on this machine, for development."""


@dev.command()
@_name
@click.option(
    "--clusters",
    "count",
    default=1,
    show_default=True,
    type=click.IntRange(1, 5),
    help="How many; several are named NAME-1, NAME-2, ...",
)
@click.option("--ephemeral", is_flag=True, help="Keep the data in memory, forget it at the end.")
@click.option("--detach", is_flag=True, help="Return when ready; `pilothouse dev down` stops it.")
@click.option(
    "--port",
    default=0,
    type=click.IntRange(0, 65535),
    help="Port of the API server, for one cluster only; 0 takes a free one.",
)
def up(*, name: str, count: int, ephemeral: bool, detach: bool, port: int) -> None:
    """Start clusters, and run them until Ctrl-C."""
    import asyncio

    from pilothouse.dev.binaries import find_kube_binaries
    from pilothouse.dev.cluster import ClusterRequest
    from pilothouse.dev.fleet import fleet_names, running_fleet, start_detached
    from pilothouse.dev.settings import DevSettings

    if port and count > 1:
        raise click.UsageError("--port is for one cluster only")
    names = fleet_names(name, count)
    settings = DevSettings.from_environment()
    report = _progress()
    # Built before the loop, which nothing could stop while it builds.
    exit_on_terminate()
    binaries = find_kube_binaries(settings, lambda text: report("", text))
    requests = [
        ClusterRequest(one, settings.state_root / one, ephemeral=ephemeral, port=port)
        for one in names
    ]

    async def foreground() -> None:
        async with running_fleet(requests, binaries, report) as fleet:
            _announce(fleet.clusters)
            click.echo("running until Ctrl-C", err=True)
            await fleet.until_one_ends()
        click.echo("stopped", err=True)

    async def background() -> None:
        _announce(await start_detached(requests, binaries, report))
        click.echo(f"stop with: pilothouse dev down --name {name}", err=True)

    asyncio.run(until_signal(background() if detach else foreground()))


@dev.command()
@_name
def down(*, name: str) -> None:
    """Stop a cluster, or all the numbered ones of that name."""
    import asyncio

    from pilothouse.dev.fleet import members, stop_known
    from pilothouse.dev.settings import DevSettings

    running = [
        known for known in members(DevSettings.from_environment().state_root, name) if known.pid
    ]
    if not running:
        click.echo(f"no cluster {name} is running", err=True)

    async def stop_all() -> None:
        async with asyncio.TaskGroup() as group:
            for known in running:
                group.create_task(stop_known(known), name=f"stop {known.name}")

    asyncio.run(stop_all())
    for known in running:
        click.echo(f"stopped {known.name}")


@dev.command()
def status() -> None:
    """List the clusters and whether they run."""
    from pilothouse.dev.fleet import known_clusters
    from pilothouse.dev.settings import DevSettings

    clusters = known_clusters(DevSettings.from_environment().state_root)
    if not clusters:
        click.echo("no clusters; start one with: pilothouse dev up", err=True)
        return
    rows = [("NAME", "STATE", "DATA", "SERVER", "KUBECONFIG")]
    rows += [
        (
            known.name,
            f"running ({known.pid})" if known.pid else "stopped",
            known.data,
            known.server,
            str(known.kubeconfig),
        )
        for known in clusters
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


@dev.command()
@_name
@click.option("--raw", is_flag=True, help="Print the content instead of the path.")
def kubeconfig(*, name: str, raw: bool) -> None:
    """Print the path of a cluster's kubeconfig."""
    known = _known(name)
    if not known.pid:
        click.echo(f"{name} is not running", err=True)
    if raw:
        click.echo(known.kubeconfig.read_text(), nl=False)
    else:
        click.echo(known.kubeconfig)


@dev.command()
@_name
@click.argument("component", required=False, type=click.Choice(LOGS))
@click.option("-f", "--follow", is_flag=True, help="Go on with what is written later.")
def logs(*, name: str, component: str | None, follow: bool) -> None:
    """Print a component's log, or the end of every component's."""
    directory = _known(name).directory / "logs"
    if component is None and follow:
        raise click.UsageError(f"name the component to follow: {', '.join(LOGS)}")
    if component is None:
        for one in LOGS:
            if (path := directory / f"{one}.log").is_file():
                click.secho(f"==> {one}", bold=True)
                lines = path.read_text(errors="replace").splitlines()
                click.echo("".join(f"{line}\n" for line in lines[-_TAIL_LINES:]))
        return
    path = directory / f"{component}.log"
    if not path.is_file():
        raise click.ClickException(f"{name} has no log of {component} yet")
    _print_log(path, follow=follow)


def _print_log(path: Path, *, follow: bool) -> None:
    with path.open(errors="replace") as log:
        while True:
            if text := log.read():
                click.echo(text, nl=False)
            elif not follow:
                return
            elif path.stat().st_size < log.tell():
                log.seek(0)  # a new start truncates it
            else:
                time.sleep(_FOLLOW_SECONDS)


def _known(name: str) -> "Known":
    from pilothouse.dev.fleet import check_name, known_clusters
    from pilothouse.dev.settings import DevSettings

    clusters = {
        known.name: known for known in known_clusters(DevSettings.from_environment().state_root)
    }
    if check_name(name) not in clusters:
        there = ", ".join(clusters) or "none"
        raise click.ClickException(f"there is no cluster {name} (known: {there})")
    return clusters[name]


def _progress() -> "ClusterReport":
    started = time.monotonic()

    def report(name: str, text: str) -> None:
        elapsed = time.monotonic() - started
        click.echo(f"[{elapsed:5.1f} s] {name + ': ' if name else ''}{text}", err=True)

    return report


def _announce(clusters: "Sequence[DevCluster]") -> None:
    for cluster in clusters:
        click.echo(f"{cluster.name} is ready at {cluster.server}")
        click.echo(f"  {cluster.kubectl_path} --kubeconfig {cluster.kubeconfig} get pods -A")
