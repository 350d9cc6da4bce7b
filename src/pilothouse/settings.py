"""What the operator may set, in one place."""

import os
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

# Where every pod finds its account; PILOTHOUSE_SERVICE_ACCOUNT names another directory with the same files.
SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def _home(variable: str, fallback: str) -> Path:
    return Path(os.environ.get(variable) or Path.home() / fallback).expanduser()


def state_dir() -> Path:
    """Return where things that must survive are kept by default."""
    return _home("XDG_STATE_HOME", ".local/state") / "pilothouse"


def own_namespace() -> str:
    """Return the namespace this pod runs in; outside a cluster, default."""
    account = os.environ.get("PILOTHOUSE_SERVICE_ACCOUNT") or SERVICE_ACCOUNT
    mounted = Path(account) / "namespace"
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
    # How long a cluster must be certainly gone before a deleted Release is let go; None: for ever.
    abandon_after: timedelta | None = timedelta(minutes=10)
    # Kubeconfigs of ProviderConfigs may run programs and read files, as with provider-helm.
    trust_kubeconfigs: bool = False
    # Look and tell, change nothing.
    observe_only: bool = False
    # Act although another controller's package owns the CRDs, which are renewed.
    take_over: bool = False
    # What Ready means where a Release does not say: Objects or Helm.
    readiness: str = "Objects"
    # What to do about drift where a Release does not say: Correct, Warn or Ignore.
    drift_mode: str = "Correct"
    # host:port on loopback or of the API server that users' addresses may lead to.
    egress_allow: tuple[str, ...] = ()
    # Helm getter plugins, and the URL schemes they may be used for.
    getter_plugins: Path | None = None
    getter_plugin_schemes: tuple[str, ...] = ()
    # Where Prometheus may read; None: nowhere.
    metrics: tuple[str, int] | None = None

    def engine_flags(self) -> tuple[str, ...]:
        """Return what the engine is told about these settings."""
        plugins = (f"--getter-plugins={self.getter_plugins}",) if self.getter_plugins else ()
        return (
            *(f"--egress-allow={entry}" for entry in self.egress_allow),
            *plugins,
            *(f"--getter-plugin-scheme={scheme}" for scheme in self.getter_plugin_schemes),
        )
