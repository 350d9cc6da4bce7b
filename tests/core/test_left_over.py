"""A name that was filled in for a url goes when the url does, unless somebody means it."""

import msgspec
import pytest
from make import release

from pilothouse.api.release import ChartSpec, Release
from pilothouse.api.status import DeployedChart, ReleaseStatus
from pilothouse.core.left_over import Author, Written, is_left_over, may_be_left_over

URL = "https://host/tiny-1.0.0.tgz"
ITSELF = ChartSpec(repository="oci://host/charts/tiny", name="tiny")
BESIDE = ChartSpec(repository="oci://host/charts", name="tiny")
OTHER = ChartSpec(repository="oci://host/charts/other", name="tiny")
US = Author("pilothouse", frozenset({"name"}))
EDITOR = Author("kubectl-edit", frozenset({"repository"}))
DECLARES = Author("argocd", frozenset({"repository"}), applies=True)
MEANS_IT = Author("argocd", frozenset({"repository", "name"}), applies=True)


def applied(chart: ChartSpec, *authors: Author, **more: str) -> Written:
    return Written((US, *authors), {"repository": chart.repository, **more})


@pytest.mark.parametrize(
    ("chart", "written", "stale"),
    [
        pytest.param(ITSELF, Written((US, DECLARES)), True, id="applied without it"),
        pytest.param(OTHER, Written((US, DECLARES)), True, id="of another chart"),
        pytest.param(BESIDE, Written((US, MEANS_IT)), False, id="applied with it"),
        pytest.param(ITSELF, Written((US, MEANS_IT)), False, id="twice in the address"),
        pytest.param(OTHER, applied(OTHER, EDITOR), True, id="kubectl apply without it"),
        # The name was there already, so that apply changed nothing about it.
        pytest.param(BESIDE, applied(BESIDE, EDITOR, name="tiny"), False, id="kubectl apply"),
        pytest.param(BESIDE, applied(OTHER, EDITOR), False, id="edited after an apply"),
        pytest.param(BESIDE, Written((US, EDITOR)), False, id="left in on purpose, maybe"),
        # As oci://public.ecr.aws/karpenter has a chart karpenter.
        pytest.param(ITSELF, Written((US, EDITOR)), False, id="edited, and the address has it"),
        pytest.param(ITSELF, Written((EDITOR,)), False, id="nobody knows"),
    ],
)
def test_whose_the_name_is(chart: ChartSpec, written: Written, stale: bool) -> None:  # noqa: FBT001
    assert is_left_over(chart, written) is stale


def changed_to(chart: ChartSpec, source: str = URL) -> Release:
    one = release(status=ReleaseStatus(chart=DeployedChart(source=source)))
    wanted = msgspec.structs.replace(one.spec.for_provider, chart=chart)
    spec = msgspec.structs.replace(one.spec, for_provider=wanted)
    return msgspec.structs.replace(one, spec=spec)


def test_it_is_asked_only_while_another_chart_is_deployed() -> None:
    assert may_be_left_over(changed_to(ITSELF))
    assert not may_be_left_over(changed_to(BESIDE, "oci://host/charts/tiny"))
    assert not may_be_left_over(changed_to(BESIDE, ""))
    for chart in (
        ChartSpec(url=URL, name="tiny"),
        ChartSpec(repository="oci://host/charts/tiny"),
        ChartSpec(repository="https://host", name="tiny"),  # nothing without a name
    ):
        assert not may_be_left_over(changed_to(chart))
