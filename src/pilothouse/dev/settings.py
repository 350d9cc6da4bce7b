"""What the environment says about development clusters; the only reader of it in this package."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pilothouse.gobuild import default_cache_root


@dataclass(frozen=True, slots=True)
class DevSettings:
    """Where programs come from and where clusters live."""

    kube_binaries: Path | None
    kubebuilder_assets: Path | None
    cache_root: Path
    state_root: Path

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "DevSettings":
        """Read PILOTHOUSE_KUBE_BINARIES, KUBEBUILDER_ASSETS, and where caches and state belong."""
        state = environment.get("XDG_STATE_HOME") or "~/.local/state"
        return cls(
            kube_binaries=_directory(environment.get("PILOTHOUSE_KUBE_BINARIES")),
            kubebuilder_assets=_directory(environment.get("KUBEBUILDER_ASSETS")),
            cache_root=default_cache_root(),
            state_root=_absolute(state) / "pilothouse" / "dev",
        )


def child_environment(directory: Path) -> dict[str, str]:
    """Return the environment for kubectl and helm: their caches stay with the cluster.

    Discovery is cached by address, and another cluster may have had the same port before.
    """
    own = {
        "KUBECACHEDIR": directory / "kubectl-cache",
        "HELM_CACHE_HOME": directory / "helm" / "cache",
        "HELM_CONFIG_HOME": directory / "helm" / "config",
        "HELM_DATA_HOME": directory / "helm" / "data",
    }
    return {**os.environ, **{name: str(path) for name, path in own.items()}}


def _directory(value: str | None) -> Path | None:
    return _absolute(value) if value else None


def _absolute(value: str) -> Path:
    return Path(value).expanduser().absolute()
