"""The status of a release whose last conclusion was never told."""

import msgspec
from make import NOW, objects, record, release

from pilothouse.api.release import Release
from pilothouse.api.status import ReleaseStatus
from pilothouse.core.conditions import READY, find
from pilothouse.core.desired import desired
from pilothouse.core.observed import Objects, Observed
from pilothouse.core.plan import Rest
from pilothouse.core.resting import conclude_quiet
from pilothouse.core.state import classify

PACKAGE = "sha256:" + "1" * 64
PIN = "sha256:" + "2" * 64


def quiet(one: Release, revision: int, seen: Objects | None, source: str = "") -> ReleaseStatus:
    wanted = desired(one)
    made = record(revision, "deployed", wanted.digest, source=source)
    observed = Observed(record=made, objects=seen)
    return conclude_quiet(one, wanted, observed, classify(wanted, observed, NOW), Rest(), NOW)


def pinned(status: ReleaseStatus, pin: str) -> Release:
    one = release(status=status)
    chart = msgspec.structs.replace(one.spec.for_provider.chart, digest=pin)
    asked = msgspec.structs.replace(one.spec.for_provider, chart=chart)
    return msgspec.structs.replace(one, spec=msgspec.structs.replace(one.spec, for_provider=asked))


def test_the_record_tells_which_package_was_deployed() -> None:
    told = quiet(release(), 1, objects(1), PACKAGE)
    assert (told.chart.digest, told.chart.version) == (PACKAGE, "1.0.0")
    assert told.chart.source.endswith("/charts/tiny")
    later = quiet(release(status=told), 2, objects(2), PIN)
    assert later.chart.digest == PIN, "of an upgrade whose end was lost too"
    same = quiet(release(status=later), 2, objects(2), PACKAGE)
    assert same.chart == later.chart, "what was told of this revision stands"


def test_the_newest_pin_is_that_of_the_newest_revision() -> None:
    told = quiet(pinned(ReleaseStatus(), PACKAGE), 1, objects(1), PACKAGE)
    assert told.at_provider.digest == PACKAGE
    assert quiet(pinned(told, PIN), 2, objects(2), PIN).at_provider.digest == PIN
    assert quiet(pinned(told, PIN), 1, objects(1)).at_provider.digest == PACKAGE, "settled later"


def test_readiness_is_that_of_a_revision() -> None:
    runs = quiet(release(), 1, objects(1))

    def ready(revision: int) -> str:
        found = find(quiet(release(status=runs), revision, None).conditions, READY)
        assert found
        return found.status

    assert ready(1) == "True", "not looked at yet after a restart"
    assert ready(2) == "False", "nobody has seen its objects"
