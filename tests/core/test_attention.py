"""How a Release wants to be looked at."""

import msgspec
import pytest
from make import release

from pilothouse.api.health import ExternalObject, HealthCheck
from pilothouse.core.attention import Attention, attention_to
from pilothouse.core.desired import desired
from pilothouse.core.observed import ObjectRef

CANARY = ExternalObject(api_version="flagger.app/v1beta1", kind="Canary", name="shop")


def asking(*, deleted: bool = False, **spec) -> Attention:
    found = release(deleted=deleted)
    found = msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, **spec))
    return attention_to(found, desired(found))


def test_a_plain_release_has_no_token() -> None:
    assert asking().token == ""


def test_an_external_object_is_in_the_releases_namespace_unless_it_says_otherwise() -> None:
    elsewhere = msgspec.structs.replace(CANARY, namespace="other")
    asked = asking(external_status=[CANARY, elsewhere])
    assert asked.external == (
        ObjectRef("flagger.app/v1beta1", "Canary", "web", "shop"),
        ObjectRef("flagger.app/v1beta1", "Canary", "other", "shop"),
    )
    assert asked.token
    assert asked.token != asking(external_status=[CANARY]).token


def test_a_check_names_the_fields_of_its_expressions() -> None:
    check = HealthCheck(api_version="v1", kind="Thing", current="a", failed="b")
    (found,) = asking(health_checks=[check]).checks
    assert found.expressions() == [
        ("spec.healthChecks[0].current", "a"),
        ("spec.healthChecks[0].failed", "b"),
    ]


def test_a_check_that_says_nothing_is_refused() -> None:
    check = HealthCheck(api_version="v1", kind="Thing")
    with pytest.raises(ValueError, match=r"spec\.healthChecks\[0\]: give current or failed"):
        asking(health_checks=[check])
    assert asking(health_checks=[check], deleted=True).token == "", "nothing keeps it from going"
