"""A private directory for an engine's sockets.

Its owner holds a lock on it, which ends with the owner however that dies: what nobody holds was left behind, and
the next owner removes it.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PREFIX = "pilothouse-engine-"
# Between making a directory and locking it lies a moment; a younger one is let be.
_YOUNG_SECONDS = 60.0


@contextlib.contextmanager
def private_directory() -> Iterator[Path]:
    """Make a directory that is there until the caller leaves, or the next one comes after a crash."""
    _remove_abandoned(Path(tempfile.gettempdir()))
    directory = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        with _opened(directory) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _remove_abandoned(parent: Path) -> None:
    for directory in parent.glob(f"{PREFIX}*"):
        # Someone else's, gone meanwhile, or in use.
        with contextlib.suppress(OSError), _opened(directory) as descriptor:
            status = os.fstat(descriptor)
            if status.st_uid != os.geteuid() or time.time() - status.st_mtime < _YOUNG_SECONDS:
                continue
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def _opened(directory: Path) -> Iterator[int]:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
