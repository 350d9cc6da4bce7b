"""Build every Go program that tests, demo and bench need, before anything with a time limit starts."""

import sys

from pilothouse import gobuild
from pilothouse.dev.binaries import find_helm4, find_kube_binaries
from pilothouse.dev.settings import DevSettings
from pilothouse.engine.process import SOURCE
from pilothouse.errors import PilothouseError


def say(line: str) -> None:
    """Show progress at once."""
    print(line, flush=True)


def main() -> int:
    """Build, or take from the cache."""
    settings = DevSettings.from_environment()
    try:
        gobuild.build(gobuild.engine_program(SOURCE), settings.cache_root, say)
        find_helm4(settings, say)
        find_kube_binaries(settings, say)
    except (PilothouseError, gobuild.GoBuildError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
