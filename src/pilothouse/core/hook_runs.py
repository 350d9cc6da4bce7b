"""Which hooks of the chart ran in the newest action, and how they ended."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import msgspec

from pilothouse.api.release import Release
from pilothouse.api.status import HookRun
from pilothouse.core.conditions import timestamp
from pilothouse.core.observed import HookResult, Running
from pilothouse.core.outcome import Ended
from pilothouse.core.plan import Install, Rollback, Upgrade
from pilothouse.core.redact import redact

RUNNING, SUCCEEDED, FAILED = "Running", "Succeeded", "Failed"
MOST_HOOKS = 20
# What is over and well is what is left out where there are more.
_TOLD_FIRST = {FAILED: 0, RUNNING: 1}
# As long as Kubernetes lets them be; a hook whose object it refused may have longer ones.
LONGEST_KIND, LONGEST_NAME = 63, 253


def hooks_after(told: list[HookRun], ended: Ended) -> list[HookRun]:
    """Return what to tell of hooks when an action has ended, of which secrets are masked already."""
    outcome = ended.outcome
    match ended.plan:
        case Install() | Upgrade():
            pass
        # A failed hook that made it go back is still the reason why the spec is not deployed.
        case Rollback() if outcome.hooks:
            pass
        case _:
            return over(told)
    logs = {one.hook: one.text for one in outcome.logs}
    return _worst_first(_run(one, logs) for one in outcome.hooks)


def hooks_of(running: Running, secrets: Collection[str]) -> list[HookRun]:
    """Return what to tell of the hooks of an action that has not ended."""
    begun = (replace(one, hook=redact(one.hook, secrets)) for one in running.hooks)
    return _worst_first(
        _run(one if one.finished else replace(one, phase=RUNNING), {}) for one in begun
    )


def over(told: list[HookRun]) -> list[HookRun]:
    """Return them without those that were told to run: whoever knows how they ended tells that."""
    return [one for one in told if one.phase != RUNNING]


def without_running(release: Release) -> Release:
    """Return the Release as it is when no action is under way, or none that says what it does."""
    told = release.status.hooks
    if len(over(told)) == len(told):
        return release
    status = msgspec.structs.replace(release.status, hooks=over(told))
    return msgspec.structs.replace(release, status=status)


def _worst_first(runs: Iterable[HookRun]) -> list[HookRun]:
    return sorted(runs, key=lambda one: _TOLD_FIRST.get(one.phase, 2))[:MOST_HOOKS]


def _run(one: HookResult, logs: Mapping[str, str]) -> HookRun:
    kind, _, name = one.hook.partition(" ")
    # Helm does not know how a hook ended that it could not follow to its end: it did not succeed.
    phase = one.phase if one.phase in {RUNNING, SUCCEEDED} else FAILED
    return HookRun(
        kind=kind[:LONGEST_KIND],
        name=name[:LONGEST_NAME],
        events=list(one.events),
        phase=phase,
        started=timestamp(one.started) if one.started else None,
        finished=timestamp(one.finished) if one.finished else None,
        log=logs.get(one.hook, "") if phase == FAILED else "",
    )
