"""Charts from git: which commit is wanted, and what is said of others."""

from dataclasses import replace

import msgspec
import pytest
from make import NOW, record, release

from pilothouse.api.chart import GitReference, GitSpec, SecretReference
from pilothouse.api.release import ChartSpec, Release, UpgradeSpec
from pilothouse.api.status import DeployedChart, ReleaseStatus
from pilothouse.core import git
from pilothouse.core.decide import decide
from pilothouse.core.desired import desired, needs_version
from pilothouse.core.observed import Observed
from pilothouse.core.plan import Rollback
from pilothouse.core.retry import Attempts
from pilothouse.core.state import classify
from pilothouse.core.versions import (
    DEFAULT_INTERVAL,
    Follow,
    Found,
    choose,
    deployed_chart,
    follow,
    held_version,
    news,
    report,
    without_answer,
)

OLD, NEW = "a" * 40, "b" * 40
URL = "https://joe:hunter2@git.example.com/charts.git"
SHOWN = "https://git.example.com/charts.git"
MAIN = Follow("branch main", DEFAULT_INTERVAL, decides=True, git=True)


def asking(
    ref: GitReference | None = None,
    *,
    upgrade: UpgradeSpec | None = None,
    chart: DeployedChart | None = None,
    path: str = "charts/hello",
    **others: object,
) -> Release:
    asked = release(status=ReleaseStatus(chart=chart or DeployedChart()))
    spec = ChartSpec(git=GitSpec(url=URL, ref=ref, path=path), **others)  # type: ignore[arg-type]
    wanted = msgspec.structs.replace(asked.spec.for_provider, chart=spec)
    return msgspec.structs.replace(
        asked, spec=msgspec.structs.replace(asked.spec, for_provider=wanted, upgrade=upgrade)
    )


def noted(commit: str, reference: str = "branch main", path: str = "charts/hello") -> DeployedChart:
    return DeployedChart(source=f"{SHOWN}@{commit}:{path}", version="1.0.0", range=reference)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (URL, SHOWN),
        ("https://token@host/x/y?t=1#z", "https://host/x/y"),
        ("ssh://git@host:2222/x.git", "ssh://host:2222/x.git"),
        ("git@host:team/x.git", "host:team/x.git"),
        ("https://host/a@b.git", "https://host/a@b.git"),
    ],
)
def test_an_address_without_secrets(url: str, shown: str) -> None:
    assert git.address(url) == shown


@pytest.mark.parametrize(
    ("ref", "automatic", "wants"),
    [
        (None, False, replace(MAIN, query="HEAD")),
        (GitReference(branch="main"), True, replace(MAIN, automatic=True)),
        (GitReference(semver="~1.2"), True, replace(MAIN, query="semver ~1.2", automatic=True)),
        (GitReference(tag="v1"), True, replace(MAIN, query="tag v1")),
        (GitReference(commit=OLD), True, None),
        (GitReference(commit=OLD, branch="main"), True, None),
    ],
)
def test_what_is_followed(ref, automatic, wants):
    assert follow(asking(ref, upgrade=UpgradeSpec(automatic=automatic))) == wants


def test_what_is_deployed_stands_for_its_own_reference_only() -> None:
    main = GitReference(branch="main")
    assert held_version(asking(main, chart=noted(OLD)), record(1), None) == OLD
    assert held_version(asking(main, chart=noted(OLD)), None, None) == ""
    assert held_version(asking(main), record(1), None) == ""
    for other in (noted(OLD, "branch dev"), noted(OLD, path="x"), DeployedChart(source="inline")):
        assert held_version(asking(main, chart=other), record(1), None) == ""


def test_the_record_tells_the_commit_when_the_status_does_not() -> None:
    main = GitReference(branch="main")
    for path in ("charts/hello", "", "my charts/hello"):
        asked = asking(main, path=path)
        made = desired(asked, version=OLD).chart.git
        assert made
        assert "hunter2" not in made.stamp
        stamped = record(1, source=made.stamp)
        assert held_version(asked, stamped, None) == OLD
        assert held_version(asking(GitReference(branch="dev"), path=path), stamped, None) == ""
        assert held_version(asking(main, path="other"), stamped, None) == ""
        # A process that ended before it wrote the status; a revision that failed.
        late = asking(main, path=path, chart=noted(NEW, path=path))
        assert held_version(late, stamped, None) == OLD
        if path:
            assert held_version(late, replace(stamped, status="failed"), None) == NEW
        assert held_version(asked, replace(stamped, status="failed"), None) == OLD
    # A rollback carries the commit of the revision it goes back to.
    wanted = replace(desired(asking(main), version=NEW), rollback_limit=1)
    failed = Attempts(digest=wanted.digest, failures=1, rolled_back=1)
    newest = record(2, "failed", wanted.digest)
    observed = Observed(record=newest, good=record(1, "superseded", "d", source="s"))
    plan = decide(wanted, observed, classify(wanted, observed, NOW), failed, NOW)
    assert plan == Rollback(1, "d", newest.description or "revision 2 failed", "s")
    unresolved = desired(asking(main)).chart.git
    assert unresolved
    assert unresolved.stamp == ""


@pytest.mark.parametrize(
    ("automatic", "held", "found", "version", "available", "because"),
    [
        (False, "", Found(NEW, newer=True), NEW, "", ""),
        (True, OLD, Found(OLD), OLD, "", ""),
        (False, OLD, Found(NEW, newer=True), OLD, "main@" + NEW[:12], ""),
        (
            *(True, OLD, Found(NEW, newer=True), NEW, ""),
            f"chart {OLD[:12]} → main@{NEW[:12]}: branch main has moved",
        ),
    ],
)
def test_choice(automatic, held, found, version, available, because):
    offer = choose(replace(MAIN, automatic=automatic), held, found)
    assert (offer.version, offer.available, offer.because) == (version, available, because)
    assert offer.range == "branch main"


def test_a_repository_that_is_down_changes_nothing() -> None:
    stands = without_answer(asking(chart=noted(OLD)), MAIN, OLD)
    assert stands
    assert stands.version == OLD
    assert without_answer(asking(), MAIN, "") is None


def test_the_commit_is_what_counts() -> None:
    by_branch = desired(asking(GitReference(branch="main")), version=OLD)
    by_commit = desired(asking(GitReference(commit=OLD)))
    assert by_branch.digest == by_commit.digest
    assert by_branch.digest != desired(asking(GitReference(branch="main")), version=NEW).digest
    assert by_branch.digest != desired(asking(GitReference(commit=OLD), path="x")).digest
    assert not needs_version(by_branch)
    assert "hunter2" not in str(by_branch.chart)


@pytest.mark.parametrize(
    ("others", "field"),
    [
        ({"repository": "https://x", "name": "y"}, "git takes the place"),
        ({"url": "https://x/y.tgz"}, "git takes the place"),
        ({"inline": "AAAA"}, "git takes the place"),
        ({"pull_secret_ref": SecretReference(name="x")}, "pullSecretRef"),
    ],
)
def test_one_source_only(others: dict[str, object], field: str) -> None:
    with pytest.raises(ValueError, match=field):
        desired(asking(**others))  # type: ignore[arg-type]


def test_what_is_noted_and_told() -> None:
    asked = asking(GitReference(branch="main"))
    offer = choose(MAIN, OLD, Found(NEW, newer=True))
    wanted = replace(desired(asked, version=OLD), offer=offer)
    chart = deployed_chart(wanted, "1.0.0", "sha256:x", "")
    assert chart.source == f"{SHOWN}@{OLD}:charts/hello"
    assert git.commit_in(chart.source) == OLD
    before = ReleaseStatus(chart=chart)
    after = report(before, wanted)
    assert after.chart == chart, "the digest that was deployed is kept"
    assert after.available_version == f"main@{NEW[:12]}"
    (told,) = news(before, after)
    assert told.message == f"main@{NEW[:12]} is available; deployed is {OLD[:12]}"
    assert news(after, report(after, wanted)) == []
