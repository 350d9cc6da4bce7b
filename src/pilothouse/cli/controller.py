"""`pilothouse controller`: run the controller in the foreground."""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

import click


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
@click.option("--workers", default=16, show_default=True, type=click.IntRange(1, 256))
@click.option(
    "--actions-at-once",
    default=20,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="How many Helm actions may work at the same time; those that only wait do not count.",
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
@click.option("--verbose", is_flag=True, help="Log more.")
def controller(
    *,
    kubeconfig: Path | None,
    context: str,
    namespace: str | None,
    archive: Path | None,
    workers: int,
    actions_at_once: int,
    egress_allow: tuple[str, ...],
    getter_plugins: Path | None,
    getter_plugin_schemes: tuple[str, ...],
    verbose: bool,
) -> None:
    """Run the controller in the foreground until SIGTERM or Ctrl-C."""
    from pilothouse import telemetry
    from pilothouse.app import run_controller
    from pilothouse.settings import ControllerSettings, cache_dir, own_namespace, state_dir

    telemetry.configure(verbose=verbose)
    settings = ControllerSettings(
        kubeconfig=kubeconfig,
        context=context,
        archive=archive or state_dir() / "archive.db",
        cache=cache_dir(),
        namespace=namespace or own_namespace(),
        workers=workers,
        actions_at_once=actions_at_once,
        egress_allow=egress_allow,
        getter_plugins=getter_plugins,
        getter_plugin_schemes=getter_plugin_schemes,
    )

    async def run() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        await run_controller(settings, stop)

    with asyncio.Runner(loop_factory=_uvloop()) as runner:
        runner.run(run())


def _uvloop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's loop where the server extra is installed; the standard one serves as well."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
