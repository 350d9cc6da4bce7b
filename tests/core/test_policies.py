"""managementPolicies, all of them: what each allows when the release is absent, differs, or is deleted."""

import msgspec
import pytest
from make import NOW, record, release

from pilothouse.api.status import LastAttempt, ReleaseStatus
from pilothouse.core.decide import decide
from pilothouse.core.desired import desired
from pilothouse.core.observed import Decoded, Observed
from pilothouse.core.plan import Plan, name_of
from pilothouse.core.policy import seniority, writes
from pilothouse.core.retry import Attempts
from pilothouse.core.state import classify

# policies                                    absent    differs  interrupted  deleted    fills in
TABLE = """
*                                           | Install | Upgrade | Unlock | Uninstall | yes
Observe                                     | Stop    | Rest    | Stop   | LetGo     | no
Observe Create                              | Install | Rest    | Unlock | LetGo     | no
Observe Update                              | Stop    | Upgrade | Stop   | LetGo     | no
Observe Delete                              | Stop    | Rest    | Stop   | Uninstall | no
Observe LateInitialize                      | Stop    | Rest    | Stop   | LetGo     | yes
Observe Create Update                       | Install | Upgrade | Unlock | LetGo     | no
Observe Create Delete                       | Install | Rest    | Unlock | Uninstall | no
Observe Create LateInitialize               | Install | Rest    | Unlock | LetGo     | yes
Observe Update Delete                       | Stop    | Upgrade | Stop   | Uninstall | no
Observe Update LateInitialize               | Stop    | Upgrade | Stop   | LetGo     | yes
Observe Delete LateInitialize               | Stop    | Rest    | Stop   | Uninstall | yes
Observe Create Update Delete                | Install | Upgrade | Unlock | Uninstall | no
Observe Create Update LateInitialize        | Install | Upgrade | Unlock | LetGo     | yes
Observe Create Delete LateInitialize        | Install | Rest    | Unlock | Uninstall | yes
Observe Update Delete LateInitialize        | Stop    | Upgrade | Stop   | Uninstall | yes
Observe Create Update Delete LateInitialize | Install | Upgrade | Unlock | Uninstall | yes
                                            | Rest    | Rest    | Rest   | Rest      | yes
"""
ROWS = [tuple(cell.strip() for cell in line.split("|")) for line in TABLE.strip("\n").splitlines()]


def plan_for(policies: list[str], *, deleted: bool = False, **observed) -> Plan:
    wanted = desired(release({"message": "hello"}, policies=policies, deleted=deleted))
    # What the newest revision was made from is known, so that no look is needed first.
    seen = Observed(made_from=desired(release({"message": "older"})), **observed)
    return decide(wanted, seen, classify(wanted, seen, NOW), Attempts(), NOW)


@pytest.mark.parametrize("row", ROWS, ids=[row[0] or "none" for row in ROWS])
def test_each_combination(row):
    policies = row[0].split()
    absent, differs, interrupted, deleted, fills_in = row[1:]
    other = record(1, "deployed", "another-digest")
    foreign = {
        "record": record(1, "deployed"),
        "decoded": Decoded(1, "tiny", "1.0.0", {"message": "by hand"}),
    }
    assert name_of(plan_for(policies)) == absent
    assert name_of(plan_for(policies, record=other)) == differs
    assert name_of(plan_for(policies, **foreign)) == differs
    assert name_of(plan_for(policies, record=record(1, "pending-install", "x"))) == interrupted
    assert name_of(plan_for(policies, record=other, deleted=True)) == deleted
    wanted = desired(release(policies=policies))
    assert wanted.policies.late_initialize == (fills_in == "yes")
    # Whoever can do nothing keeps nobody from doing it; whoever is paused goes on one day.
    acts = {"Install", "Upgrade", "Uninstall"} & {absent, differs, deleted}
    assert writes(release(policies=policies)) == bool(acts or not policies)


def test_the_first_of_two_is_the_older_or_the_one_that_has_acted():
    def born(when: str, uid: str, *, acted: bool = False):
        one = release(status=ReleaseStatus(last_attempt=LastAttempt(action="Install" * acted)))
        metadata = msgspec.structs.replace(one.metadata, creation_timestamp=when, uid=uid)
        return seniority(msgspec.structs.replace(one, metadata=metadata))

    early, late = "2026-11-15T12:00:00Z", "2026-11-15T12:00:01Z"
    assert born(early, "z") < born(late, "a", acted=True)
    assert born(early, "z", acted=True) < born(early, "a")
    assert born(early, "a") < born(early, "z")


def test_the_table_has_every_combination():
    assert len({frozenset(row[0].split()) for row in ROWS}) == 2**4 + 2


@pytest.mark.parametrize("policies", ["Observe Create", "Observe Create Delete"])
def test_a_first_install_that_failed_is_still_a_creation(policies):
    allowed = policies.split()
    assert name_of(plan_for(allowed, record=record(1, "failed", "x"))) == "Upgrade"
    good = record(1, "superseded", "y")
    assert name_of(plan_for(allowed, record=record(2, "failed", "x"), good=good)) == "Stop"
    assert name_of(plan_for(allowed, record=record(1, "pending-upgrade"))) == "Wait"
