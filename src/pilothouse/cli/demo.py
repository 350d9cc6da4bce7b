"""`pilothouse demo`: the small example that `make run` shows."""

import asyncio
import signal
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
    from pilothouse.dev.demo import run_demo

    began = time.monotonic()

    def say(line: str) -> None:
        click.echo(f"[{time.monotonic() - began:5.1f}s] {line}")

    async def run() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        await run_demo(hub, stop, say)

    asyncio.run(run())
