"""`pilothouse demo`: the small example that `make run` shows."""

import time
from pathlib import Path

import click


@click.command()
@click.option(
    "--hub",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Use this cluster, named by its kubeconfig, instead of an embedded one.",
)
def demo(*, hub: Path | None) -> None:
    """Run two clusters, a chart repository, the controller and three Releases until Ctrl-C."""
    import asyncio

    from pilothouse.cli.signals import exit_on_terminate, until_signal
    from pilothouse.dev.demo import find_programs, run_demo

    began = time.monotonic()

    def say(line: str) -> None:
        click.echo(f"[{time.monotonic() - began:5.1f}s] {line}")

    # Built here, not in a thread beside the loop, which nothing could stop.
    exit_on_terminate()
    programs = find_programs(say)
    asyncio.run(until_signal(run_demo(hub, programs, say)))
