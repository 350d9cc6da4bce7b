"""`pilothouse version`: what is installed."""

import asyncio

import click


@click.command()
def version() -> None:
    """Print the versions of brain, engine and Helm."""
    from pilothouse import __version__, telemetry
    from pilothouse.app import engine_versions

    telemetry.configure()
    engine, helm = asyncio.run(engine_versions())
    click.echo(f"pilothouse {__version__}\nengine {engine}\nhelm {helm}")
