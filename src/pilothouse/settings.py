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


def own_namespace() -> str:
    """Return the namespace this pod runs in; outside a cluster, default."""
    mounted = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
    if "POD_NAMESPACE" in os.environ:
        return os.environ["POD_NAMESPACE"]
    return mounted.read_text().strip() if mounted.is_file() else "default"


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """How `pilothouse controller` runs."""

    kubeconfig: Path | None
    context: str = ""
    archive: Path = Path()
    cache: Path = Path()
    # Where the lease lives, and what a reference without a namespace means.
    namespace: str = "default"
    workers: int = 16
    actions_at_once: int = 20
    # host:port on loopback or of the API server that users' addresses may lead to.
    egress_allow: tuple[str, ...] = ()
    # Helm getter plugins, and the URL schemes they may be used for.
    getter_plugins: Path | None = None
    getter_plugin_schemes: tuple[str, ...] = ()

    def engine_flags(self) -> tuple[str, ...]:
        """Return what the engine is told about these settings."""
        plugins = (f"--getter-plugins={self.getter_plugins}",) if self.getter_plugins else ()
        return (
            *(f"--egress-allow={entry}" for entry in self.egress_allow),
            *plugins,
            *(f"--getter-plugin-scheme={scheme}" for scheme in self.getter_plugin_schemes),
        )
