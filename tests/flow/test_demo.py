"""`pilothouse demo`, which is `make run`: with clusters of its own, and on one of the user's."""

import asyncio
import json
import os
import re
import select
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import pytest
from stage import read_of_process

from pilothouse.dev.cluster import DevCluster
from pilothouse.dev.demo import _tidy

OF_THE_USER = {
    "apiVersion": "helm.crossplane.io/v1beta1",
    "kind": "ProviderConfig",
    "metadata": {"name": "pilothouse-demo"},
    "spec": {"credentials": {"source": "InjectedIdentity"}},
}
CONFIGS = "providerconfigs.helm.crossplane.io"
LABEL = {"app.kubernetes.io/part-of": "pilothouse-demo"}
PATIENCE_SECONDS = 60
# As an earlier example may have left it, and nothing starts in it.
FULL = [
    {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "pilothouse-demo", "labels": LABEL},
    },
    {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "nothing", "namespace": "pilothouse-demo"},
        "spec": {"hard": {"pods": "0"}},
    },
]


@contextmanager
def running_demo(*options: str) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [sys.executable, "-m", "pilothouse", "demo", *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        start_new_session=True,
    ) as demo:
        try:
            yield demo
        finally:
            # A story that failed waits for nothing; what the demo has started ends with it.
            if demo.poll() is None:
                demo.kill()


def demo_on(cluster: DevCluster, *options: str) -> AbstractContextManager["subprocess.Popen[str]"]:
    return running_demo("--hub", str(cluster.kubeconfig), *options)


def until_said(demo: "subprocess.Popen[str]", words: str) -> str:
    assert demo.stdout
    seen = ""
    for line in demo.stdout:
        seen += line
        if words in line:
            return seen
    pytest.fail(f"{words!r} was never said: {seen}")


def command_of(pid: int) -> list[str]:
    return read_of_process(Path(f"/proc/{pid}/cmdline")).split("\0")


def roles(pids: Iterable[int]) -> list[str]:
    """Which of them are a controller or a cluster."""
    commands = [command_of(pid) for pid in pids]
    return sorted(role for one in commands for role in ("controller", "up") if role in one)


def below(pid: int) -> list[int]:
    """All processes that it has started, and those have, and so on."""
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    started = [int(one) for thread in threads for one in read_of_process(thread).split()]
    return started + [one for child in started for one in below(child)]


@contextmanager
def watched(pids: Iterable[int]) -> Iterator[dict[int, int]]:
    """Descriptors by which their end is seen."""
    found: dict[int, int] = {}
    for pid in pids:
        with suppress(ProcessLookupError):
            found[pid] = os.pidfd_open(pid)
    yield found
    for descriptor in found.values():
        os.close(descriptor)


def until_gone(processes: dict[int, int]) -> None:
    for pid, descriptor in processes.items():
        gone = select.select([descriptor], [], [], PATIENCE_SECONDS)[0]
        assert gone, f"{command_of(pid)} goes on"


def kill_one_that_never_gets_ready(edge: DevCluster) -> None:
    for one in FULL:
        edge.kubectl("apply", "-f", "-", input=json.dumps(one))
    with demo_on(edge, "--ready-within", "10s") as demo:
        seen = until_said(demo, "Ctrl-C stops everything")
        named = re.search(r"release demo-hub is not ready after 10 s: (.+)", seen)
        assert named, seen
        assert f"release demo-hub: {named[1]}\n" in seen  # what its condition says, as before
        assert "Not all of the three Releases run yet" in seen
        assert "Traceback" not in seen
        with watched(below(demo.pid)) as processes:
            assert roles(processes) == ["controller", "up"]
            demo.kill()
            until_gone(processes)
    edge.kubectl("delete", "quota", "nothing", "-n", "pilothouse-demo")


def tidy_when_nobody_reads(edge: DevCluster) -> None:
    """The Ctrl-C that ends the demo may have ended before it who reads its words."""
    edge.kubectl("create", "secret", "generic", "left-over", "-n", "default")
    (label,) = (f"{name}={value}" for name, value in LABEL.items())
    edge.kubectl("label", "secret", "left-over", "-n", "default", label)

    def say(_: str) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):  # its last words
        asyncio.run(_tidy(edge, say))
    assert edge.kubectl("get", "secrets", "-n", "default", "-l", label, "-o", "name") == ""


def in_another_terminal(line: str, home: Path) -> str:
    """Run a line as it was printed; who edits changes nothing."""
    environment = {"HOME": str(home), "PATH": os.defpath, "KUBE_EDITOR": "true"}
    done = subprocess.run(
        shlex.split(line),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, f"{line}: {done.stderr}"
    return done.stdout


def rows(table: str) -> list[dict[str, str]]:
    """Read a table by its head, where some cells are empty."""
    head, *lines = table.splitlines()
    columns = [(found[0].strip(), *found.span()) for found in re.finditer(r"\S+\s*", head)]
    last = columns[-1][0]
    return [
        {name: line[start : None if name == last else end].strip() for name, start, end in columns}
        for line in lines
    ]


def test_without_a_cluster_of_the_users_it_brings_two_and_leaves_nothing(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, home = tmp_path_factory.mktemp("two"), tmp_path_factory.mktemp("home")
    monkeypatch.setenv("TMPDIR", str(place))
    # It gives up before the test would be cut off, and says why.
    with running_demo("--ready-within", "3m") as demo:
        seen = until_said(demo, "Ctrl-C stops everything")
        assert "Three Releases run on two clusters." in seen
        lines = re.findall(r"^  (/.+|tail -f .+)$", seen, re.MULTILINE)
        get, describe, get_all, helm_list, edit, tail = lines
        releases = rows(in_another_terminal(get, home))
        ready = {(one["NAME"], one["READY"]) for one in releases}
        assert ready == {(name, "True") for name in ("demo-hub", "demo-edge", "demo-latest")}
        assert "demo-edge" in in_another_terminal(describe, home)
        assert "deployment.apps/demo-edge" in in_another_terminal(get_all, home)
        helm = {(one["NAME"], one["STATUS"]) for one in rows(in_another_terminal(helm_list, home))}
        assert helm == {("demo-edge", "deployed"), ("demo-latest", "deployed")}
        in_another_terminal(edit, home)
        log = Path(tail.removeprefix("tail -f "))
        assert log.is_relative_to(place)
        assert log.stat().st_size
        with watched(below(demo.pid)) as processes:
            assert roles(processes) == ["controller", "up", "up"]
            os.killpg(demo.pid, signal.SIGINT)  # as a terminal does
            said = demo.communicate(timeout=2 * PATIENCE_SECONDS)[0]
            assert demo.returncode == 0, said
            until_gone(processes)
    assert "Traceback" not in said
    # Where memory is scarce, data was here too, in a directory that all clusters of a user share: only that may stay.
    left = {one.name for one in place.rglob("*")}
    assert left <= {f"pilothouse-dev-{os.getuid()}", "gate"}


def test_it_takes_out_what_it_brought_and_overwrites_nothing(
    edge: DevCluster, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A killed program leaves its files; this place has a name that is short enough for sockets.
    monkeypatch.setenv("TMPDIR", str(tmp_path_factory.mktemp("demo")))
    kill_one_that_never_gets_ready(edge)
    # The next one starts from what that left, and takes it out with its own.
    with demo_on(edge) as demo:
        seen = until_said(demo, "Ctrl-C stops everything")
        os.killpg(demo.pid, signal.SIGINT)  # as a terminal does
        seen += demo.communicate()[0]
        assert demo.returncode == 0, seen
    assert "release demo-edge: ready" in seen
    assert "left in your cluster: Pilothouse's CRDs" in seen
    everything = f"releases.helm.crossplane.io,{CONFIGS},secrets,namespaces"
    label = "app.kubernetes.io/part-of=pilothouse-demo"
    assert edge.kubectl("get", everything, "-A", "-l", label, "-o", "name") == ""
    assert edge.kubectl("get", "releases.helm.crossplane.io", "-o", "name") == ""
    tidy_when_nobody_reads(edge)

    # Its CRDs are there now, so a user may have something of the same name.
    for name in ("default", "pilothouse-demo"):
        mine = OF_THE_USER | {"metadata": {"name": name}}
        edge.kubectl("apply", "-f", "-", input=json.dumps(mine))
    before = edge.kubectl("get", CONFIGS, "-o", "yaml")
    with demo_on(edge) as demo:
        seen, _ = demo.communicate()
        assert demo.returncode == 1, seen
    assert "your cluster has a ProviderConfig pilothouse-demo of its own" in seen
    assert edge.kubectl("get", CONFIGS, "-o", "yaml") == before
    edge.kubectl("delete", CONFIGS, "--all")
