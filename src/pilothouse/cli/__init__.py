"""The command line: parses and delegates, nothing else. Each command is imported when it is called."""

from pilothouse.cli.lazy import LazyGroup, main_group

COMMANDS = {
    "controller": (
        "pilothouse.cli.controller",
        "controller",
        "Run the controller in the foreground.",
    ),
    "crds": ("pilothouse.cli.crds", "crds", "Print the CustomResourceDefinitions to apply."),
    "demo": ("pilothouse.cli.demo", "demo", "Two clusters, a chart repository and three Releases."),
    "dev": ("pilothouse.cli.dev", "dev", "Embedded Kubernetes clusters for development."),
    "version": ("pilothouse.cli.version", "version", "Print the versions of brain and engine."),
}

cli = main_group(COMMANDS)


def main() -> None:
    """Run the CLI; an error of ours is one sentence and exit code 1."""
    import sys

    from pilothouse.errors import PilothouseError

    try:
        cli(prog_name="pilothouse")
    except PilothouseError as error:
        print(f"pilothouse: {error.message}", file=sys.stderr)
        sys.exit(1)
    except ExceptionGroup as group:
        ours, others = group.split(PilothouseError)
        if ours is None or others is not None:
            raise
        for one in ours.exceptions:
            print(f"pilothouse: {one}", file=sys.stderr)
        sys.exit(1)


__all__ = ["LazyGroup", "cli", "main"]
