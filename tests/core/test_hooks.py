"""What failed hooks said last."""

from make import NOW, release

from pilothouse.core.conclude import conclude_action
from pilothouse.core.desired import Sources, desired
from pilothouse.core.hooks import as_text, with_tail
from pilothouse.core.observed import Observed
from pilothouse.core.outcome import Ended, Fault, HookLog, Outcome
from pilothouse.core.plan import Install
from pilothouse.faults import FaultKind

FAULT = Fault(FaultKind.HOOK, "hook Job migrate: failed")


def test_the_last_lines_are_in_the_message() -> None:
    log = HookLog("Job migrate", "one\ntwo\n\nthree\nfour\n")
    said = with_tail(FAULT, [log]).message
    assert said == "hook Job migrate: failed; its log ends: two ⏎ three ⏎ four"


def test_a_long_line_is_cut_in_front() -> None:
    said = with_tail(FAULT, [HookLog("Job migrate", "x" * 1000 + " the end")]).message
    assert said.endswith("the end")
    assert len(said) < 400


def test_without_a_log_nothing_is_said_of_it() -> None:
    away = HookLog("Job migrate", "", missing="the node is away")
    assert with_tail(FAULT, []) == FAULT
    assert with_tail(FAULT, [away]) == FAULT
    assert as_text([]) == ""
    assert as_text([away]) == "Job migrate: no log: the node is away"


def test_the_archive_keeps_the_log_without_secrets() -> None:
    asked = release()
    wanted = desired(asked, Sources(values={}, secrets=frozenset({"hunter2"})))
    outcome = Outcome(fault=FAULT, logs=(HookLog("Job migrate", "line\nlogging in with hunter2"),))
    ended = Ended(wanted, Install("not installed"), outcome)
    conclusion = conclude_action(asked, wanted, ended, Observed(), NOW)
    assert conclusion.entry
    assert conclusion.entry.logs == "Job migrate:\nline\nlogging in with ***"
    assert "logging in with ***" in conclusion.status.last_attempt.error
    assert "hunter2" not in str(conclusion)
