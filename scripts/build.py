"""Build every Go program that demo, bench and (--tests) tests need, before anything with a time limit starts."""

import signal
import sys

from pilothouse import gobuild
from pilothouse.cli.signals import exit_on_terminate
from pilothouse.dev.binaries import find_helm4, find_kube_binaries, find_registry
from pilothouse.dev.settings import DevSettings
from pilothouse.engine.process import SOURCE
from pilothouse.errors import PilothouseError


def say(line: str) -> None:
    """Show progress at once."""
    print(line, flush=True)


def main() -> int:
    """Build, or take from the cache."""
    exit_on_terminate()
    settings = DevSettings.from_environment()
    try:
        gobuild.build(gobuild.engine_program(SOURCE), settings.cache_root, say)
        find_helm4(settings, say)
        find_kube_binaries(settings, say)
        if "--tests" in sys.argv[1:]:
            find_registry(settings, say)
    except (PilothouseError, gobuild.GoBuildError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 128 + signal.SIGINT
    return 0


if __name__ == "__main__":
    sys.exit(main())
