"""The rules, one row each: the id of a row is the rule."""

from dataclasses import replace
from datetime import timedelta

import pytest
from make import NOW, objects, record, release

from pilothouse.api.release import FINALIZER
from pilothouse.core.decide import DELETION, decide
from pilothouse.core.desired import ChartAsk, desired
from pilothouse.core.observed import Decoded, Health, Observed, Running
from pilothouse.core.plan import (
    CreateNamespace,
    Inspect,
    Install,
    Interrupt,
    LetGo,
    Plan,
    Rest,
    Stop,
    Uninstall,
    Unlock,
    Upgrade,
    Wait,
)
from pilothouse.core.resting import conclude_quiet
from pilothouse.core.retry import Attempts
from pilothouse.core.state import FOREIGN_PATIENCE, UNINSTALL_PATIENCE, classify

WANTED = desired(release({"message": "hello"}))
OLDER = desired(release({"message": "older"}))
GONE = desired(release({"message": "hello"}, deleted=True))
LATER = NOW + timedelta(seconds=10)
NEVER_TRIED = Attempts()


def plan_for(wanted=WANTED, attempts=NEVER_TRIED, **observed) -> Plan:
    seen = Observed(**observed)
    return decide(wanted, seen, classify(wanted, seen, NOW), attempts, NOW)


def failed(times: int, digest: str = WANTED.digest) -> Attempts:
    return Attempts(digest, times, LATER if times else None, "it broke")


OURS = record(1, "deployed", WANTED.digest)
FOREIGN = record(3, "deployed")


@pytest.mark.parametrize(
    ("observed", "attempts", "plan"),
    [
        pytest.param({}, failed(0), Install("not installed"), id="absent: install"),
        pytest.param(
            {}, failed(1), Wait("it broke", until=LATER), id="failed: wait for the backoff"
        ),
        pytest.param(
            {},
            failed(3, OLDER.digest),
            Install("not installed"),
            id="a new digest forgets failures",
        ),
        pytest.param(
            {"namespace_missing": True},
            failed(0),
            CreateNamespace("web"),
            id="no namespace: make it",
        ),
        pytest.param({"record": OURS}, failed(0), Rest("deployed"), id="as asked: rest"),
        pytest.param(
            {"record": OURS, "objects": objects(1)},
            failed(0),
            Rest("4/4 objects ready"),
            id="all objects ready: rest",
        ),
        pytest.param(
            {"record": OURS, "objects": objects(1, Health.IN_PROGRESS, Health.FAILED)},
            failed(0),
            Rest("2/4 objects ready; Pod pod-1 is Failed: not yet"),
            id="unready names the worst object",
        ),
        pytest.param(
            {"record": record(1, "deployed", OLDER.digest)},
            failed(0),
            Inspect(1),
            id="another digest, made by an earlier process: look what from",
        ),
        pytest.param(
            {
                "record": record(1, "deployed", OLDER.digest),
                "decoded": Decoded(1, "tiny", "1.0.0", {"message": "older"}),
                "objects": objects(1),
            },
            failed(0),
            Upgrade("values changed: message"),
            id="another digest: upgrade, and say what changed",
        ),
        pytest.param(
            {
                "record": record(1, "deployed", OLDER.digest),
                "made_from": OLDER,
                "objects": objects(1),
            },
            failed(0),
            Upgrade("values changed: message"),
            id="another digest, made by this process: it knows what from",
        ),
        pytest.param(
            {"record": record(1, "deployed", OLDER.digest), "made_from": OLDER},
            failed(0),
            Upgrade("values changed: message"),
            id="the reason names the value that changed",
        ),
        pytest.param(
            {"record": record(2, "failed", WANTED.digest, description="boom")},
            failed(0),
            Upgrade("retry: boom", preflight=True),
            id="failed with the same digest: retry, asking the server first",
        ),
        pytest.param(
            {"record": record(1, "pending-install", WANTED.digest)},
            failed(0),
            Unlock(1, "revision 1 was interrupted (pending-install)"),
            id="our pending record with no action running: unlock",
        ),
        pytest.param(
            {"record": record(2, "pending-upgrade")},
            failed(0),
            Wait(
                "another Helm client is busy with revision 2 (pending-upgrade)",
                until=NOW - timedelta(minutes=1) + FOREIGN_PATIENCE,
            ),
            id="a person's helm upgrade is left alone",
        ),
        pytest.param(
            {"record": FOREIGN}, failed(0), Inspect(3), id="foreign revision: look inside"
        ),
        pytest.param(
            {"record": FOREIGN, "decoded": Decoded(3, "tiny", "v1.0.0", {"message": "hello"})},
            failed(0),
            Rest("deployed"),
            id="foreign but equal: adopted as it is",
        ),
        pytest.param(
            {"record": FOREIGN, "decoded": Decoded(3, "tiny", "1.0.0", {"message": "mine"})},
            failed(0),
            Upgrade("values changed: message"),
            id="foreign and different: upgrade, saying what differs",
        ),
        pytest.param(
            {"record": FOREIGN, "decoded": Decoded(3, "tiny", "0.9.0", {"message": "hello"})},
            failed(0),
            Upgrade("chart 0.9.0 → 1.0.0"),
            id="foreign with another chart version: upgrade",
        ),
        pytest.param(
            {"record": record(1, "uninstalled", WANTED.digest)},
            failed(0),
            Uninstall("an uninstall left revision 1 behind"),
            id="kept history of an uninstall: clear it first",
        ),
        pytest.param(
            {"record": OURS, "running": Running("Upgrade", WANTED.digest)},
            failed(0),
            Wait("upgrade in progress"),
            id="an action is under way: wait",
        ),
        pytest.param(
            {"record": OURS, "running": Running("Upgrade", OLDER.digest)},
            failed(0),
            Wait("upgrade in progress"),
            id="an older apply is under way: it is never cut",
        ),
        pytest.param(
            {"record": OURS, "running": Running("Upgrade", OLDER.digest, waiting=True)},
            failed(0),
            Interrupt("a newer spec is there"),
            id="an older action only waits: newest spec wins",
        ),
    ],
)
def test_rules(observed, attempts, plan):
    assert plan_for(attempts=attempts, **observed) == plan


@pytest.mark.parametrize(
    ("observed", "attempts", "plan"),
    [
        pytest.param({}, Attempts(), LetGo(), id="nothing there: let go"),
        pytest.param(
            {"record": OURS}, Attempts(), Uninstall("the Release was deleted"), id="uninstall"
        ),
        pytest.param(
            {"record": record(1, "uninstalling", WANTED.digest)},
            Attempts(),
            Uninstall("the Release was deleted"),
            id="an interrupted uninstall is done again",
        ),
        pytest.param(
            {"record": record(1, "pending-install", WANTED.digest)},
            Attempts(),
            Unlock(1, "revision 1 was interrupted (pending-install)"),
            id="an interrupted install is unlocked first",
        ),
        pytest.param(
            {"record": OURS},
            failed(2, DELETION),
            Wait("it broke", until=LATER),
            id="a failed uninstall backs off",
        ),
        pytest.param(
            {"record": OURS},
            failed(2),
            Uninstall("the Release was deleted"),
            id="failures to install do not delay the uninstall",
        ),
    ],
)
def test_deletion(observed, attempts, plan):
    assert plan_for(GONE, attempts, **observed) == plan


FINALIZERS = ["usage.example.test/in-use", FINALIZER, "foregroundDeletion"]


@pytest.mark.parametrize(
    "observed",
    [
        pytest.param({"record": OURS}, id="not uninstalled"),
        pytest.param({}, id="not let go, though nothing is there"),
        pytest.param({"record": OURS, "holder": "first"}, id="not let go, though another has it"),
        pytest.param({"record": record(1, "pending-install", "x")}, id="not unlocked"),
        pytest.param(
            {"record": OURS, "running": Running("Upgrade", OLDER.digest, waiting=True)},
            id="what is under way is not ended",
        ),
    ],
)
def test_finalizers_of_others_delay_the_deletion(observed):
    one = release(deleted=True, finalizers=FINALIZERS)
    held, seen = desired(one), Observed(**observed)
    plan = plan_for(held, failed(2, DELETION), **observed)
    said = "waits for the finalizers of others: usage.example.test/in-use, foregroundDeletion"
    assert plan == Stop("OtherFinalizers", said)
    status = conclude_quiet(one, held, seen, classify(held, seen, NOW), plan, NOW)
    told = {one.type: (one.status, one.reason, one.message) for one in status.conditions}
    assert told == {
        "Synced": ("False", "OtherFinalizers", said),
        "Ready": ("False", "Deleting", said),
    }


def test_finalizers_of_others_delay_nothing_else():
    assert plan_for(desired(release(finalizers=FINALIZERS))) == Install("not installed")
    left_behind = release(deleted=True, finalizers=FINALIZERS, deletion_policy="Orphan")
    assert plan_for(desired(left_behind), record=OURS) == LetGo()
    paused = release(deleted=True, finalizers=FINALIZERS, policies=[])
    assert plan_for(desired(paused), record=OURS) == Rest("paused")


def test_the_older_of_two_releases_keeps_it():
    plan = plan_for(record=OURS, holder="first")
    assert isinstance(plan, Stop)
    assert plan.kind == "AlreadyClaimed"
    assert '"first"' in plan.reason
    assert plan_for(GONE, record=OURS, holder="first") == LetGo()


def test_what_is_deployed_is_looked_up_when_the_status_does_not_tell():
    assert plan_for(record=OURS, version_told=False) == Inspect(1)
    told = record(1, "deployed", WANTED.digest, chart_version="1.0.0")
    assert plan_for(record=told, version_told=False) == Rest("deployed")
    looked = Decoded(1, "tiny", "1.0.0", {})
    assert plan_for(record=OURS, version_told=False, decoded=looked) == Rest("deployed")


def test_paused_never_acts():
    paused = desired(release(annotations={"crossplane.io/paused": "true"}))
    assert plan_for(paused) == Rest("paused")
    assert plan_for(paused, record=record(1, "deployed", "other")) == Rest("paused")


def test_a_foreign_client_that_never_returns_is_unlocked():
    old = record(2, "pending-upgrade", created=NOW - FOREIGN_PATIENCE)
    assert isinstance(plan_for(record=old), Unlock)


def test_a_foreign_client_has_as_long_as_the_timeout():
    patient = desired(release(wait_timeout="40m"))
    old = record(2, "pending-upgrade", created=NOW - timedelta(minutes=39))
    said = "another Helm client is busy with revision 2 (pending-upgrade)"
    assert plan_for(patient, record=old) == Wait(said, until=NOW + timedelta(minutes=1))
    older = record(2, "pending-upgrade", created=NOW - timedelta(minutes=40))
    assert isinstance(plan_for(patient, record=older), Unlock)
    hasty = desired(release(wait_timeout="1m"))
    young = record(2, "pending-upgrade", created=NOW - timedelta(minutes=2))
    assert isinstance(plan_for(hasty, record=young), Wait), "a person's helm has its own timeout"


@pytest.mark.parametrize("status", ["pending-upgrade", "uninstalling"])
def test_what_another_client_does_is_told(status):
    asked = release({"message": "hello"})
    theirs = Observed(record=record(2, status, seen=NOW))
    state = classify(WANTED, theirs, NOW)
    plan = decide(WANTED, theirs, state, NEVER_TRIED, NOW)
    said = conclude_quiet(asked, WANTED, theirs, state, plan, NOW)
    assert {one.type: (one.status, one.reason, one.message) for one in said.conditions} == {
        "Synced": ("False", "OperationInProgress", state.reason),
        "Ready": ("False", "Unavailable", state.reason),
    }
    assert said.at_provider.state == status
    ours = replace(theirs, record=record(2, "pending-upgrade", owner="us"), owner_alive=True)
    state = classify(WANTED, ours, NOW)
    plan = decide(WANTED, ours, state, NEVER_TRIED, NOW)
    assert conclude_quiet(asked, WANTED, ours, state, plan, NOW) == asked.status, "it tells itself"


def test_a_name_that_was_filled_in_is_no_reason():
    url = "http://127.0.0.1:1/tiny-1.0.0.tgz"
    before = replace(OLDER, chart=ChartAsk("", "", "", url=url))
    after = replace(WANTED, chart=ChartAsk("", "tiny", "1.0.0", url=url))
    made = {"record": record(1, "deployed", OLDER.digest), "made_from": before}
    assert plan_for(after, **made) == Upgrade("values changed: message")


@pytest.mark.parametrize(
    ("policies", "observed", "plan"),
    [
        pytest.param(["Observe"], {}, Stop, id="observe only: nothing is made"),
        pytest.param(
            ["Observe"], {"record": FOREIGN}, Rest, id="observe only: what is there is fine"
        ),
        pytest.param(
            ["Observe", "Create", "Delete"],
            {"record": record(1, "deployed", "other")},
            Rest,
            id="without Update a difference is not one",
        ),
        pytest.param(["Observe", "Update"], {}, Stop, id="without Create nothing is made"),
        pytest.param(["*"], {}, Install, id="everything is allowed by default"),
    ],
)
def test_management_policies(policies, observed, plan):
    wanted = desired(release({"message": "hello"}, policies=policies))
    assert isinstance(plan_for(wanted, **observed), plan)


@pytest.mark.parametrize(
    ("policies", "deletion_policy", "deletes"),
    [
        (["*"], "Delete", True),
        (["*"], "Orphan", False),
        (["Observe"], "Delete", False),
        (["Observe", "Delete"], "Orphan", True),
        (["Observe", "Create", "Update"], "", False),
    ],
)
def test_what_happens_to_the_helm_release_on_delete(policies, deletion_policy, deletes):
    gone = desired(release(deleted=True, policies=policies, deletion_policy=deletion_policy))
    plan = plan_for(gone, record=record(1, "deployed", gone.digest))
    assert isinstance(plan, Uninstall if deletes else LetGo)


def test_policies_without_observe_are_refused_by_name():
    with pytest.raises(ValueError, match=r"spec\.managementPolicies"):
        desired(release(policies=["Create"]))


def test_no_policies_at_all_means_paused():
    assert plan_for(desired(release(policies=[]))) == Rest("paused")


def test_an_instance_that_lives_is_not_robbed():
    pending = record(1, "pending-install", WANTED.digest, owner="other.1.abc")
    assert isinstance(plan_for(record=pending, owner_alive=True), Wait)
    assert isinstance(plan_for(record=pending, owner_alive=False), Unlock)


def test_a_refusal_holds_up_nothing_once_its_cause_is_gone():
    refused = replace(failed(9), only_refused=True)
    assert isinstance(plan_for(attempts=refused), Install)


def test_a_request_ends_the_backoff():
    impatient = replace(failed(3), asked_for_now=True)
    assert isinstance(plan_for(attempts=impatient), Install)


def test_a_person_who_uninstalls_is_not_raced():
    theirs = record(1, "uninstalling", seen=NOW - timedelta(minutes=1))
    assert isinstance(plan_for(record=theirs), Wait)
    assert isinstance(plan_for(GONE, record=theirs), Wait)
    died = record(1, "uninstalling", seen=NOW - UNINSTALL_PATIENCE)
    assert isinstance(plan_for(record=died), Uninstall)
    ours = record(1, "uninstalling", WANTED.digest, seen=NOW)
    assert isinstance(plan_for(record=ours), Uninstall)
