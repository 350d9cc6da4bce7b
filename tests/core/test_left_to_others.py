"""What an upgrade leaves as others have it, and what it takes."""

from dataclasses import replace

import pytest
from make import release

from pilothouse.core.desired import desired
from pilothouse.core.drift import left_to_others
from pilothouse.core.drift_rules import DriftMode, DriftRules, Exemption
from pilothouse.core.plan import Rollback, Uninstall, Upgrade
from pilothouse.engine.run_codec import run_request
from pilothouse.ports import Order

REPLICAS = Exemption(("/spec/replicas",), kind="Deployment", name="web-*")


def test_the_rules_of_a_release_and_injected_certificates_are_left() -> None:
    left = left_to_others(DriftRules(exemptions=(REPLICAS,)))
    assert left[0] == REPLICAS
    for api_version, kind, path in [
        (
            "admissionregistration.k8s.io/v1",
            "ValidatingWebhookConfiguration",
            "/webhooks/1/clientConfig/caBundle",
        ),
        ("apiregistration.k8s.io/v1", "APIService", "/spec/caBundle"),
    ]:
        assert any(one.covers(api_version, kind, "", "any", path) for one in left)
    assert not any(one.covers("v1", "ConfigMap", "", "any", "/data/caBundle") for one in left)


@pytest.mark.parametrize("mode", list(DriftMode))
def test_the_rest_is_taken_only_where_drift_is_put_back(mode: DriftMode) -> None:
    wanted = replace(desired(release()), drift=DriftRules(mode, exemptions=(REPLICAS,)))
    for plan in (Upgrade("newer"), Rollback(1, "digest", "failed")):
        around = run_request(Order(wanted, plan)).around
        assert around.force_rest == (mode is DriftMode.CORRECT)
        assert around.leave_scaled
        assert (around.leave[0].kind, around.leave[0].name) == ("Deployment", "web-*")
        assert list(around.leave[0].paths) == ["/spec/replicas"]


def test_nothing_is_said_of_it_where_nothing_is_applied() -> None:
    assert not run_request(Order(desired(release()), Uninstall("gone"))).HasField("around")
