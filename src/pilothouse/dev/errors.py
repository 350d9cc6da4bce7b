"""The one error of development clusters."""

from pilothouse.errors import PilothouseError


class DevClusterError(PilothouseError):
    """A development cluster cannot be started, found or stopped; the message is one sentence.

    Lines of a log may follow it, for the cases no sentence foresees.
    """
