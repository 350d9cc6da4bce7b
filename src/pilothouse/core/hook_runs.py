"""Which hooks of the chart ran in the newest action, and how they ended."""

from collections.abc import Iterable, Mapping

from pilothouse.api.status import HookRun
from pilothouse.core.conditions import timestamp
from pilothouse.core.outcome import Ended, HookResult
from pilothouse.core.plan import Install, Rollback, Upgrade

SUCCEEDED, FAILED = "Succeeded", "Failed"
MOST_HOOKS = 20
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
            return told
    logs = {one.hook: one.text for one in outcome.logs}
    return _worst_first(_run(one, logs) for one in outcome.hooks)


def _worst_first(runs: Iterable[HookRun]) -> list[HookRun]:
    return sorted(runs, key=lambda one: one.phase != FAILED)[:MOST_HOOKS]


def _run(one: HookResult, logs: Mapping[str, str]) -> HookRun:
    kind, _, name = one.hook.partition(" ")
    # Helm does not know how a hook ended that it could not follow to its end: it did not succeed.
    phase = SUCCEEDED if one.phase == SUCCEEDED else FAILED
    return HookRun(
        kind=kind[:LONGEST_KIND],
        name=name[:LONGEST_NAME],
        events=list(one.events),
        phase=phase,
        started=timestamp(one.started) if one.started else None,
        finished=timestamp(one.finished) if one.finished else None,
        log=logs.get(one.hook, "") if phase == FAILED else "",
    )
