"""Run Go in one of our modules, with the Go that gobuild finds.

go.py MODULE ARGUMENTS...   runs `go ARGUMENTS...` in MODULE; `fmt-check` fails on unformatted files, and
                            `staticcheck` is the engine's, in every module
go.py --available           says by its exit code whether a Go that will do is there
"""

import os
import subprocess
import sys
from pathlib import Path

from pilothouse import gobuild

ROOT = Path(__file__).resolve().parent.parent


def main(arguments: list[str]) -> int:
    """Run what was asked for."""
    try:
        go = gobuild.find_go()
    except gobuild.GoBuildError as error:
        if arguments != ["--available"]:
            print(error, file=sys.stderr)
        return 1
    if arguments == ["--available"]:
        return 0
    module, *rest = arguments
    # The flags of gobuild, so that vet and tests reuse what a build has compiled, and the other way round.
    flags = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": gobuild.GOFLAGS}
    environment = {**os.environ, **flags}
    if rest == ["fmt-check"]:
        gofmt = go.path.resolve().parent / "gofmt"
        done = subprocess.run(
            [gofmt, "-l", "."], cwd=ROOT / module, capture_output=True, text=True, check=True
        )
        if done.stdout:
            print(f"not formatted in {module}:\n{done.stdout}", file=sys.stderr)
        return 1 if done.stdout else 0
    command = [str(go.path), *rest]
    if rest[0] == "staticcheck":
        # One module names its version; the others would need its dependencies among their own.
        found = subprocess.run(
            [go.path, "tool", "-n", "staticcheck"],
            cwd=ROOT / "engine",
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        command = [found.stdout.strip(), *rest[1:]]
    return subprocess.run(command, cwd=ROOT / module, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
