"""How what happened is told: the words of Events, and the lines of the archive."""

from dataclasses import replace
from datetime import datetime

from pilothouse.api.release import Release
from pilothouse.core.conditions import moment
from pilothouse.core.decide import asked_for
from pilothouse.core.desired import ReleaseName
from pilothouse.core.hooks import as_text
from pilothouse.core.observed import Observed
from pilothouse.core.outcome import Ended, Entry, Fault, Notice, Outcome
from pilothouse.core.plan import Install, Rollback, RunTests, Uninstall, Unlock, Upgrade, name_of
from pilothouse.faults import FaultKind

# The words of crossplane-runtime, which tools already look for.
DONE = {
    "Install": "CreatedExternalResource",
    "Upgrade": "UpdatedExternalResource",
    "Uninstall": "DeletedExternalResource",
    "Unlock": "RecoveredExternalResource",
    "Rollback": "RolledBackExternalResource",
}
FAILED_TO = {
    "Install": "CannotCreateExternalResource",
    "Upgrade": "CannotUpdateExternalResource",
    "Uninstall": "CannotDeleteExternalResource",
    "Unlock": "CannotUpdateExternalResource",
    "Rollback": "CannotRollBackExternalResource",
    "Verify": "CannotVerifyExternalResource",
}


def describe(ended: Ended) -> str:
    """Say what an action came to."""
    desired, plan, record = ended.desired, ended.plan, ended.outcome.record
    chart = f"{record.chart_name} {record.chart_version}" if record else ""
    notes = "".join(f"; note: {one}" for one in ended.outcome.warnings)
    match plan:
        case Install():
            return f"installed {chart} as {desired.release}{notes}"
        case Rollback(revision=to):
            return f"rolled {desired.release} back to revision {to}: {plan.reason}"
        case Uninstall():
            return f"uninstalled {desired.release}: {plan.reason}"
        case Unlock(revision=revision):
            return f"cleared revision {revision} of {desired.release}: {plan.reason}"
        case RunTests(revision=revision):
            return f"tested revision {revision} of {desired.release}"
        case Upgrade():
            revision = record.revision if record else 0
            return (
                f"upgraded {desired.release} to {chart}, revision {revision}: {plan.reason}{notes}"
            )


def entry_of(release: Release, ended: Ended, now: datetime) -> Entry:
    """Return the archive's line for an action."""
    desired, plan, outcome = ended.desired, ended.plan, ended.outcome
    record = outcome.record
    started = moment(release.status.last_attempt.started) or now
    return Entry(
        release=release.metadata.uid,
        cluster=ended.errand.cluster,
        helm_release=str(desired.release),
        action=name_of(plan),
        reason=plan.reason,
        digest=asked_for(desired),
        revision=record.revision if record else 0,
        chart=f"{record.chart_name} {record.chart_version}".strip() if record else "",
        error=outcome.fault.message if outcome.fault else "",
        started=started,
        finished=now,
        logs=as_text(outcome.logs),
    )


def superseded(release: Release, ended: Ended, observed: Observed, now: datetime) -> Entry | None:
    """Keep what became of a revision whose wait a newer spec has ended."""
    fault = ended.outcome.fault
    if fault is None or fault.kind is not FaultKind.CANCELLED:
        return None
    said = f"the wait was ended: superseded by generation {release.metadata.generation}"
    outcome = Outcome(ended.outcome.record or observed.record, Fault(fault.kind, said))
    return entry_of(release, replace(ended, outcome=outcome), now)


def left_behind(before: ReleaseName, after: ReleaseName) -> Notice:
    """Say that a changed name or namespace does not move a Helm release."""
    said = (
        f"stands for the Helm release {after} now and leaves {before} as it is: "
        f"remove that with `helm uninstall {before.name} -n {before.namespace}`, or change the Release back"
    )
    return Notice("LeftExternalResource", said, warning=True)
