"""What an upgrade takes back from others, so that what they changed does not keep it from being made.

Where drift would be put back, an edit of the Release must not fail on the very change that a repair would undo.
"""

from dataclasses import dataclass

from pilothouse.core.drift import CERTIFIED, mode_for
from pilothouse.core.drift_rules import DriftMode, DriftRules
from pilothouse.core.observed import ObjectRef, Observed, Suspect
from pilothouse.core.policy import Policies

_WHOLE = frozenset({"", "/"})
_REPLICAS = "/spec/replicas"
# Wherever the kinds of CERTIFIED have a bundle.
_BUNDLES = (
    "/webhooks/*/clientConfig/caBundle",
    "/spec/caBundle",
    "/spec/conversion/webhook/clientConfig/caBundle",
)


@dataclass(frozen=True, slots=True)
class Left:
    """Places of one object that stay with whoever has them; `*` is any one step."""

    ref: ObjectRef
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Retake:
    """Take fields from other managers, but for what they may have."""

    leave: tuple[Left, ...] = ()


def retake(rules: DriftRules, policies: Policies, observed: Observed) -> Retake | None:
    """Return what an upgrade or a rollback takes back; None: a field of another manager is a conflict."""
    record, objects = observed.record, observed.objects
    if record is None or objects is None:
        return None  # who may have what cannot be told before the objects have been seen
    if mode_for(rules, policies, record) is not DriftMode.CORRECT:
        return None
    kept = [Left(one.ref, _theirs(rules, one)) for one in objects.suspects]
    if any(_WHOLE & set(one.paths) for one in kept):
        return None  # an object cannot be applied and be left alone as a whole
    return Retake(tuple(one for one in kept if one.paths))


def blindfold(rules: DriftRules, policies: Policies, observed: Observed) -> bool:
    """Whether fields would be taken back, were the objects seen: then a conflict must not make a revision."""
    record = observed.record
    if record is None or observed.objects is not None:
        return False
    return mode_for(rules, policies, record) is DriftMode.CORRECT


def _theirs(rules: DriftRules, suspect: Suspect) -> tuple[str, ...]:
    ref = suspect.ref
    exempt = [
        path
        for one in rules.exemptions
        if one.concerns(ref.api_version, ref.kind, ref.namespace, ref.name)
        for path in one.paths
    ]
    if suspect.scaled:
        exempt.append(_REPLICAS)
    if ref.kind in CERTIFIED:
        exempt.extend(_BUNDLES)
    return tuple(dict.fromkeys(exempt))
