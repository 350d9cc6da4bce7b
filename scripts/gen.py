"""Generate what is generated: the contract's code in both languages, and the CRDs.

Run by `make gen`; `make check` fails when the tree is not clean after it.
"""

import hashlib
import subprocess
import sys
from pathlib import Path

import crd_schema

from pilothouse import gobuild

ROOT = Path(__file__).resolve().parent.parent
GO_MODULE = "github.com/pilothouse-dev/pilothouse/engine"
GENERATED = (
    "src/pilothouse/engine/v1/*",
    "engine/internal/enginev1/*",
    "src/pilothouse/api/crds/*",
)
PLUGINS = {
    "protoc-gen-go": "google.golang.org/protobuf/cmd/protoc-gen-go",
    "protoc-gen-go-grpc": "google.golang.org/grpc/cmd/protoc-gen-go-grpc",
}


def generate_contract(plugins: Path) -> None:
    """Compile the proto file for Python and Go."""
    from grpc_tools import protoc

    plugins.mkdir(parents=True, exist_ok=True)
    go = gobuild.find_go()
    subprocess.run(
        [go.path, "build", "-o", str(plugins), *PLUGINS.values()], cwd=ROOT / "engine", check=True
    )
    code = protoc.main(
        [
            "protoc",
            f"-I{ROOT / 'proto'}",
            f"--python_out={ROOT / 'src'}",
            f"--pyi_out={ROOT / 'src'}",
            *(f"--plugin={name}={plugins / name}" for name in PLUGINS),
            f"--go_out={ROOT / 'engine'}",
            f"--go_opt=module={GO_MODULE}",
            f"--go-grpc_out={ROOT / 'engine'}",
            f"--go-grpc_opt=module={GO_MODULE}",
            str(ROOT / "proto/pilothouse/engine/v1/engine.proto"),
        ]
    )
    if code:
        sys.exit(code)


def main(arguments: list[str]) -> int:
    """Generate; with --check, say by the exit code whether that changed anything."""
    before = _digests()
    generate_contract(ROOT / ".venv" / "protoc-plugins")
    crd_schema.write_all(ROOT / "src/pilothouse/api/crds")
    changed = sorted(name for name, digest in _digests().items() if before.get(name) != digest)
    if "--check" in arguments and changed:
        print("not up to date, now generated: " + ", ".join(changed), file=sys.stderr)
        return 1
    return 0


def _digests() -> dict[str, str]:
    return {
        str(path.relative_to(ROOT)): hashlib.sha256(path.read_bytes()).hexdigest()
        for pattern in GENERATED
        for path in ROOT.glob(pattern)
        if path.is_file()  # and not what Python compiled
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
