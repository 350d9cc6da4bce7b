"""What an upgrade takes back from others: what a repair would, and nothing that they may have."""

from dataclasses import replace

import pytest
from make import objects, record

from pilothouse.core.drift_rules import DriftMode, DriftRules, Exemption
from pilothouse.core.observed import ObjectRef, Observed, Suspect
from pilothouse.core.policy import Policies
from pilothouse.core.retake import Left, Retake, retake

WEB = ObjectRef("apps/v1", "Deployment", "web", "web")
HOOK = ObjectRef("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "checks")
RULES, ALL = DriftRules(), Policies()


def seen(*suspects: Suspect, status: str = "deployed", digest: str = "d") -> Observed:
    return Observed(
        record=record(2, status, digest), objects=replace(objects(2), suspects=suspects)
    )


@pytest.mark.parametrize("status", ["deployed", "failed"])
def test_what_would_be_put_back_is_taken(status: str) -> None:
    assert retake(RULES, ALL, seen(status=status)) == Retake()
    assert retake(RULES, ALL, seen(Suspect(WEB, 5), status=status)) == Retake()


@pytest.mark.parametrize(
    ("rules", "observed"),
    [
        (DriftRules(DriftMode.WARN), seen()),
        (DriftRules(DriftMode.IGNORE), seen()),
        (RULES, seen(digest="")),  # what another client deployed is only told
        (RULES, replace(seen(), objects=None)),
        (RULES, Observed()),
        (DriftRules(exemptions=(Exemption(("",), kind="Deployment"),)), seen(Suspect(WEB, 5))),
    ],
)
def test_otherwise_it_is_a_conflict(rules: DriftRules, observed: Observed) -> None:
    assert retake(rules, ALL, observed) is None


def test_what_others_may_have_is_left() -> None:
    rules = DriftRules(
        exemptions=(
            Exemption(("/spec/paused", "/spec/replicas"), kind="Deployment"),
            Exemption(("/data",), kind="Secret"),
        )
    )
    left = Left(WEB, ("/spec/paused", "/spec/replicas"))
    assert retake(rules, ALL, seen(Suspect(WEB, 5, scaled=True))) == Retake((left,))
    scaled = Suspect(WEB, 5, scaled=True)
    assert retake(RULES, ALL, seen(scaled)) == Retake((Left(WEB, ("/spec/replicas",)),))


def test_an_injected_bundle_is_left() -> None:
    found = retake(RULES, ALL, seen(Suspect(HOOK, 5)))
    assert found
    assert "/webhooks/*/clientConfig/caBundle" in found.leave[0].paths
