"""How the programs of the command line end when they are told to."""

import asyncio
import signal
import sys
from collections.abc import Coroutine

import click


def exit_on_terminate() -> None:
    """Let SIGTERM end a program that has no loop yet in the same orderly way as Ctrl-C."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


async def until_signal(work: Coroutine[None, None, None]) -> None:
    """Run, and turn the first SIGINT, SIGTERM or SIGHUP into an orderly end."""
    task = asyncio.ensure_future(work)
    interrupted = False

    def interrupt() -> None:
        nonlocal interrupted
        if not interrupted:  # a second Ctrl-C must not cut the stopping short
            interrupted = True
            click.echo("stopping", err=True)
            task.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, interrupt)
    try:
        await task
    except asyncio.CancelledError:
        if not interrupted:
            raise
