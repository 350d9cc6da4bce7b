"""What is drift, what is done about it, and when a fight ends."""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from make import NOW, objects, record, release

from pilothouse.api.relations import DriftIgnore, DriftSpec, DriftTarget
from pilothouse.api.status import ReleaseStatus
from pilothouse.core.decide import decide
from pilothouse.core.desired import desired
from pilothouse.core.drift import Drift, Standing, judge, mode_for
from pilothouse.core.drift_known import (
    FIGHT_CORRECTIONS,
    Correction,
    Difference,
    Finding,
    Known,
    found,
    repaired,
    swept,
)
from pilothouse.core.drift_report import Mended, conclude_repair, news, with_drift
from pilothouse.core.drift_rules import DriftMode, DriftRules, Exemption, drift_rules, is_below
from pilothouse.core.observed import ObjectRef, Observed, Running, Suspect
from pilothouse.core.plan import Repair, Rest
from pilothouse.core.policy import Policies
from pilothouse.core.retry import Attempts
from pilothouse.core.state import StateName, classify

WEB = ObjectRef("apps/v1", "Deployment", "web", "web")
HOOK = ObjectRef("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "checks")
REPLICAS = Difference("/spec/replicas", "kubectl-edit")
TIER = Difference("/metadata/labels/tier", "kubectl-label")
IMAGE = Difference("/spec/template/spec/containers/0/image", "kubectl-set")
SUSPECT = Suspect(WEB, altered=5, sight=1)
RULES, ALL = DriftRules(), Policies()


def seen(*suspects: Suspect, digest: str = "d", **more) -> Observed:
    return Observed(
        record=record(1, "deployed", digest),
        objects=replace(objects(1), suspects=suspects or (SUSPECT,)),
        **more,
    )


def compared(*differences: Difference, suspect: Suspect = SUSPECT, **more) -> Known:
    return found(Known(), 1, [Finding(suspect, NOW, differences=differences, **more)])


def judged(known: Known, rules: DriftRules = RULES, observed: Observed | None = None) -> Drift:
    return judge(rules, ALL, observed or seen(), known, NOW + timedelta(seconds=1))


def test_what_is_suspect_is_compared_first():
    assert judged(Known()).compare == (SUSPECT,)
    assert judged(Known(revision=2, findings=compared(REPLICAS).findings)).compare == (SUSPECT,)


def test_a_difference_is_put_back_without_what_others_may_change():
    rules = DriftRules(exemptions=(Exemption(("/spec/replicas",), kind="Deployment"),))
    drift = judged(compared(REPLICAS, IMAGE), rules)
    assert drift.correct == (Correction(WEB, (IMAGE,), ("/spec/replicas",)),)
    assert judged(compared(REPLICAS), rules) == Drift()


@pytest.mark.parametrize(
    "observed",
    [
        seen(running=Running("Upgrade", "d")),
        replace(seen(), record=record(1, "failed", "d")),
    ],
)
def test_while_something_else_is_going_on_nothing_is_drift(observed):
    assert judged(compared(REPLICAS), observed=observed) == Drift()


UNSEEN = [replace(seen(), objects=None), replace(seen(), record=record(2, "deployed", "d"))]


@pytest.mark.parametrize("observed", UNSEEN)
def test_without_a_sight_of_its_objects_nothing_is_known(observed):
    assert judged(compared(REPLICAS), observed=observed) == Drift(unsettled=True)
    ignoring = DriftRules(DriftMode.IGNORE)
    assert judged(compared(REPLICAS), ignoring, observed) == Drift(), "nobody wants to know"


def test_what_was_found_outlasts_a_sight_that_is_lost():
    known = repaired(compared(REPLICAS), (Correction(WEB, (REPLICAS,)),), {WEB: "no"}, NOW)
    assert swept(known, None, NOW) == known
    gone = swept(known, (), NOW)
    assert (gone.findings, gone.failures) == ({}, {})


def test_an_autoscalers_replicas_and_an_injected_bundle_are_rightly_owned():
    scaled = replace(SUSPECT, scaled=True)
    assert judged(compared(REPLICAS, suspect=scaled), observed=seen(scaled)) == Drift()
    told = compared(REPLICAS, scaled=True)
    assert judged(told) == Drift(), "who compared knew it, though the eyes may not see autoscalers"
    assert judged(compared(REPLICAS, TIER, scaled=True)).correct == (
        Correction(WEB, (TIER,), ("/spec/replicas",)),
    )
    gone = compared(REPLICAS, suspect=scaled, scaled=True)
    assert judged(gone).compare == (SUSPECT,), "its autoscaler is gone"
    hook = Suspect(HOOK, 5, 1)
    bundle = Difference("/webhooks/0/clientConfig/caBundle", "cainjector")
    assert judged(compared(bundle, suspect=hook), observed=seen(hook)) == Drift()
    elsewhere = compared(Difference("/data/caBundle"))
    assert judged(elsewhere).correct


def test_a_job_that_was_to_go_is_not_made_again():
    gone = Suspect(ObjectRef("batch/v1", "Job", "web", "migrate"))
    known = compared(suspect=gone, missing=True, expires=True)
    assert judged(known, observed=seen(gone)) == Drift()
    known = compared(suspect=gone, missing=True)
    assert judged(known, observed=seen(gone)).correct[0].differences == (Difference(""),)


def test_modes():
    ours, foreign = record(1, "deployed", "d"), record(1, "deployed")
    correct, warn, ignore = DriftMode.CORRECT, DriftMode.WARN, DriftMode.IGNORE
    for rules, policies, held, wanted in [
        (DriftRules(), ALL, ours, correct),
        (DriftRules(), ALL, foreign, warn),
        (DriftRules(correct, explicit=True), ALL, foreign, correct),
        (DriftRules(ignore), ALL, foreign, ignore),
        (DriftRules(warn), ALL, ours, warn),
        (DriftRules(correct, explicit=True), Policies(update=False), ours, warn),
    ]:
        assert mode_for(rules, policies, held) is wanted


def test_what_is_the_owners_already_is_looked_at_when_it_is_written_again():
    scaled = replace(SUSPECT, scaled=True)
    known = compared(REPLICAS, suspect=scaled)
    warn = DriftRules(DriftMode.WARN)
    assert judged(known, warn, seen(scaled)) == Drift(), "nothing happened: nothing is asked"
    written = replace(scaled, sight=2)  # the label that was theirs, and right, is changed again
    assert judged(known, warn, seen(written)).compare
    ignoring = replace(warn, exemptions=(Exemption(("/spec/replicas",)),))
    assert judged(compared(REPLICAS), ignoring, seen(replace(SUSPECT, sight=2))).compare
    known = found(known, 1, [Finding(written, NOW, differences=(REPLICAS, TIER))])
    (stands,) = judged(known, warn, seen(written)).stands
    assert (stands.why, stands.differences) == (Standing.WARN, (TIER,))
    assert judged(compared(REPLICAS), ignoring, seen(replace(SUSPECT, altered=6))).compare


@pytest.mark.parametrize("scaled", [False, True])
def test_an_object_that_is_always_written_is_looked_at_ever_more_rarely(scaled):
    known, now, looks = compared(REPLICAS), NOW, 0
    warn = DriftRules(DriftMode.WARN)
    for second in range(3600):
        now = NOW + timedelta(seconds=second)
        suspect = replace(SUSPECT, sight=second + 2, scaled=scaled)
        if judge(warn, ALL, seen(suspect), known, now).compare:
            looks += 1
            known = found(known, 1, [Finding(suspect, now, differences=(REPLICAS,))])
    assert looks < 30


def test_a_repair_is_not_judged_by_what_was_seen_before_it():
    known = repaired(compared(REPLICAS), (Correction(WEB, (REPLICAS,)),), {}, NOW)
    assert judged(known).compare == ()
    later = NOW + timedelta(seconds=3)
    assert judge(RULES, ALL, seen(), known, later).compare, "the eyes should have said so by then"
    assert judged(known, observed=seen(replace(SUSPECT, sight=2))).compare


def test_what_a_repair_leaves_still_stands():
    fought = (Correction(WEB, (REPLICAS,)),)
    known = compared(REPLICAS)
    for _ in range(FIGHT_CORRECTIONS):
        known = repaired(known, fought, {}, NOW)
    known = found(known, 1, [Finding(SUSPECT, NOW, differences=(REPLICAS, IMAGE))])
    drift = judged(known)
    assert drift.correct == (Correction(WEB, (IMAGE,), ("/spec/replicas",)),)
    after = judged(repaired(known, drift.correct, {}, NOW))
    assert (after.stands, after.correct, after.unsettled) == (drift.stands, (), False)


def test_a_failed_repair_stands_and_is_tried_again_later():
    known = repaired(compared(REPLICAS), (Correction(WEB, (REPLICAS,)),), {WEB: "no"}, NOW)
    drift = judged(known)
    assert (drift.correct, drift.stands[0].why, drift.stands[0].message) == (
        (),
        Standing.FAILED,
        "no",
    )
    assert drift.until
    assert judge(RULES, ALL, seen(), known, drift.until).correct


def fight(every: float, seconds: int) -> list[float]:
    """Somebody sets replicas again, so many seconds after each correction; when it was put back."""
    known, corrections, sight = Known(), [], 0
    second = 0.0
    while second < seconds:
        now = NOW + timedelta(seconds=second)
        sight += 1
        suspect = Suspect(WEB, 5, sight)
        known = swept(known, (suspect,), now)
        known = found(known, 1, [Finding(suspect, now, differences=(REPLICAS,))])
        drift = judge(RULES, ALL, seen(suspect), known, now)
        if drift.correct:
            corrections.append(second)
            known = repaired(known, drift.correct, {}, now)
            known = swept(known, (), now)
        second += every
    return corrections


@given(st.integers(5, 60))
@settings(max_examples=20)
def test_a_fight_is_stopped_and_tried_again_ever_more_slowly(every):
    times = fight(every, 4 * 3600)
    assert len(times) <= FIGHT_CORRECTIONS + 6
    gaps = [after - before for before, after in pairwise(times[4:])]
    assert gaps[0] >= 600
    assert gaps == sorted(gaps)


def test_rare_corrections_are_no_fight():
    assert len(fight(every=100, seconds=3600)) == 36


def test_a_place_that_was_quiet_for_long_is_forgiven():
    known = Known()
    correction = (Correction(WEB, (REPLICAS,)),)
    for second in range(5):
        known = repaired(known, correction, {}, NOW + timedelta(seconds=second))
    known = repaired(known, correction, {}, NOW + timedelta(hours=1))
    assert known.disputes[WEB, "/spec/replicas"].until is None


def test_a_second_fight_over_a_place_is_told_as_the_first_was():
    known, said = Known(), []
    for start in (NOW, NOW + timedelta(hours=1)):
        for second in range(FIGHT_CORRECTIONS + 2):
            now = start + timedelta(seconds=second)
            suspect = replace(SUSPECT, sight=SUSPECT.sight + second)
            known = swept(known, (suspect,), now)
            known = found(known, 1, [Finding(suspect, now, differences=(REPLICAS,))])
            drift = judge(RULES, ALL, seen(suspect), known, now)
            said += [one.reason for one in news(release(), drift, (), known.named)]
            known = repaired(known, drift.correct, {}, now)
            places = {(one.ref, place.path) for one in drift.stands for place in one.differences}
            known = replace(known, named=known.named | places)
    assert said == ["DriftFight", "DriftFight"]


def test_drift_is_a_state_of_its_own_and_is_repaired():
    wanted = desired(release())
    correction = Correction(WEB, (REPLICAS, IMAGE))
    observed = replace(
        seen(digest=wanted.digest), drift=Drift(correct=(correction,)), version_told=True
    )
    state = classify(wanted, observed, NOW)
    assert state.name is StateName.DRIFTED
    assert state.reason == (
        "/spec/replicas, /spec/template/spec/containers/0/image of Deployment web were changed "
        "by kubectl-edit, kubectl-set"
    )
    plan = decide(wanted, observed, state, Attempts(), NOW)
    assert plan == Repair((correction,), state.reason)
    paused = desired(release(annotations={"crossplane.io/paused": "true"}))
    assert decide(paused, observed, state, Attempts(), NOW) == Rest("paused")


def told(
    known: Known, status: ReleaseStatus, rules: DriftRules = RULES
) -> tuple[list[str], ReleaseStatus]:
    drift = judged(known, rules)
    it = release(status=status)
    notices = news(it, drift, (), known.named)
    return [one.message for one in notices], with_drift(it, status, drift, (), NOW)


def test_what_stands_is_told_once():
    warn = DriftRules(DriftMode.WARN)
    said, status = told(compared(REPLICAS), ReleaseStatus(), warn)
    assert said == ["/spec/replicas of Deployment web was changed by kubectl-edit"]
    (listed,) = status.drift
    assert (listed.paths, listed.manager, listed.state) == (
        ["/spec/replicas"],
        "kubectl-edit",
        "Warn",
    )
    again, same = told(compared(REPLICAS), status, warn)
    assert (again, same) == ([], status)
    more, status = told(compared(REPLICAS, IMAGE), status, warn)
    assert len(more) == 1
    _, status = told(compared(), status, warn)
    assert status.drift == []
    assert [(one.type, one.status, one.reason) for one in status.conditions] == [
        ("Drifted", "False", "NoDrift")
    ]


def fails(known: Known, times: int) -> Known:
    for number in range(times):
        known = found(known, 1, [Finding(SUSPECT, NOW, fault=f"refused {number}")])
    return known


@pytest.mark.parametrize(
    "known",
    [Known(), fails(compared(REPLICAS), 1), fails(compared(REPLICAS), 2), fails(Known(), 2)],
)
@pytest.mark.parametrize("mode", [DriftMode.WARN, DriftMode.CORRECT])
def test_what_is_not_known_changes_nothing_that_was_said(known, mode):
    warn = DriftRules(DriftMode.WARN)
    _, status = told(compared(REPLICAS), ReleaseStatus(), warn)
    drift = judged(known, DriftRules(mode))
    assert (drift.unsettled, drift.correct) == (True, ())
    assert told(known, status, DriftRules(mode)) == ([], status)
    assert told(known, ReleaseStatus(), DriftRules(mode)) == ([], ReleaseStatus())
    assert told(compared(REPLICAS), status, warn) == ([], status), "it was told before"


def test_what_is_compared_before_it_is_put_back_is_not_called_right():
    drift = judged(compared(REPLICAS), observed=seen(replace(SUSPECT, sight=2)))
    assert (drift.unsettled, bool(drift.compare), drift.correct) == (True, True, ())
    drift = judged(compared(), observed=seen(replace(SUSPECT, sight=2)))
    assert (drift.unsettled, bool(drift.compare)) == (True, True), "it was right, and is written"


def test_one_that_is_not_known_keeps_the_others_from_being_told_twice():
    other = Suspect(replace(WEB, name="other"), 5, 1)
    drift = judged(compared(REPLICAS), DriftRules(DriftMode.WARN), seen(SUSPECT, other))
    assert (drift.unsettled, drift.compare, len(drift.stands)) == (True, (other,), 1)
    it = release()
    assert news(it, drift, (), frozenset()) == []
    assert with_drift(it, it.status, drift, (), NOW) == it.status


def test_a_comparison_that_keeps_failing_is_told_beside_what_is_known():
    warn = DriftRules(DriftMode.WARN)
    _, status = told(compared(REPLICAS), ReleaseStatus(), warn)
    said, status = told(fails(compared(REPLICAS), 3), status, warn)
    changed = "/spec/replicas of Deployment web was changed by kubectl-edit"
    assert (said, status.conditions[0].message) == (
        [],
        f"{changed}, and cannot be compared again: refused 2",
    )
    said, status = told(fails(compared(REPLICAS), 3), status)
    assert status.conditions[0].message == f"{changed}, and cannot be put back: refused 2"
    _, status = told(fails(Known(), 3), status, warn)
    assert status.conditions[0].message == "Deployment web cannot be compared: refused 2"
    after = found(fails(compared(REPLICAS), 3), 1, [Finding(SUSPECT, NOW, differences=(IMAGE,))])
    assert judged(after).correct == (Correction(WEB, (IMAGE,)),)


def test_a_release_that_never_drifted_says_nothing_of_it():
    assert told(Known(), ReleaseStatus()) == ([], ReleaseStatus())


def test_no_secret_is_told():
    secret = release()
    wanted = replace(desired(secret), secrets=frozenset({"hunter2hunter2"}))
    mended = Mended(
        wanted, (Correction(WEB, (REPLICAS,)),), 3, NOW, {WEB: "refused: hunter2hunter2"}
    )
    entry, notices = conclude_repair(secret, mended, NOW)
    assert (entry.action, entry.revision) == ("Repair", 3)
    assert "hunter2" not in entry.error + notices[0].message
    assert entry.error.startswith("refused")


def test_rules_are_read_from_the_release():
    it = release()
    assert drift_rules(it, "Warn") == DriftRules(DriftMode.WARN)
    given_rule = DriftIgnore(paths=["/data"], target=DriftTarget(kind="ConfigMap", name="a*"))
    spec = replace_drift(it, DriftSpec(mode="Correct", ignore=[given_rule]))
    rules = drift_rules(spec, "Ignore")
    assert (rules.mode, rules.explicit) == (DriftMode.CORRECT, True)
    (one,) = rules.exemptions
    assert one.covers("v1", "ConfigMap", "web", "abc", "/data/key")
    assert not one.covers("v1", "ConfigMap", "web", "xyz", "/data/key")
    assert not one.covers("v1", "Secret", "web", "abc", "/data/key")
    with pytest.raises(ValueError, match=r"spec\.drift\.ignore\[0\]\.paths"):
        drift_rules(replace_drift(it, DriftSpec(ignore=[DriftIgnore(paths=["data"])])), "Correct")


def replace_drift(it, drift: DriftSpec):
    import msgspec

    return msgspec.structs.replace(it, spec=msgspec.structs.replace(it.spec, drift=drift))


@pytest.mark.parametrize(
    ("path", "pointer", "below"),
    [
        ("/spec/replicas", "/spec/replicas", True),
        ("/spec/replicas", "/spec", True),
        ("/spec/replicas", "", True),
        ("", "/", True),
        ("", "/spec", False),
        ("/spec", "/spec/replicas", False),
        ("/spec/replicasets", "/spec/replicas", False),
        ("/spec/containers/3/image", "/spec/containers/*/image", True),
        ("/spec/containers/3/args", "/spec/containers/*/image", False),
    ],
)
def test_pointers(path, pointer, below):
    assert is_below(path, pointer) is below
