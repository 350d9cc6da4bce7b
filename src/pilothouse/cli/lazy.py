"""A Click group that imports a command only when it is called, so that `--help` answers at once."""

import importlib
from collections.abc import Mapping

import click

from pilothouse import __version__

Commands = Mapping[str, tuple[str, str, str]]


class LazyGroup(click.Group):
    """Knows its commands by name, module, attribute and one line of help."""

    def __init__(self, commands: Commands, name: str, text: str) -> None:
        super().__init__(name=name, help=text)
        self._lazy = commands

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands without importing any."""
        del ctx
        return sorted(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        del ctx
        if cmd_name not in self._lazy:
            return None
        module, attribute, _ = self._lazy[cmd_name]
        command = getattr(importlib.import_module(module), attribute)
        if not isinstance(command, click.Command):
            msg = f"{module}.{attribute} is not a command"
            raise TypeError(msg)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with their one line of help, importing none."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._lazy[name][2]) for name in sorted(self._lazy)])


def main_group(commands: Commands) -> LazyGroup:
    """Return the top group."""
    group = LazyGroup(
        commands,
        "pilothouse",
        "Keeps Helm releases, on any number of clusters, the way their owners wrote them down.",
    )
    click.version_option(__version__, prog_name="pilothouse")(group)
    return group
