"""Ctrl-C ends a program in order, whoever listens."""

import os
import signal
import subprocess
import sys
from pathlib import Path

PATIENCE_SECONDS = 60
PROGRAM = """\
import asyncio, sys
from pathlib import Path
from pilothouse.cli.signals import until_signal

async def work():
    print("at work", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        Path(sys.argv[1]).touch()

asyncio.run(until_signal(work()))
"""


def test_it_ends_in_order_when_the_reader_of_its_words_is_gone(tmp_path: Path) -> None:
    """A terminal sends Ctrl-C to a whole pipeline, and its reader may be the first to end."""
    tidied = tmp_path / "tidied"
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tidied)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as program:
        assert program.stdout
        assert program.stdout.readline() == "at work\n"
        program.stdout.close()
        program.send_signal(signal.SIGINT)
        try:
            assert program.wait(PATIENCE_SECONDS) == os.EX_OK
        finally:
            program.kill()
    assert tidied.exists()
