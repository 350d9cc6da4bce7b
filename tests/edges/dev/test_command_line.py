"""What is wrong on the command line is said before anything is built or started."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from pilothouse.cli import cli
from pilothouse.cli.demo import demo
from pilothouse.dev import charts
from pilothouse.dev.cluster import DevCluster
from pilothouse.dev.demo import Demo, where_to_look

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("port", ["-5", "65536", "http"])
def test_a_port_that_is_none(port: str, tmp_path: Path) -> None:
    runner = CliRunner(env={"XDG_STATE_HOME": str(tmp_path)})
    result = runner.invoke(cli, ["dev", "up", "--port", port])
    assert result.exit_code == 2
    assert "Invalid value for '--port'" in result.output


@pytest.mark.parametrize("given", ["own kubeconfig", "~/own kubeconfig"])
def test_a_hub_is_named_for_every_directory(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own kubeconfig").symlink_to(__file__)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    context = demo.make_context("demo", ["--hub", given])
    assert context.params["hub"] == tmp_path / "own kubeconfig"


def test_a_hub_that_is_not_there(tmp_path: Path) -> None:
    for given in (str(tmp_path / "absent"), "~nobody-of-that-name/config"):
        result = CliRunner().invoke(cli, ["demo", "--hub", given])
        assert result.exit_code == 2
        assert "Invalid value for '--hub'" in result.output


def test_what_the_demo_prints_can_be_typed(tmp_path: Path) -> None:
    place = tmp_path / "a b"
    hub, edge = (
        DevCluster(name, place, "", place / name, 0, place / "kubectl") for name in ("hub", "edge")
    )
    with charts.serve(tmp_path / "charts") as repository:
        shown = Demo(hub, edge, place / "helm", place / "controller.log", repository)
        printed = where_to_look(shown, ready=True).splitlines()
    typed = [shlex.split(line) for line in printed if line.startswith("  ")]
    assert [str(place / "kubectl"), "--kubeconfig", str(place / "hub"), "get", "releases"] in typed
    assert [str(place / "helm"), "--kubeconfig", str(place / "edge"), "list", "-A"] in typed
    assert ["tail", "-f", str(place / "controller.log")] in typed


def test_make_run_hands_the_hub_on_whole(tmp_path: Path) -> None:
    """The Makefile's own recipe, with a program in the demo's place that says what it was given."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "pilothouse"
    program.write_text('#!/bin/sh\nprintf "<%s>" "$@"\n')
    program.chmod(0o700)
    (tmp_path / ".installed").touch()
    for hub, expected in (("my own/config", "<demo><--hub><my own/config>"), ("", "<demo>")):
        done = subprocess.run(
            ["make", "--no-print-directory", "run", f"VENV={tmp_path}", "PY=true", f"HUB={hub}"],
            cwd=ROOT,
            # Not those of the make that may be running these tests.
            env={name: value for name, value in os.environ.items() if "MAKE" not in name},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == expected
