"""Protobuf to core values and back: actions."""

import msgspec

from pilothouse.core.desired import Desired
from pilothouse.core.drift import left_to_others
from pilothouse.core.drift_rules import DriftMode
from pilothouse.core.observed import HookResult
from pilothouse.core.outcome import HookLog, Outcome
from pilothouse.core.plan import Action, Install, Rollback, RunTests, Uninstall, Unlock, Upgrade
from pilothouse.engine.codec import fault, moment, record
from pilothouse.engine.v1 import engine_pb2 as pb
from pilothouse.ports import (
    Order,
    Progress,
)


def run_request(order: Order) -> pb.RunRequest:
    """Turn an order into the engine's words."""
    desired = order.desired
    request = pb.RunRequest(
        action=_action(order.plan),
        namespace=desired.release.namespace,
        name=desired.release.name,
        stamp_digest=desired.digest,
        stamp_owner=order.owner,
        wait=desired.wait,
        timeout_ms=int(desired.timeout.total_seconds() * 1000),
        max_history=desired.max_history,
    )
    match order.plan:
        case Unlock(revision=revision) | RunTests(revision=revision):
            request.revision = revision
        case Rollback(revision=revision, digest=digest, source=source):
            request.revision = revision
            request.stamp_source = source
            # The revision keeps the digest of what it was made from, or a failed spec would look done.
            request.stamp_digest = digest
            request.force_conflicts = desired.force_conflicts
            request.around.CopyFrom(_around(desired))
        case Install(preflight=preflight) | Upgrade(preflight=preflight):
            request.chart_digest = order.chart_digest
            request.values = msgspec.json.encode(desired.values)
            request.preflight = preflight
            request.skip_crds = desired.skip_crds
            request.take_ownership = desired.take_ownership
            request.force_conflicts = desired.force_conflicts
            request.patches.extend(desired.patches)
            request.chart_annotations.update(dict(desired.patch_annotations))
            request.kustomization = desired.kustomization.encode()
            git = desired.chart.git
            request.stamp_source = git.stamp if git else order.chart_digest
            request.around.CopyFrom(_around(desired))
        case Uninstall():
            pass
    return request


def _around(desired: Desired) -> pb.Around:
    """Say what others may keep of what an upgrade sets, and whether it takes the rest."""
    rules = desired.drift
    return pb.Around(
        leave=[
            pb.Exemption(
                paths=one.paths,
                group=one.group,
                version=one.version,
                kind=one.kind,
                namespace=one.namespace,
                name=one.name,
            )
            for one in left_to_others(rules)
        ],
        leave_scaled=True,
        force_rest=rules.mode is DriftMode.CORRECT,
    )


def _action(plan: Action) -> pb.RunRequest.Action:
    match plan:
        case Install():
            return pb.RunRequest.INSTALL
        case Upgrade():
            return pb.RunRequest.UPGRADE
        case Uninstall():
            return pb.RunRequest.UNINSTALL
        case Unlock():
            return pb.RunRequest.UNLOCK
        case Rollback():
            return pb.RunRequest.ROLLBACK
        case RunTests():
            return pb.RunRequest.TEST


def run_event(event: pb.RunEvent) -> Progress | Outcome:
    """Read one step of an action, or its end."""
    if event.WhichOneof("event") == "progress":
        progress = event.progress
        return Progress(
            progress.message,
            waiting=progress.phase == pb.Progress.WAITING,
            hooks=tuple(_hook(one) for one in progress.hooks),
        )
    outcome = event.outcome
    return Outcome(
        record=record(outcome.record) if outcome.HasField("record") else None,
        fault=fault(outcome.fault) if outcome.HasField("fault") else None,
        logs=tuple(HookLog(one.hook, one.text, one.missing) for one in outcome.logs),
        tests=tuple(_hook(one) for one in outcome.tests),
        hooks=tuple(_hook(one) for one in outcome.hooks),
    )


def _hook(one: pb.HookResult) -> HookResult:
    return HookResult(
        hook=one.hook,
        phase=one.phase,
        started=moment(one.started_unix_ms),
        finished=moment(one.finished_unix_ms),
        events=tuple(one.events),
    )
