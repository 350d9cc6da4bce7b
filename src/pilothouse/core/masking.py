"""Take out of what an action said, and of why it was done, what came from a Secret."""

from collections.abc import Collection
from dataclasses import replace

from pilothouse.core.hooks import with_tail, without_secrets
from pilothouse.core.outcome import Ended, Fault, Outcome
from pilothouse.core.redact import redact


def masked(outcome: Outcome, secrets: Collection[str]) -> Outcome:
    """Return an outcome that may be shown and remembered."""
    if not secrets:
        return outcome
    record, fault = outcome.record, outcome.fault
    return replace(
        outcome,
        record=record and replace(record, description=redact(record.description, secrets)),
        fault=fault and Fault(fault.kind, redact(fault.message, secrets)),
        logs=without_secrets(outcome.logs, secrets),
        hooks=tuple(replace(one, hook=redact(one.hook, secrets)) for one in outcome.hooks),
        warnings=tuple(redact(one, secrets) for one in outcome.warnings),
    )


def redacted(ended: Ended) -> Ended:
    """Return an action that may be told: the reason for it too, and with the end of what its hooks said."""
    secrets = ended.desired.secrets
    outcome = masked(ended.outcome, secrets)
    if outcome.fault:
        outcome = replace(outcome, fault=with_tail(outcome.fault, outcome.logs))
    plan = replace(ended.plan, reason=redact(ended.plan.reason, secrets))
    return replace(ended, plan=plan, outcome=outcome)
