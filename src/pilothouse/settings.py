"""What the operator may set, in one place."""

import os
from dataclasses import dataclass
from pathlib import Path


def _home(variable: str, fallback: str) -> Path:
    return Path(os.environ.get(variable) or Path.home() / fallback)


def state_dir() -> Path:
    """Return where things that must survive are kept by default."""
    return _home("XDG_STATE_HOME", ".local/state") / "pilothouse"


def cache_dir() -> Path:
    """Return where things that can be made again are kept by default."""
    explicit = os.environ.get("PILOTHOUSE_CACHE")
    return Path(explicit) if explicit else _home("XDG_CACHE_HOME", ".cache") / "pilothouse"


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """How `pilothouse controller` runs."""

    kubeconfig: Path | None
    context: str = ""
    archive: Path = Path()
    cache: Path = Path()
    workers: int = 16
    actions_at_once: int = 20
