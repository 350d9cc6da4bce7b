"""What a user left open is filled in once, after it was deployed."""

from dataclasses import replace

import msgspec
import pytest
from make import record, release

from pilothouse.api.chart import GitReference, GitSpec
from pilothouse.api.release import ChartSpec, Release, UpgradeSpec
from pilothouse.api.status import DeployedChart, ReleaseStatus
from pilothouse.core.desired import desired
from pilothouse.core.late import left_open
from pilothouse.core.outcome import Ended, Fault, Outcome
from pilothouse.core.plan import Install, Rollback, Unlock, Upgrade
from pilothouse.faults import FaultKind

PLACE = "http://127.0.0.1:1/charts"
URL = "http://127.0.0.1:1/tiny-2.0.0.tgz"
INSTALL = Install("not installed")
MADE = record(1, chart_name="tiny", chart_version="2.0.0")
NOTED = ReleaseStatus(chart=DeployedChart(source=f"{PLACE}/tiny", version="2.0.0"))


def asking(chart: ChartSpec, upgrade: UpgradeSpec | None = None, **more) -> Release:
    one = release(**more)
    wanted = msgspec.structs.replace(one.spec.for_provider, chart=chart)
    spec = msgspec.structs.replace(one.spec, for_provider=wanted, upgrade=upgrade)
    return msgspec.structs.replace(one, spec=spec)


def filled(one: Release, plan=INSTALL, outcome: Outcome | None = None, asked=None):
    asked = asked or one
    chart = asked.spec.for_provider.chart
    named = chart.url or chart.inline or chart.git or chart.version
    made = desired(asked, version="" if named else "2.0.0")
    ended = Ended(made, plan, outcome or Outcome(record=MADE))
    return left_open(one, desired(one), ended)


OPEN = ChartSpec(repository=PLACE, name="tiny")


@pytest.mark.parametrize(
    ("one", "fields"),
    [
        pytest.param(asking(OPEN), {"version": "2.0.0"}, id="no version"),
        pytest.param(
            asking(ChartSpec(repository=PLACE, name="tiny", version="2.0.0")), {}, id="all is named"
        ),
        pytest.param(asking(ChartSpec(url=URL)), {"name": "tiny"}, id="an address says no name"),
        pytest.param(asking(ChartSpec(url=URL, name="mine")), {}, id="a name of the user's own"),
        pytest.param(
            asking(ChartSpec(repository="oci://host/charts/tiny")),
            {"version": "2.0.0"},
            id="a name would be part of the address",
        ),
        pytest.param(
            asking(ChartSpec(git=GitSpec(url="https://x/y", ref=GitReference(branch="main")))),
            {},
            id="git",
        ),
        pytest.param(asking(ChartSpec(inline="eA==")), {}, id="inline"),
        pytest.param(
            asking(ChartSpec(repository=PLACE, name="tiny", digest=f"sha256:{'a' * 64}")),
            {},
            id="a digest says it all",
        ),
        pytest.param(asking(OPEN, UpgradeSpec(automatic=True)), {}, id="who follows names none"),
        pytest.param(asking(OPEN, UpgradeSpec()), {"version": "2.0.0"}, id="who is only told"),
        pytest.param(asking(OPEN, policies=["Observe", "Create"]), {}, id="not allowed"),
        pytest.param(asking(OPEN, deleted=True), {}, id="it goes"),
        pytest.param(asking(OPEN, status=NOTED), {}, id="a tool emptied it again"),
    ],
)
def test_what_is_filled_in(one, fields):
    assert filled(one) == fields


def test_only_what_was_deployed_is_filled_in():
    one = asking(OPEN)
    assert filled(one, Upgrade("retry")) == {"version": "2.0.0"}
    for fault in (Fault(FaultKind.RENDER, "x"), Fault(FaultKind.HOOK, "x")):
        assert filled(one, outcome=Outcome(record=MADE, fault=fault)) == {}
    assert filled(one, outcome=Outcome()) == {}
    for undone in (Rollback(1, "d", "failed"), Unlock(1, "interrupted")):
        assert filled(one, undone) == {}


def test_another_chart_that_was_asked_for_meanwhile_is_left_alone():
    other = asking(replace_name("other"))
    assert filled(other, asked=asking(OPEN)) == {}


def test_the_next_chart_is_filled_in_too():
    other = asking(replace_name("other"), status=NOTED)
    made = replace(MADE, chart_name="other")
    assert filled(other, Upgrade("x"), Outcome(record=made)) == {"version": "2.0.0"}


def replace_name(name: str) -> ChartSpec:
    return msgspec.structs.replace(OPEN, name=name)
