"""Who is taken for gone: only a process that was beside this one and runs no longer."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pilothouse.clusters import instance
from pilothouse.clusters.instance import certainly_gone, new_instance

NAME = "from pilothouse.clusters.instance import new_instance; print(new_instance(), flush=True)"


def test_a_process_beside_this_one_is_alive_until_it_ends() -> None:
    """The very same process id, as in two pods, proves nothing; the end of the process does."""
    command = [sys.executable, "-c", f"{NAME}; input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as one:
        assert one.stdout
        other, me = one.stdout.readline().strip(), new_instance()
        assert not certainly_gone(other, me)
        # Its process id, but started at another moment: the number was used again.
        host, place, process, started, token = other.split(".")
        assert int(process) == one.pid
        earlier = f"{host}.{place}.{process}.{int(started) - 1}.{token}"
        assert certainly_gone(earlier, me)
        one.communicate("\n")
    assert certainly_gone(other, me)


def test_a_process_elsewhere_is_never_certainly_gone() -> None:
    host, place, _, started, token = new_instance().split(".")
    nobody = "4194999"
    assert not Path(f"/proc/{nobody}").exists()
    assert certainly_gone(f"{host}.{place}.{nobody}.{started}.{token}", new_instance())
    elsewhere = f"{host}.{place[::-1]}x.{nobody}.{started}.{token}"
    assert not certainly_gone(elsewhere, new_instance())
    for unknown in ("", "host.1.abcd", f"{host}.{place}.x.{started}.{token}"):
        assert not certainly_gone(unknown, new_instance())


def test_pods_of_a_long_name_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their names begin alike, each is process 1, and where they run cannot be seen."""
    monkeypatch.setattr("socket.gethostname", lambda: "a-deployment-with-a-very-long-name-" * 2)
    monkeypatch.setattr(os, "getpid", lambda: 1)
    monkeypatch.setattr(instance, "PROC", Path("/nowhere"))
    one, other = new_instance(), new_instance()
    assert one != other
    assert not certainly_gone(one, other)
    assert len(f"pilothouse-{one}") < 128
