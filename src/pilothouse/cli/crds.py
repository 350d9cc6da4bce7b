"""`pilothouse crds`: print our CRDs, for those who may not let the controller install them."""

import click


@click.command()
def crds() -> None:
    """Print the CustomResourceDefinitions, to pipe into `kubectl apply -f -`."""
    import yaml

    from pilothouse.clusters.crds import shipped

    click.echo(yaml.safe_dump_all(shipped().values(), sort_keys=False), nl=False)
