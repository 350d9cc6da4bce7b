"""Which version is wanted, and what is said of others: one row for each rule."""

from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest
from make import record, release

from pilothouse.api.release import UpgradeSpec
from pilothouse.api.status import AtProvider, DeployedChart, ReleaseStatus
from pilothouse.core.desired import ChartAsk, Desired, Offer, desired
from pilothouse.core.observed import Decoded
from pilothouse.core.versions import (
    DEFAULT_INTERVAL,
    SHORTEST_INTERVAL,
    Follow,
    Found,
    choose,
    expected_digest,
    follow,
    held_version,
    is_exact,
    kept_to_deployed,
    must_look_inside,
    news,
    report,
    source_of,
    spread,
    without_answer,
)

SOURCE = "http://127.0.0.1:1/charts/tiny"
RANGE = Follow("~1.2", DEFAULT_INTERVAL, decides=True)
AUTOMATIC = replace(RANGE, automatic=True)
ONLY_TOLD = Follow("", DEFAULT_INTERVAL, decides=False)
FOUND = Found("1.2.5", held_fits=True, newer=True, held_digest="sha256:a")


def asking(version: str, upgrade: UpgradeSpec | None = None, **status):
    asked = release(version=version, status=ReleaseStatus(**status))
    return msgspec.structs.replace(asked, spec=msgspec.structs.replace(asked.spec, upgrade=upgrade))


@pytest.mark.parametrize(
    ("version", "exact"),
    [
        ("1.2.3", True),
        ("v1.2.3", True),
        (" 1.2.3 ", True),
        ("1.2.3-rc.1+build.7", True),
        ("1.2", False),
        ("~1.2.3", False),
        ("1.2.3 - 1.4.0", False),
        ("1.2.3-rc.1 || 2", False),
        ("1.2.x", False),
        ("*", False),
        ("latest", False),
        ("", False),
    ],
)
def test_exact_or_range(version, exact):
    assert is_exact(version) is exact


@pytest.mark.parametrize(
    ("version", "upgrade", "wants"),
    [
        pytest.param("1.0.0", None, None, id="exact: nobody is asked"),
        pytest.param("", None, None, id="empty: the latest once, then it stays"),
        pytest.param("~1.2", None, RANGE, id="a range is followed, and only reported"),
        pytest.param("~1.2", UpgradeSpec(automatic=True), AUTOMATIC, id="a range, automatically"),
        pytest.param("1.0.0", UpgradeSpec(), ONLY_TOLD, id="exact: told of newer ones if asked"),
        pytest.param("1.0.0", UpgradeSpec(automatic=True), ONLY_TOLD, id="exact is exact"),
        pytest.param(
            "",
            UpgradeSpec(automatic=True),
            Follow("", DEFAULT_INTERVAL, decides=True, automatic=True),
            id="empty and automatic: always the latest",
        ),
        pytest.param(
            "~1.2",
            UpgradeSpec(interval="1h"),
            replace(RANGE, interval=timedelta(hours=1)),
            id="as often as asked",
        ),
        pytest.param(
            "~1.2",
            UpgradeSpec(interval="1s"),
            replace(RANGE, interval=SHORTEST_INTERVAL),
            id="but not too often",
        ),
    ],
)
def test_what_is_asked_of_the_repository(version, upgrade, wants):
    assert follow(asking(version, upgrade)) == wants


def test_a_bad_interval_is_named():
    with pytest.raises(ValueError, match=r"spec\.upgrade\.interval"):
        follow(asking("~1.2", UpgradeSpec(interval="soon")))


@pytest.mark.parametrize("field", ["url", "digest", "inline"])
def test_what_names_one_chart_is_not_followed(field):
    asked = asking("~1.2", UpgradeSpec(automatic=True))
    chart = msgspec.structs.replace(asked.spec.for_provider.chart, **{field: "x"})
    parameters = msgspec.structs.replace(asked.spec.for_provider, chart=chart)
    spec = msgspec.structs.replace(asked.spec, for_provider=parameters)
    assert follow(msgspec.structs.replace(asked, spec=spec)) is None


@pytest.mark.parametrize(
    ("wants", "held", "found", "version", "available", "because"),
    [
        pytest.param(RANGE, "", FOUND, "1.2.5", "", "", id="nothing deployed: the newest"),
        pytest.param(RANGE, "1.2.0", FOUND, "1.2.0", "1.2.5", "", id="deployed and allowed stands"),
        pytest.param(
            *(AUTOMATIC, "1.2.0", FOUND, "1.2.5", ""),
            "chart 1.2.0 → 1.2.5: newer version in range ~1.2",
            id="automatic: the newest, and why",
        ),
        pytest.param(
            *(AUTOMATIC, "1.2.9", replace(FOUND, newer=False), "1.2.9", "", ""),
            id="a version that was taken back stays deployed",
        ),
        pytest.param(
            *(RANGE, "2.0.0", replace(FOUND, held_fits=False, newer=False), "1.2.5", "", ""),
            id="what the range does not allow goes, also downwards",
        ),
        pytest.param(ONLY_TOLD, "1.0.0", FOUND, "", "1.2.5", "", id="exact: told"),
        pytest.param(
            *(ONLY_TOLD, "1.2.5", replace(FOUND, newer=False), "", "", ""), id="exact: nothing new"
        ),
        pytest.param(
            *(replace(AUTOMATIC, query=""), "1.2.0", FOUND, "1.2.5", ""),
            "chart 1.2.0 → 1.2.5: newer version",
            id="always the latest",
        ),
    ],
)
def test_choice(wants, held, found, version, available, because):
    offer = choose(wants, held, found)
    assert (offer.version, offer.available, offer.because) == (version, available, because)
    if version:
        # Deployed, the same answer changes nothing more: a range never loops.
        after = replace(found, held_fits=True, newer=False) if version != held else found
        assert choose(wants, version, after).version == version


@pytest.mark.parametrize(
    ("wants", "held", "chart", "offer"),
    [
        pytest.param(
            *(AUTOMATIC, "1.2.0", DeployedChart(version="1.2.0", range="~1.2")),
            Offer("1.2.0", "1.2.5", "~1.2"),
            id="what was found in this range stands",
        ),
        pytest.param(
            *(RANGE, "1.2.0", DeployedChart(version="1.2.0", range="~1.1"), None),
            id="a new range needs an answer",
        ),
        pytest.param(RANGE, "", DeployedChart(), None, id="an installation needs an answer"),
        pytest.param(
            *(RANGE, "1.1.0", DeployedChart(version="1.2.0", range="~1.2"), None),
            id="changed by hand: needs an answer",
        ),
        pytest.param(
            ONLY_TOLD, "1.0.0", DeployedChart(), Offer("", "1.2.5"), id="exact needs no answer"
        ),
    ],
)
def test_a_repository_that_is_down(wants, held, chart, offer):
    asked = asking("~1.2", available_version="1.2.5", chart=chart)
    assert without_answer(asked, wants, held) == offer


def test_what_is_deployed():
    deployed = AtProvider(version="1.2.0", state="deployed")
    chart = DeployedChart(source="http://127.0.0.1:1/charts/tiny", version="1.2.0")
    asked = asking("~1.2", at_provider=deployed, chart=chart)
    decoded = Decoded(3, "tiny", "1.2.7", {})
    assert held_version(asked, None, None) == ""
    assert held_version(asked, record(3, digest="d"), decoded) == "1.2.0"
    assert held_version(asked, record(3), decoded) == "1.2.7", "by hand: as its record says"
    assert held_version(asked, record(4), decoded) == "1.2.0", "not decoded yet"
    assert not must_look_inside(asked, record(3), None)


def test_what_is_deployed_of_another_chart_is_held_by_no_range():
    deployed = AtProvider(version="1.2.0", state="deployed")
    ours = record(3, digest="d")
    moved = asking("*", at_provider=deployed, chart=DeployedChart(source="http://x/other"))
    for seen in (None, Decoded(3, "tiny", "1.2.0", {})):
        assert held_version(moved, ours, seen) == ""
        assert not must_look_inside(moved, ours, seen), "the status tells enough"
    rolled_back = asking("*", at_provider=deployed)
    assert must_look_inside(rolled_back, ours, None), "only the record tells which chart it is"
    assert held_version(rolled_back, ours, Decoded(3, "other", "1.2.0", {})) == ""
    assert held_version(rolled_back, ours, Decoded(3, "tiny", "1.2.0", {})) == "1.2.0"


def test_a_lost_status_is_no_reason_to_upgrade():
    asked = asking("~1.2")
    ours, decoded = record(3, digest="d"), Decoded(3, "tiny", "1.2.0", {})
    assert must_look_inside(asked, ours, None)
    assert must_look_inside(asked, record(4, digest="d"), decoded)
    assert not must_look_inside(asked, ours, decoded)
    assert held_version(asked, ours, decoded) == "1.2.0"
    assert not must_look_inside(asked, None, None)
    assert not must_look_inside(asking("1.2.0"), ours, None), "an exact version needs no look"


@pytest.mark.parametrize(
    ("chart", "source"),
    [
        (
            ChartAsk("https://joe:pw@host/charts?token=pw", "web", "1.0.0"),
            "https://host/charts/web",
        ),
        (ChartAsk("", "", "", url="oci://host/charts/web:1"), "oci://host/charts/web:1"),
        (ChartAsk("", "", "", url="https://host/c.tgz?sig=pw#x"), "https://host/c.tgz"),
        (ChartAsk("", "", "", inline=b"x"), "inline"),
    ],
)
def test_a_source_is_named_without_secrets(chart, source):
    assert source_of(chart) == source


def test_a_version_is_expected_to_be_what_it_was():
    held = DeployedChart(source=SOURCE, version="v1.0.0", digest="sha256:a")
    asked = asking("1.0.0", chart=held)
    assert kept_to_deployed(asked, desired(asked)).chart.expected == "sha256:a"
    wanted = desired(asked).chart
    assert expected_digest(asked, replace(wanted, version="1.0.1")) == ""
    assert expected_digest(asked, replace(wanted, repository="https://mirror")) == ""
    assert expected_digest(asked, replace(wanted, digest="sha256:b")) == ""
    assert expected_digest(asked, replace(wanted, url="https://host/c.tgz")) == ""


def offered(offer: Offer) -> Desired:
    return replace(desired(asking("~1.2")), offer=offer)


def test_reported_once():
    held = DeployedChart(source=SOURCE, version="1.2.0", digest="sha256:a", range="~1.2")
    before = ReleaseStatus(chart=held)
    assert (
        news(before, report(before, offered(choose(RANGE, "1.2.0", replace(FOUND, newer=False)))))
        == []
    )
    after = report(before, offered(choose(RANGE, "1.2.0", FOUND)))
    (notice,) = news(before, after)
    assert notice.message == "chart version 1.2.5 is available in range ~1.2; deployed is 1.2.0"
    assert news(after, report(after, offered(choose(RANGE, "1.2.0", FOUND)))) == []
    again = report(after, offered(choose(RANGE, "1.2.0", replace(FOUND, held_digest="sha256:b"))))
    (notice,) = news(after, again)
    assert (notice.reason, notice.warning) == ("ChartRepublished", True)
    assert again.chart.republished_digest == "sha256:b"
    silent = report(again, offered(Offer("1.2.0", range="~1.2")))
    assert silent.chart == again.chart, "no answer is no news"
    back = report(again, offered(choose(RANGE, "1.2.0", FOUND)))
    assert back.chart.republished_digest == ""


def test_a_release_that_follows_nothing_is_left_alone():
    before = ReleaseStatus(chart=DeployedChart(source="elsewhere", version="1.0.0"))
    assert report(before, offered(Offer())) == before


def test_the_interval_is_spread():
    spreads = {spread(DEFAULT_INTERVAL, f"https://host/{number}") for number in range(100)}
    assert len(spreads) == 100
    assert min(spreads) > 0.89 * DEFAULT_INTERVAL
    assert max(spreads) < 1.11 * DEFAULT_INTERVAL
