"""The documents are true: what they must name, they name."""

import re
from pathlib import Path

import pytest

from pilothouse.faults import FaultKind

ROOT = Path(__file__).resolve().parent.parent
SOURCES = (ROOT / "src" / "pilothouse", ROOT / "bench", ROOT / "scripts")


def modules() -> list[str]:
    return sorted(
        path.name
        for source in SOURCES
        for path in source.rglob("*.py")
        if path.name != "__init__.py" and "v1" not in path.parts
    )


@pytest.mark.parametrize("module", sorted(set(modules())))
def test_architecture_names_every_module(module):
    named = re.findall(r"[\w]+\.py", (ROOT / "docs/architecture.md").read_text())
    assert named.count(module) >= modules().count(module)


def test_architecture_names_no_module_that_is_gone():
    tree = (ROOT / "docs/architecture.md").read_text().split("```")[1]
    known = {
        path.name
        for folder in ("src", "scripts", "bench")
        for path in (ROOT / folder).rglob("*.py")
    }
    assert set(re.findall(r"[\w]+\.py", tree)) <= known


@pytest.mark.parametrize("kind", list(FaultKind))
def test_every_reason_is_explained(kind):
    assert str(kind) in (ROOT / "docs/reference/reasons.md").read_text()


def test_every_make_target_in_the_documents_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for document in ("README.md", "AGENTS.md", "CONTRIBUTING.md"):
        named = re.findall(r"`?make ([a-z]+)", (ROOT / document).read_text())
        assert set(named) <= targets, document


def test_every_file_a_document_links_to_exists():
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / link).exists(), f"{document.name} links to {link}"


def test_every_difference_to_provider_helm_is_shown_by_a_story():
    guide = (ROOT / "docs/guides/migrate-from-provider-helm.md").read_text()
    table = guide.split("## What is different on purpose")[1].split("\n## ")[0]
    promised = set(re.findall(r"^\| (\w[\w ]*) \|", table, re.MULTILINE))
    shown = {
        title
        for story in (ROOT / "tests/flow").glob("test_*.py")
        for titles in re.findall(r"Unlike provider-helm: ([\w ,]+)\.", story.read_text())
        for title in titles.split(", ")
    }
    assert len(promised) > 1
    assert shown == promised
