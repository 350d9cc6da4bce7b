"""What the eyes must know of a release to look at it rightly."""

import hashlib
from dataclasses import dataclass, field
from typing import Any

from pilothouse.api.release import Release
from pilothouse.core.desired import Desired, ReleaseName
from pilothouse.core.observed import ObjectRef
from pilothouse.core.spelling import spelled

TOKEN_LENGTH = 16


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """Judges objects of one kind, instead of kstatus; `origin` names it in messages."""

    origin: str
    api_version: str
    kind: str
    current: str = ""
    failed: str = ""

    def expressions(self) -> list[tuple[str, str]]:
        """Return its CEL with the field each is in."""
        both = ((f"{self.origin}.current", self.current), (f"{self.origin}.failed", self.failed))
        return [(field, text) for field, text in both if text]


@dataclass(frozen=True, slots=True)
class Attention:
    """A release that is looked after, and how."""

    release: ReleaseName
    checks: tuple[HealthCheck, ...] = ()
    external: tuple[ObjectRef, ...] = ()
    # Names the two above, and comes back with what was seen by them; empty when there are none.
    token: str = field(init=False, default="")

    def __post_init__(self) -> None:
        if self.checks or self.external:
            said: list[Any] = [
                [
                    [one.origin, one.api_version, one.kind, one.current, one.failed]
                    for one in self.checks
                ],
                [[one.api_version, one.kind, one.namespace, one.name] for one in self.external],
            ]
            token = hashlib.sha256(spelled(said).encode()).hexdigest()[:TOKEN_LENGTH]
            object.__setattr__(self, "token", token)


def attention_to(release: Release, desired: Desired) -> Attention:
    """Return how a Release wants to be looked at. Raises ValueError, naming the field."""
    if desired.absent:
        return Attention(desired.release)  # nothing in the spec may keep it from going
    checks = []
    for number, check in enumerate(release.spec.health_checks):
        origin = f"spec.healthChecks[{number}]"
        if not check.current and not check.failed:
            msg = f"{origin}: give current or failed"
            raise ValueError(msg)
        checks.append(
            HealthCheck(origin, check.api_version, check.kind, check.current, check.failed)
        )
    return Attention(
        desired.release,
        checks=tuple(checks),
        external=tuple(
            ObjectRef(
                one.api_version, one.kind, one.namespace or desired.release.namespace, one.name
            )
            for one in release.spec.external_status
        ),
    )
