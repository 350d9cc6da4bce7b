"""Every way to name a chart that admission lets pass is understood; see tests/flow/test_admission.py."""

import msgspec
import pytest
from make import release

from pilothouse.api.release import ChartSpec, Release, UpgradeSpec
from pilothouse.core.desired import desired, needs_version
from pilothouse.core.versions import follow

SPLIT = ("oci://host/charts", "shop", "")


def from_chart(policies: list[str] | None = None, **fields: str) -> Release:
    asked = release(policies=policies)
    parameters = msgspec.structs.replace(asked.spec.for_provider, chart=ChartSpec(**fields))
    spec = msgspec.structs.replace(asked.spec, for_provider=parameters, upgrade=UpgradeSpec())
    return msgspec.structs.replace(asked, spec=spec)


@pytest.mark.parametrize(
    ("fields", "means"),
    [
        ({"repository": "oci://host/charts", "name": "shop"}, SPLIT),
        ({"repository": "oci://host/charts/shop"}, SPLIT),
        ({"repository": "oci://host/charts/shop/"}, SPLIT),
        ({"name": "oci://host/charts/shop"}, SPLIT),
        ({"repository": "oci://host:5000/shop"}, ("oci://host:5000", "shop", "")),
        ({"repository": "oci://host/shop:1.0.0"}, ("", "", "oci://host/shop:1.0.0")),
        ({"name": "oci://host/shop@sha256:ab"}, ("", "", "oci://host/shop@sha256:ab")),
        ({"name": "https://host/shop-1.0.0.tgz"}, ("", "", "https://host/shop-1.0.0.tgz")),
        ({"repository": "https://host", "name": "shop"}, ("https://host", "shop", "")),
    ],
)
def test_an_address_may_stand_for_the_chart(fields, means):
    asked = from_chart(**fields)
    chart = desired(asked).chart
    assert (chart.repository, chart.name, chart.url) == means
    # Where there are versions to choose from they are asked for, and only there.
    assert needs_version(desired(asked)) is not bool(chart.url)
    assert bool(follow(asked)) is not bool(chart.url)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"name": "shop"},
        {"repository": "https://host/charts/shop"},
        {"repository": "oci://host"},
        {"repository": "oci://host/"},
    ],
)
def test_no_chart_is_enough_only_to_look(fields):
    with pytest.raises(ValueError, match="give repository and name, or url, or git, or inline"):
        desired(from_chart(**fields))
    with pytest.raises(ValueError, match="give repository and name"):
        desired(from_chart(["Observe", "Delete"], **fields))
    for policies in (["Observe"], ["Observe", "LateInitialize"], []):
        asked = from_chart(policies, **fields)
        assert follow(asked) is None
        assert desired(asked)
    for policies in (["Observe"], ["Observe", "LateInitialize"]):
        assert not needs_version(desired(from_chart(policies)))
