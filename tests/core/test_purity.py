"""The core and the API are pure: what they may use is listed, so that nothing else slips in.

The import linter forbids whole modules; this sees single names too: a clock in `datetime`, a file in a built-in.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "pilothouse"
MODULES = sorted(
    [*(SOURCE / "core").glob("*.py"), *(SOURCE / "api").glob("*.py"), SOURCE / "faults.py"]
)
ALLOWED = frozenset(
    {
        *(
            "base64",
            "binascii",
            "collections",
            "dataclasses",
            "datetime",
            "decimal",
            "enum",
            "fnmatch",
        ),
        *(
            "functools",
            "hashlib",
            "heapq",
            "itertools",
            "json",
            "math",
            "re",
            "string",
            "types",
            "typing",
        ),
        *("msgspec", "urllib.parse"),
        *("pilothouse.api", "pilothouse.core", "pilothouse.faults"),
    }
)
# Clocks, files, the terminal, and whatever runs text.
FORBIDDEN = frozenset(
    {"now", "today", "utcnow", "open", "print", "input", "eval", "exec", "__import__", "breakpoint"}
)


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module or ""


def called(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            match node.func:
                case ast.Name(id=name) | ast.Attribute(attr=name):
                    yield name


def impurities(text: str) -> set[str]:
    tree = ast.parse(text)
    foreign = {
        name
        for name in imported(tree)
        if not any(name == one or name.startswith(f"{one}.") for one in ALLOWED)
    }
    return foreign | (set(called(tree)) & FORBIDDEN)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_module_is_pure(path: Path) -> None:
    assert impurities(path.read_text()) == set()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from datetime import UTC, datetime\nx = datetime.now(UTC)", {"now"}),
        ("import urllib.request", {"urllib.request"}),
        ("from pilothouse.loop.queue import KeyedQueue", {"pilothouse.loop.queue"}),
        ("def f():\n    import secrets", {"secrets"}),
        ("open('x').read()", {"open"}),
    ],
)
def test_what_is_not_pure_is_found(text: str, found: set[str]) -> None:
    assert impurities(text) == found
