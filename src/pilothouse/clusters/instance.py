"""The name of this instance, and which others are certainly gone.

A name says where the process runs (this boot of this machine and its namespace of process ids), which process it
is (its id, and when it was started) and a token that no other instance has. Two pods of one Deployment have the same
process id and may have host names that begin alike, so neither is proof of anything.
"""

import hashlib
import os
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path

LONGEST_HOST = 30
PROC = Path("/proc")
# Of a process that ended and was not yet waited for.
ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Life:
    """One process, told apart from every other of its machine, earlier ones included."""

    place: str
    process: str
    started: str


def new_instance() -> str:
    """Name this process; the host name is for people only."""
    host = "".join(one if one.isalnum() else "-" for one in socket.gethostname().lower())
    shown = host[:LONGEST_HOST].strip("-") or "host"
    process = str(os.getpid())
    parts = (shown, _place(), process, _started(process) or "0", secrets.token_hex(8))
    return ".".join(parts)


def certainly_gone(owner: str, me: str) -> bool:
    """Whether another instance was a process beside this one that runs no longer."""
    theirs, mine = _life(owner), _life(me)
    if theirs is None or mine is None or theirs.place != mine.place:
        return False
    started = _started(theirs.process)
    return started != theirs.started if started else not _exists(theirs.process)


def _life(instance: str) -> Life | None:
    match instance.split("."):
        case [_, place, process, started, _] if place and process.isdecimal() and started != "0":
            return Life(place, process, started)
    return None


def _place() -> str:
    """Name where process ids mean the same; without /proc, nowhere: then only Leases tell."""
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text()
        namespace = (PROC / "self/ns/pid").readlink()
    except OSError:
        return secrets.token_hex(6)
    return hashlib.sha256(f"{boot}{namespace}".encode()).hexdigest()[:12]


def _started(process: str) -> str:
    """Return when a process was started, in ticks since the machine was; empty when it cannot be seen."""
    try:
        text = (PROC / process / "stat").read_text(errors="replace")
    except OSError:
        return ""
    # The command's name comes second and may hold anything; the state follows it, the start is 19 further on.
    state_and_more = text.rpartition(")")[2].split()
    state, start = state_and_more[0], state_and_more[19]
    return ENDED if state in {"Z", "X"} else start


def _exists(process: str) -> bool:
    """Whether there is such a process; /proc may hide those of other users."""
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
