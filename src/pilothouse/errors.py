"""The errors Pilothouse reasons with.

PilothouseError
├── InvalidInput      the user must edit something; retrying unchanged cannot help
├── NotPermitted      an account asked for what it may not have
├── Missing           the API server answered: there is no such object
│   └── ClusterForgotten  … and it was the ProviderConfig, or the Secret with its kubeconfig
├── AlreadyExists     the object is already there
└── Unavailable       something outside failed; try again later
    ├── EngineLost    the engine died during the call: what it did is unknown, observe first
    └── Conflict      someone wrote first; reload and decide again, say nothing

Three questions choose the class: can the user fix it, may it be retried, is the outcome known?
Messages start in lower case, name the thing and the next step, and never carry a secret.
"""

from pilothouse.faults import FaultKind


class PilothouseError(Exception):
    """Anything Pilothouse raises on purpose."""

    def __init__(self, message: str, kind: FaultKind = FaultKind.UNKNOWN) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind


class InvalidInput(PilothouseError):
    """The user must edit something; retrying unchanged cannot help."""


class NotPermitted(PilothouseError):
    """An account asked for what it may not have."""


class Missing(PilothouseError):
    """The API server answered, and there is no such object."""


class ClusterForgotten(Missing):
    """The ProviderConfig, or the Secret with its credentials, is certainly not there."""


class AlreadyExists(PilothouseError):
    """The object is already there."""


class Unavailable(PilothouseError):
    """Something outside failed; try again later."""


class EngineLost(Unavailable):
    """The engine died during the call: what it did is unknown, observe first."""


class Conflict(Unavailable):
    """Someone wrote first: reload and decide again."""
