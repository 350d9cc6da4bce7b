"""How the programs of the command line end when they are told to."""

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Coroutine

import click

_STDIN = 0
_CHUNK = 4096


def endings() -> list[signal.Signals]:
    """Name the signals that end us; who started us under `nohup` wants us to outlive the terminal."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *(() if ignored else (signal.SIGHUP,))]


def exit_on_terminate() -> None:
    """Let SIGTERM and SIGHUP end a program that has no loop yet in the same orderly way as Ctrl-C."""
    for number in endings():
        if number is not signal.SIGINT:
            signal.signal(number, lambda number, _: sys.exit(128 + number))


def terminate_on_eof() -> None:
    """Take the end of standard input for SIGTERM: a parent closes its end of the pipe however it dies."""

    def wait() -> None:
        with contextlib.suppress(OSError):  # a parent that died with words unread
            while os.read(_STDIN, _CHUNK):
                pass
        # To the main thread, which may be in a call that only its own signal interrupts.
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)

    threading.Thread(target=wait, name="end of standard input", daemon=True).start()


async def until_signal(work: Coroutine[None, None, None]) -> None:
    """Run, and turn the first signal that ends us into an orderly end."""
    task = asyncio.ensure_future(work)
    interrupted = False

    def interrupt() -> None:
        nonlocal interrupted
        if not interrupted:  # a second Ctrl-C must not cut the stopping short
            interrupted = True
            task.cancel()
            with contextlib.suppress(OSError):  # the same Ctrl-C may have ended who reads us
                click.echo("stopping", err=True)

    loop = asyncio.get_running_loop()
    for number in endings():
        loop.add_signal_handler(number, interrupt)
    try:
        await task
    except asyncio.CancelledError:
        if not interrupted:
            raise
