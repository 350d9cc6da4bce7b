"""What other Helm clients make of a release that was ours: one row each, the id is the rule."""

from dataclasses import replace

import msgspec
import pytest
from make import NOW, record, release

from pilothouse.api.status import DeployedChart
from pilothouse.core.by_hand import last_good, stamps_of, with_stamp
from pilothouse.core.conclude import conclude_action
from pilothouse.core.decide import decide
from pilothouse.core.desired import ChartAsk, Sources, desired
from pilothouse.core.observed import Decoded, Observed
from pilothouse.core.outcome import Ended, Outcome
from pilothouse.core.plan import Plan, Rest, Upgrade
from pilothouse.core.resting import conclude_quiet
from pilothouse.core.retry import Attempts
from pilothouse.core.state import StateName, classify

URL = "http://127.0.0.1:1/tiny-1.1.0.tgz"
VALUES = {"message": "hello"}
PLAIN = desired(release(VALUES))
PATCHED = desired(release(VALUES), Sources(values=VALUES, patches_sha="new"))
BY_URL = replace(PLAIN, chart=ChartAsk("", "", "", url=URL), digest="by-url")
INLINE = replace(PLAIN, chart=ChartAsk("", "", "", inline=b"packed"), digest="inline")
FROM_URL = DeployedChart(source=URL, version="1.1.0", digest="sha256:1")
FROM_SPEC = DeployedChart(source="inline", version="1.1.0", digest="sha256:1")
OURS = DeployedChart(source="http://127.0.0.1:1/charts/tiny", version="1.0.0", digest="sha256:1")
IN_SYNC = Rest("deployed")


def plan_for(wanted, **seen) -> Plan:
    observed = Observed(record=record(3, "deployed"), **seen)
    return decide(wanted, observed, classify(wanted, observed, NOW), Attempts(), NOW)


def found(version: str = "1.1.0", *, name: str = "tiny", said: str = "Upgrade complete") -> Decoded:
    return Decoded(3, name, version, VALUES, said)


def back_at(revision: int, version: str = "1.1.0") -> Decoded:
    return found(version, said=f"Rollback to {revision}")


@pytest.mark.parametrize(
    ("wanted", "seen", "plan"),
    [
        pytest.param(
            BY_URL,
            {"decoded": found("1.0.0"), "noted": FROM_URL},
            Upgrade("chart version: 1.0.0 is deployed, 1.1.0 is asked for"),
            id="by url, another version than ours: upgrade, saying which",
        ),
        pytest.param(
            INLINE,
            {"decoded": found("1.0.0"), "noted": FROM_SPEC},
            Upgrade("chart version: 1.0.0 is deployed, 1.1.0 is asked for"),
            id="inline, another version than ours: upgrade, saying which",
        ),
        pytest.param(
            BY_URL,
            {"decoded": found("v1.1.0"), "noted": FROM_URL, "stamps": {1: "old"}},
            IN_SYNC,
            id="by url, the version that was ours: adopted as it is",
        ),
        pytest.param(
            BY_URL,
            {"decoded": found("1.0.0"), "noted": msgspec.structs.replace(FROM_URL, digest="")},
            IN_SYNC,
            id="by url, never deployed by us: adopted as it is",
        ),
        pytest.param(
            BY_URL,
            {"decoded": found(), "noted": msgspec.structs.replace(FROM_URL, source=f"{URL}.old")},
            Upgrade(f"chart {URL}.old → {URL}"),
            id="by url, another address than was deployed: nobody knows what is there",
        ),
        pytest.param(
            replace(BY_URL, chart=replace(BY_URL.chart, name="tiny")),
            {"decoded": found(name="other"), "noted": FROM_URL},
            Upgrade("chart other → tiny"),
            id="by url, another chart than the one filled in: upgrade",
        ),
        pytest.param(
            PATCHED,
            {"decoded": found("1.0.0"), "patches_sha": "new"},
            IN_SYNC,
            id="provider-helm's, with the patches its status tells: adopted as it is",
        ),
        pytest.param(
            PATCHED,
            {"decoded": found("1.0.0"), "patches_sha": "new", "noted": OURS},
            Upgrade("patches changed"),
            id="patches that the status tells are ours, not another client's",
        ),
        pytest.param(
            PATCHED,
            {"decoded": back_at(1, "1.0.0"), "patches_sha": "new", "stamps": {1: "old"}},
            Upgrade("patches changed"),
            id="rolled back to other patches: upgrade",
        ),
        pytest.param(
            PATCHED,
            {"decoded": back_at(1, "1.0.0"), "noted": OURS, "stamps": {1: PATCHED.digest}},
            IN_SYNC,
            id="rolled back to what is asked for, patches and all: adopted as it is",
        ),
        pytest.param(
            PLAIN,
            {"decoded": back_at(1, "1.0.0"), "noted": OURS, "stamps": {1: PATCHED.digest}},
            Upgrade(
                "rolled back by another Helm client to revision 1, which was made from another spec"
            ),
            id="rolled back to patches that are no longer asked for: upgrade",
        ),
        pytest.param(
            INLINE,
            {"decoded": back_at(2), "noted": FROM_SPEC},
            Upgrade(
                "rolled back by another Helm client to revision 2, "
                "which was not certainly made from this spec"
            ),
            id="rolled back to a revision whose stamp Helm took: upgrade",
        ),
        pytest.param(
            PLAIN,
            {"decoded": back_at(1, "1.0.0")},
            IN_SYNC,
            id="rolled back before it was ours: adopted as it is",
        ),
    ],
)
def test_revisions_of_others(wanted, seen, plan):
    assert plan_for(wanted, **seen) == plan


@pytest.mark.parametrize(
    "newest",
    [
        pytest.param(
            {"record": record(3, "deployed", owner="us"), "decoded": back_at(1, "1.0.0")},
            id="our own way back to what was adopted",
        ),
    ],
)
def test_what_is_ours_without_a_stamp_is_compared_by_what_we_know(newest) -> None:
    seen = {"record": record(3, "deployed"), "noted": OURS, "stamps": {2: "failed"}, **newest}
    observed = Observed(**seen, patches_sha="new")
    state = classify(PATCHED, observed, NOW)
    assert decide(PATCHED, observed, state, Attempts(), NOW) == IN_SYNC
    older = Observed(**seen, patches_sha="old")
    assert classify(PATCHED, older, NOW).reason == "patches changed"


def test_a_stamp_that_helm_test_took_off_is_known_from_the_status() -> None:
    """After a restart too: what a record and its values do not tell, patches and a kustomization, is not lost."""
    one = release(VALUES)
    wanted = replace(PATCHED, kustomization="namePrefix: a-", digest="with-both")
    made = Outcome(record=record(3, "deployed", wanted.digest), chart_digest="sha256:1")
    ended = Ended(wanted, Upgrade("changed"), made)
    noted = conclude_action(one, wanted, ended, Observed(), NOW).status.chart
    assert (noted.record, noted.stamp) == ("uid-3", "with-both")

    def state(newest, asked=wanted) -> StateName:
        observed = Observed(record=with_stamp(newest, noted), decoded=found("1.0.0"), noted=noted)
        return classify(asked, observed, NOW).name

    written_anew = record(3, "deployed")
    assert state(written_anew) is StateName.IN_SYNC
    assert state(written_anew, replace(wanted, digest="edited")) is StateName.OUT_OF_SYNC
    assert state(record(3, "deployed", uid="elsewhere")) is StateName.OUT_OF_SYNC
    assert state(record(3, "deployed", "stamped")) is StateName.OUT_OF_SYNC
    # A rollback of ours goes back to it with its stamp; what was uninstalled by hand is not ours to go on with.
    assert last_good([record(2, "superseded"), written_anew, record(4, "failed")]) == written_anew
    assert stamps_of([with_stamp(record(3, "superseded"), noted)]) == {3: "with-both"}
    assert with_stamp(record(3, "uninstalled"), noted).digest == ""


def test_a_lost_note_of_the_stamp_is_written_anew() -> None:
    one, seen = release(VALUES), Observed(record=record(3, "deployed", PATCHED.digest))
    status = conclude_quiet(one, PATCHED, seen, classify(PATCHED, seen, NOW), Rest(), NOW)
    assert (status.chart.record, status.chart.stamp) == ("uid-3", PATCHED.digest)
