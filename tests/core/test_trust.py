"""A pin or keys that come when the chart is deployed already: checked at once, and nothing is made of a good answer."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from make import NOW, objects, record, release

from pilothouse.api.release import PAUSED, Release
from pilothouse.api.status import ReleaseStatus
from pilothouse.core.access import Access
from pilothouse.core.conclude import announce, attempts_of, conclude_action
from pilothouse.core.conditions import READY, SYNCED, find
from pilothouse.core.decide import decide, question
from pilothouse.core.desired import Desired, Sources, desired
from pilothouse.core.observed import Decoded, Health, Objects, Observed, Record, Running
from pilothouse.core.outcome import Ended, Fault, Outcome
from pilothouse.core.plan import Check, Install, Plan, Rest, Upgrade, Wait
from pilothouse.core.resting import conclude_quiet
from pilothouse.core.state import classify
from pilothouse.core.trust import Checked, noted, passed, seal_of, settled, unchecked
from pilothouse.core.trust_report import conclude_check, still_ready
from pilothouse.core.versions import report
from pilothouse.faults import FaultKind

PACKAGE, MANIFEST, OTHER = (f"sha256:{letter * 64}" for letter in "abc")
JANE, JOHN = Access(keyrings=(b"jane",)), Access(keyrings=(b"john",))
COSIGN = Access(public_keys=(b"jane",))


@dataclass
class World:
    """One Release that is deployed, and the passes over it."""

    pin: str = ""
    access: Access = field(default_factory=Access)
    policies: tuple[str, ...] = ("*",)
    values: dict[str, str] = field(default_factory=dict)
    paused: bool = False
    status: ReleaseStatus = field(default_factory=ReleaseStatus)
    record: Record | None = None
    objects: Objects = field(default_factory=lambda: objects(1))
    checked: Checked | None = None
    made_from: Desired | None = None
    decoded: Decoded | None = None
    now: datetime = NOW
    version: str = "1.0.0"

    @property
    def release(self) -> Release:
        asked = release(
            dict(self.values),
            version=self.version,
            status=self.status,
            policies=list(self.policies),
            annotations={PAUSED: "true"} if self.paused else None,
        )
        wanted = asked.spec.for_provider
        chart = msgspec.structs.replace(wanted.chart, digest=self.pin)
        wanted = msgspec.structs.replace(wanted, chart=chart)
        spec = msgspec.structs.replace(asked.spec, for_provider=wanted)
        return msgspec.structs.replace(asked, spec=spec)

    def wanted(self) -> Desired:
        asked = desired(self.release, Sources(access=self.access))
        return settled(self.release, asked, self.record, self.checked)

    def deploy(self) -> "World":
        """Deploy what is asked for."""
        wanted = self.wanted()
        made = record(self.record.revision + 1 if self.record else 1, "deployed", wanted.digest)
        made = replace(made, chart_name="tiny", chart_version="1.0.0")
        ended = Ended(wanted, Install("x"), Outcome(made, chart_digest=PACKAGE))
        self.objects = objects(made.revision)
        seen = Observed(record=made, objects=self.objects)
        self.status = conclude_action(self.release, wanted, ended, seen, self.now).status
        self.record, self.made_from = made, wanted
        return self

    def adopt(self) -> "World":
        """Find what another client has deployed of the same chart."""
        self.record = record(1, "deployed", chart_name="tiny", chart_version="1.0.0")
        self.decoded = Decoded(1, "tiny", "1.0.0", {})
        return self

    def look(self) -> tuple[Desired, Observed, Plan]:
        wanted = self.wanted()
        seen = Observed(
            record=self.record,
            objects=self.objects,
            made_from=self.made_from,
            decoded=self.decoded,
            unchecked=unchecked(self.release, wanted, self.record, self.checked),
        )
        state = classify(wanted, seen, self.now)
        plan = decide(wanted, seen, state, attempts_of(self.release), self.now)
        if isinstance(plan, Rest):
            status = conclude_quiet(self.release, wanted, seen, state, plan, self.now)
            self.status = noted(report(status, wanted), wanted, seen)
        if isinstance(plan, Wait):
            self.status = still_ready(self.release, wanted, seen, state, self.status, self.now)
        return wanted, seen, plan

    def plan(self) -> Plan:
        return self.look()[2]

    def answer(self, found: str | Fault) -> None:
        """What the check that is due comes to: the digest of a good chart, or why it is none."""
        wanted, seen, plan = self.look()
        assert isinstance(plan, Check)
        assert seen.record
        if isinstance(found, str):
            found_or_fault = passed(self.release, wanted, seen.record, found)
            if isinstance(found_or_fault, Checked):
                self.checked = found_or_fault
                return
            found = found_or_fault
        state = classify(wanted, seen, self.now)
        self.status = conclude_check(self.release, wanted, seen, state, found, self.now).status

    def condition(self, kind: str) -> tuple[str, str]:
        found = find(self.status.conditions, kind)
        assert found
        return found.status, found.reason


BAD = Fault(FaultKind.CHART_NOT_VERIFIED, "expected the key of Jane")


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        pytest.param(("", Access()), ("", JANE), PACKAGE, id="keys added"),
        pytest.param(("", JOHN), ("", JANE), PACKAGE, id="keys changed"),
        pytest.param(("", JANE), ("", COSIGN), PACKAGE, id="another way to sign"),
        pytest.param(("", Access()), (PACKAGE, JANE), PACKAGE, id="pin and keys added"),
        pytest.param(("", Access()), (MANIFEST, Access()), PACKAGE, id="pinned by its manifest"),
        pytest.param((MANIFEST, JANE), (PACKAGE, JOHN), PACKAGE, id="pinned in another way"),
        pytest.param(("", Access()), (PACKAGE, Access()), "", id="pinned: known without asking"),
        pytest.param((MANIFEST, Access()), ("", Access()), "", id="pin removed"),
        pytest.param((MANIFEST, JANE), (MANIFEST, Access()), "", id="keys removed"),
    ],
)
def test_what_is_met_makes_no_revision(
    before: tuple[str, Access], after: tuple[str, Access], found: str
) -> None:
    world = World(*before).deploy()
    assert isinstance(world.plan(), Rest), "what an action deployed was checked by it"
    world.pin, world.access = after
    if found:
        world.answer(found)
    assert isinstance(world.plan(), Rest)
    assert world.condition(SYNCED) == ("True", "ReconcileSuccess")
    # Another process knows it from the status, however often it looks.
    world.checked = None
    for _ in range(3):
        status = world.status
        assert isinstance(world.plan(), Rest)
        assert world.status == status


def test_a_bad_answer_is_told_and_changes_nothing() -> None:
    world = World().deploy()
    world.access = JOHN
    world.answer(BAD)
    assert world.condition(SYNCED) == ("False", "ChartNotVerified")
    assert world.condition(READY) == ("True", "Available"), "it runs as before"
    assert not world.status.synced
    assert world.status.last_attempt.error == BAD.message
    waiting = world.plan()
    assert isinstance(waiting, Wait)
    assert waiting.until
    # What its objects do is told meanwhile.
    world.objects = objects(1, Health.FAILED)
    assert isinstance(world.plan(), Wait)
    assert world.condition(READY)[0] == "False"
    world.objects = objects(1)
    # It is asked again after a while; other keys are asked about at once.
    world.now = waiting.until + timedelta(seconds=1)
    assert isinstance(world.plan(), Check)
    world.now = NOW
    world.access = JANE
    world.answer(PACKAGE)
    assert isinstance(world.plan(), Rest)
    assert world.condition(SYNCED) == ("True", "ReconcileSuccess")
    assert world.status.retries == 0


def test_without_keys_it_is_as_before() -> None:
    world = World().deploy()
    world.access = JOHN
    world.answer(BAD)
    world.access = Access()
    assert isinstance(world.plan(), Rest)
    assert world.condition(SYNCED)[0] == "True"


@pytest.mark.parametrize("pin", [PACKAGE, MANIFEST])
def test_a_pin_needs_no_version(pin: str) -> None:
    """Which version it led to is known afterwards, and is no change; nor is naming it, or leaving it out again."""
    world = World(pin=pin, version="").deploy()
    assert isinstance(world.plan(), Rest)
    for version in ("1.0.0", "", "v1.0.0", ""):
        world.version = version
        assert isinstance(world.plan(), Rest), version
    world.values = {"message": "new"}
    plan = world.plan()
    assert isinstance(plan, Upgrade)
    assert plan.reason == "values changed: message"
    world.version = "1.1.0"
    assert isinstance(world.plan(), Upgrade)


@pytest.mark.parametrize("pin", [PACKAGE, MANIFEST])
@pytest.mark.parametrize("before", ["1.0.0", ""])
@pytest.mark.parametrize("after", ["1.0.0", ""])
def test_a_pin_that_goes_changes_nothing(pin: str, before: str, after: str) -> None:
    world = World(pin=pin, version=before).deploy()
    world.pin, world.version = "", after
    assert isinstance(world.plan(), Rest)


def test_a_pin_of_another_chart_is_deployed_or_refused() -> None:
    world = World().deploy()
    world.pin = OTHER
    world.answer(Fault(FaultKind.CHART_INVALID, "the pin says c"))
    assert world.condition(SYNCED) == ("False", "ChartInvalid")
    assert isinstance(world.plan(), Wait)
    world.now += timedelta(hours=1)
    world.answer(OTHER)
    plan = world.plan()
    assert isinstance(plan, Upgrade)
    assert plan.reason == "digest of chart tiny 1.0.0 changed"


def test_what_is_no_longer_at_its_source_cannot_be_checked() -> None:
    world = World().deploy()
    world.access = JANE
    world.answer(OTHER)
    assert world.condition(SYNCED) == ("False", "ChartNotVerified")
    assert "cannot be checked" in world.status.last_attempt.error


def test_an_adopted_chart_is_checked_at_its_source() -> None:
    world = World().deploy()
    # Nothing is known of its package.
    unknown = msgspec.structs.replace(world.status.chart, digest="", source="")
    world.status = msgspec.structs.replace(world.status, chart=unknown)
    world.access = JANE
    world.answer(OTHER)
    assert isinstance(world.plan(), Rest)


@pytest.mark.parametrize("access", [Access(), JANE])
def test_an_adopted_chart_that_meets_its_pin_makes_no_revision(access: Access) -> None:
    world = World(PACKAGE, access).adopt()
    world.answer(PACKAGE)
    assert isinstance(world.plan(), Rest)
    assert world.condition(SYNCED) == ("True", "ReconcileSuccess")
    assert world.status.chart.checked == seal_of(world.wanted().chart)
    world.checked = None
    assert isinstance(world.plan(), Rest), "once"


def test_an_adopted_chart_that_does_not_meet_its_pin_is_told() -> None:
    world = World(OTHER).adopt()
    world.answer(Fault(FaultKind.CHART_INVALID, "the pin says c"))
    assert world.condition(SYNCED) == ("False", "ChartInvalid")
    assert world.condition(READY) == ("True", "Available")
    assert isinstance(world.plan(), Wait)
    assert world.status.chart.checked == ""


def test_an_adopted_chart_without_a_pin_is_not_checked() -> None:
    assert isinstance(World().adopt().plan(), Rest)


@pytest.mark.parametrize(
    "after",
    [
        pytest.param({"pin": OTHER, "access": Access(), "values": {"a": "b"}}, id="pin and values"),
        pytest.param({"pin": OTHER}, id="pin"),
        pytest.param({"access": JANE}, id="keys"),
        pytest.param({"pin": "", "access": Access()}, id="nothing any more"),
    ],
)
def test_a_pause_checks_nothing_and_notes_nothing(after: dict[str, Any]) -> None:
    world = World(MANIFEST, COSIGN).deploy()
    before = world.status.chart
    world.paused = True
    for name, value in after.items():
        setattr(world, name, value)
    assert isinstance(world.plan(), Rest)
    assert world.status.chart == before


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"policies": ("Observe",)}, id="only observed"),
        pytest.param({"record": record(2, "failed", "d")}, id="failed: the next action checks"),
        pytest.param({"record": record(2, "deployed", "d")}, id="out of sync: the upgrade checks"),
        pytest.param({"record": None}, id="absent: the install checks"),
    ],
)
def test_nothing_to_check(change: dict[str, object]) -> None:
    world = World().deploy()
    world.access = JANE
    for name, value in change.items():
        setattr(world, name, value)
    assert not isinstance(world.plan(), Check)
    assert world.status.chart.checked == ""


def test_other_keys_are_tried_at_once_and_end_nothing() -> None:
    world = World(access=JOHN)
    failed = Ended(world.wanted(), Install("x"), Outcome(fault=BAD))
    world.status = announce(world.release, world.wanted(), Install("x"), NOW)
    world.status = conclude_action(world.release, world.wanted(), failed, Observed(), NOW).status
    assert isinstance(world.plan(), Wait)
    begun = Running("Install", question(world.wanted()), waiting=True)
    world.access = JANE
    assert isinstance(world.plan(), Install)
    wanted, busy = world.wanted(), Observed(running=begun)
    plan = decide(wanted, busy, classify(wanted, busy, NOW), attempts_of(world.release), NOW)
    assert isinstance(plan, Wait)


def test_a_seal_is_of_the_pin_and_every_key() -> None:
    chart = desired(release()).chart
    assert seal_of(chart) == ""
    asked = [
        replace(chart, digest=PACKAGE),
        replace(chart, access=JANE),
        replace(chart, access=COSIGN),
        replace(chart, access=Access(keyrings=(b"jane", b"john"))),
        replace(chart, access=Access(keyrings=(b"janejohn",))),
        replace(chart, access=JANE, digest=PACKAGE),
    ]
    assert len({seal_of(one) for one in asked}) == len(asked)
