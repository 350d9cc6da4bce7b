"""`pilothouse demo`: the small example that `make run` shows."""

import os
import time
from pathlib import Path
from typing import Any

import click


class _KubeconfigFile(click.Path):
    """A file, named so that the commands we print work in any directory.

    Links are kept: a kubeconfig names other files as seen from where the link is.
    """

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """Take `~` too: in quotes, as the Makefile has it, no shell does."""
        try:
            path = Path(value).expanduser().absolute()
        except RuntimeError as error:  # a user that is not there
            self.fail(str(error), param, ctx)
        return super().convert(path, param, ctx)


@click.command()
@click.option(
    "--hub",
    type=_KubeconfigFile(exists=True, dir_okay=False, path_type=Path),
    help="Use this cluster, named by its kubeconfig, instead of an embedded one.",
)
@click.option(
    "--ready-within",
    default="5m",
    show_default=True,
    help="How long the Releases may take, with the images your cluster has to pull, before those that "
    "are not ready are named.",
)
def demo(*, hub: Path | None, ready_within: str) -> None:
    """Run two clusters, a chart repository, the controller and three Releases until Ctrl-C."""
    import asyncio

    from pilothouse.cli.signals import exit_on_terminate, until_signal
    from pilothouse.core.spelling import duration
    from pilothouse.dev.demo import find_programs, run_demo

    try:
        patience = duration(ready_within, "--ready-within")
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    began = time.monotonic()

    def say(line: str) -> None:
        click.echo(f"[{time.monotonic() - began:5.1f}s] {line}")

    # Built here, not in a thread beside the loop, which nothing could stop.
    exit_on_terminate()
    programs = find_programs(say)
    asyncio.run(until_signal(run_demo(hub, programs, patience, say)))
