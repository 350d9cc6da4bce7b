"""What is to be done about drift, and what others may change without being asked."""

from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from pilothouse.api.relations import DriftIgnore
from pilothouse.api.release import Release


class DriftMode(StrEnum):
    """What to do when others change what the chart set."""

    CORRECT = "Correct"
    WARN = "Warn"
    IGNORE = "Ignore"


@dataclass(frozen=True, slots=True)
class Exemption:
    """Paths that others may change in some objects."""

    paths: tuple[str, ...]
    group: str = ""
    version: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""

    def covers(self, api_version: str, kind: str, namespace: str, name: str, path: str) -> bool:
        """Whether a difference of one object is exempt."""
        group, _, version = api_version.rpartition("/")
        wanted = (
            (self.group, group),
            (self.version, version),
            (self.kind, kind),
            (self.namespace, namespace),
            (self.name, name),
        )
        if not all(not pattern or fnmatchcase(value, pattern) for pattern, value in wanted):
            return False
        return any(is_below(path, pointer) for pointer in self.paths)


@dataclass(frozen=True, slots=True)
class DriftRules:
    """A Release's rules about drift."""

    mode: DriftMode = DriftMode.CORRECT
    # The Release itself says so.
    explicit: bool = False
    exemptions: tuple[Exemption, ...] = ()


def drift_rules(release: Release, default: str) -> DriftRules:
    """Read the rules. Raises ValueError, naming the field."""
    spec = release.spec.drift
    if spec is None:
        return DriftRules(DriftMode(default))
    return DriftRules(
        mode=DriftMode(spec.mode or default),
        explicit=bool(spec.mode),
        exemptions=tuple(_exemption(number, one) for number, one in enumerate(spec.ignore)),
    )


def _exemption(number: int, ignore: DriftIgnore) -> Exemption:
    for pointer in ignore.paths:
        if pointer and not pointer.startswith("/"):
            msg = (
                f"spec.drift.ignore[{number}].paths: {pointer!r} is not a JSON pointer: "
                "it must begin with /"
            )
            raise ValueError(msg)
    target = ignore.target
    return Exemption(
        tuple(ignore.paths),
        group=target.group,
        version=target.version,
        kind=target.kind,
        name=target.name,
        namespace=target.namespace,
    )


def is_below(path: str, pointer: str) -> bool:
    """Whether a JSON pointer leads to a place or to something that holds it; `*` is any one step."""
    if pointer in {"", "/"}:
        return True
    steps, wanted = path.split("/"), pointer.rstrip("/").split("/")
    if len(steps) < len(wanted):
        return False
    return all(pattern in {"*", step} for step, pattern in zip(steps, wanted, strict=False))
