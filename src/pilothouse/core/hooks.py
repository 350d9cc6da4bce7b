"""What failed hooks said last, without what came from a Secret."""

from collections.abc import Collection, Iterable

from pilothouse.core.outcome import Fault, HookLog
from pilothouse.core.redact import redact

# What of it goes into a condition and an Event; the archive keeps all that was read.
MESSAGE_LINES = 3
MESSAGE_LENGTH = 300


def without_secrets(logs: Iterable[HookLog], secrets: Collection[str]) -> tuple[HookLog, ...]:
    """Return the logs with every secret masked."""
    return tuple(
        HookLog(*(redact(said, secrets) for said in (one.hook, one.text, one.missing)))
        for one in logs
    )


def with_tail(fault: Fault, logs: Iterable[HookLog]) -> Fault:
    """Return the fault with the last lines of the log in its sentence."""
    lines = [line.strip() for one in logs for line in one.text.splitlines() if line.strip()]
    if not lines:
        return fault
    said = " ⏎ ".join(lines[-MESSAGE_LINES:])
    if len(said) > MESSAGE_LENGTH:
        said = "…" + said[-MESSAGE_LENGTH + 1 :]
    return Fault(fault.kind, f"{fault.message}; its log ends: {said}")


def as_text(logs: Iterable[HookLog]) -> str:
    """Return what the archive keeps."""
    return "\n\n".join(
        f"{one.hook}:\n{one.text}" if not one.missing else f"{one.hook}: no log: {one.missing}"
        for one in logs
    )
