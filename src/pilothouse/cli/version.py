"""`pilothouse version`: what is installed."""

import click


@click.command()
def version() -> None:
    """Print the versions of brain, engine and Helm."""
    from pilothouse import __version__, telemetry
    from pilothouse.app import engine_versions
    from pilothouse.cli.signals import exit_on_terminate

    telemetry.configure()
    exit_on_terminate()
    engine, helm = engine_versions()
    click.echo(f"pilothouse {__version__}\nengine {engine}\nhelm {helm}")
