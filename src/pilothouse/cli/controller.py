"""`pilothouse controller`: run the controller in the foreground."""

import asyncio
from datetime import timedelta
from pathlib import Path

import click

HIGHEST_PORT = 65535


@click.command()
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The management cluster; without it, the cluster this pod runs in.",
)
@click.option("--context", default="", help="Context in the kubeconfig; default: the current one.")
@click.option(
    "--namespace",
    help="The controller's own namespace; default: the pod's, outside a cluster `default`.",
)
@click.option(
    "--archive",
    type=click.Path(dir_okay=False, path_type=Path),
    help="SQLite file that keeps what was done.",
)
@click.option(
    "--workers",
    default=16,
    show_default=True,
    type=click.IntRange(1, 256),
    help="How many Releases may be looked at at the same time; actions take none of them.",
)
@click.option(
    "--actions-at-once",
    default=20,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="How many Helm actions may work at the same time; those that only wait do not count.",
)
@click.option(
    "--readiness",
    type=click.Choice(["objects", "helm"]),
    help="What Ready means where a Release does not say: every object is current, or deployed and in sync.",
)
@click.option(
    "--drift-mode",
    type=click.Choice(["correct", "warn", "ignore"]),
    help="What to do, where a Release does not say, when others change what a chart set: put it back "
    "(default), say so, or nothing, as provider-helm.",
)
@click.option(
    "--abandon-after",
    default="10m",
    show_default=True,
    help="Let a deleted Release go when its ProviderConfig or kubeconfig Secret has been missing for "
    "so long; `never` waits for ever.",
)
@click.option(
    "--kubeconfig-trust",
    type=click.Choice(["strict", "provider"]),
    help="What kubeconfigs of ProviderConfigs may do: `strict` (default) no programs, no files, no "
    "insecure TLS; `provider` all of it, as provider-helm.",
)
@click.option(
    "--compat",
    type=click.Choice(["provider-helm"]),
    help="Behave as provider-helm wherever Pilothouse differs on purpose; single options still win.",
)
@click.option(
    "--observe-only",
    is_flag=True,
    help="Change nothing: print for each Release what would be done.",
)
@click.option(
    "--take-over",
    is_flag=True,
    help="Make the CRDs of another controller ours, and act. Stop that controller first.",
)
@click.option(
    "--egress-allow",
    multiple=True,
    metavar="HOST:PORT",
    envvar="PILOTHOUSE_EGRESS_ALLOW",
    help="Let users' addresses (charts, kubeconfigs) lead to this host and port, although it is on "
    "loopback or the API server; HOST:* for any port. May be repeated.",
)
@click.option(
    "--getter-plugins",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Directory with Helm getter plugins, to fetch charts from other URL schemes.",
)
@click.option(
    "--getter-plugin-scheme",
    "getter_plugin_schemes",
    multiple=True,
    metavar="SCHEME",
    help="URL scheme that getter plugins may be used for, such as s3. May be repeated.",
)
@click.option(
    "--metrics",
    metavar="HOST:PORT",
    help="Serve metrics for Prometheus there, such as 127.0.0.1:9090; without it, nowhere.",
)
@click.option(
    "--stop-on-eof",
    is_flag=True,
    hidden=True,
    help="Stop when standard input ends, as it does when a parent that holds its other end dies.",
)
@click.option("--verbose", is_flag=True, help="Log more.")
def controller(
    *,
    kubeconfig: Path | None,
    context: str,
    namespace: str | None,
    archive: Path | None,
    workers: int,
    actions_at_once: int,
    abandon_after: str,
    kubeconfig_trust: str | None,
    compat: str | None,
    observe_only: bool,
    take_over: bool,
    readiness: str | None,
    egress_allow: tuple[str, ...],
    getter_plugins: Path | None,
    getter_plugin_schemes: tuple[str, ...],
    drift_mode: str | None,
    metrics: str | None,
    stop_on_eof: bool,
    verbose: bool,
) -> None:
    """Run the controller in the foreground until SIGTERM, SIGHUP or Ctrl-C."""
    from pilothouse import telemetry
    from pilothouse.app import prepare_controller
    from pilothouse.cli.service import serve
    from pilothouse.cli.signals import endings, exit_on_terminate, terminate_on_eof
    from pilothouse.gobuild import default_cache_root
    from pilothouse.settings import ControllerSettings, own_namespace, state_dir

    if observe_only and take_over:
        raise click.UsageError("--observe-only and --take-over exclude each other")
    telemetry.configure(verbose=verbose)
    settings = ControllerSettings(
        kubeconfig=kubeconfig,
        context=context,
        archive=archive or state_dir() / "archive.db",
        cache=default_cache_root(),
        namespace=namespace or own_namespace(),
        workers=workers,
        actions_at_once=actions_at_once,
        abandon_after=_patience(abandon_after),
        trust_kubeconfigs=(kubeconfig_trust or ("provider" if compat else "strict")) == "provider",
        observe_only=observe_only,
        take_over=take_over,
        readiness=(readiness or ("helm" if compat else "objects")).capitalize(),
        egress_allow=egress_allow,
        getter_plugins=getter_plugins,
        getter_plugin_schemes=getter_plugin_schemes,
        drift_mode=(drift_mode or ("ignore" if compat else "correct")).capitalize(),
        metrics=_address(metrics) if metrics else None,
    )
    exit_on_terminate()
    if stop_on_eof:
        terminate_on_eof()
    run_controller = prepare_controller(settings, click.echo)

    async def run() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in endings():
            loop.add_signal_handler(number, stop.set)
        await run_controller(stop)

    serve(run())


def _patience(text: str) -> timedelta | None:
    from pilothouse.core.spelling import duration

    if text == "never":
        return None
    try:
        return duration(text, "--abandon-after")
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > HIGHEST_PORT:
        raise click.UsageError(f"--metrics: {text} is not HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)
