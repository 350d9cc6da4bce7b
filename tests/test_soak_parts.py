"""The soak judges others, so what it judges by is tested: its plan, its memory, its eye for revisions."""

from collections import Counter

import pytest
from aftermath import Record, unasked
from memory import Sample, growth
from unrest import Touch, Victim, Written, plan

NAMES = [f"s{number}" for number in range(20)]
TEN_MINUTES = 600.0


def test_a_seed_tells_everything() -> None:
    assert plan(1, NAMES, TEN_MINUTES, rate=4) == plan(1, NAMES, TEN_MINUTES, rate=4)
    assert plan(1, NAMES, TEN_MINUTES, rate=4) != plan(2, NAMES, TEN_MINUTES, rate=4)


def test_hands_never_make_a_fight() -> None:
    """Five corrections of one place within five minutes would rightly be left."""
    touched: dict[tuple[str, str], list[Touch]] = {}
    for one in plan(3, NAMES, TEN_MINUTES, rate=40).touches:
        touched.setdefault((one.release, one.path.removesuffix("/scale")), []).append(one)
    for deeds in touched.values():
        for first in deeds:
            assert sum(0 <= one.at - first.at < 300 for one in deeds) < 5


def test_every_process_ends_and_none_while_memory_is_compared() -> None:
    ends = plan(4, NAMES, TEN_MINUTES, rate=1).ends
    counted = Counter(one.victim for one in ends)
    assert counted[Victim.ENGINE] == 10
    assert counted[Victim.BRAIN_KILLED] + counted[Victim.BRAIN_STOPPED] == 4
    assert counted[Victim.API_SERVER] == 6
    ours = [one.at for one in ends if one.victim is not Victim.API_SERVER]
    assert min(ours) > 120
    assert max(ours) < 360


def held(seconds: int, brain: float, engine: float, pids: tuple[int, int] = (1, 2)) -> Sample:
    return Sample(float(seconds), pids[0], brain, pids[1], engine)


def test_memory_is_compared_over_the_run_and_within_lives() -> None:
    first = [held(second, 100, 100) for second in range(300)]
    # Another engine, which grows though the run as a whole does not.
    later = [held(second, 100, 50 + (second - 300) / 6, (1, 3)) for second in range(300, 600)]
    found = growth([*first, *later], TEN_MINUTES)
    assert found["lives"] == {"brain": 1, "engine": 2}
    assert found["run"]["ratio"] < 1
    assert found["brain"]["ratio"] == pytest.approx(1)
    assert found["engine"]["ratio"] == pytest.approx(95 / 65, rel=0.01)
    assert found["last_lives"]["ratio"] > 1.1


def test_nothing_is_said_of_a_short_life() -> None:
    samples = [held(second, 10, 10, (1, 2 if second < 500 else 3)) for second in range(600)]
    assert growth(samples, TEN_MINUTES)["engine"]["ratio"] is None
    assert growth([], TEN_MINUTES)["run"]["ratio"] is None


def made(revision: int, message: str, status: str = "superseded", said: str = "") -> Record:
    complete = "Install complete" if revision == 1 else "Upgrade complete"
    return Record("s0", revision, status, message, said or complete)


ASKED = [made(1, "m0"), made(2, "one"), made(3, "two", "deployed")]


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (ASKED, ""),
        ([made(1, "m0"), made(2, "two", "deployed")], ""),  # taken together
        ([made(1, "m0"), made(2, "two", "failed"), made(3, "two", "deployed")], ""),  # cut short
        (
            [made(1, "m0"), made(2, "two", said="was left pending"), made(3, "two", "deployed")],
            "",  # cut short, and superseded by the upgrade that followed
        ),
        ([*ASKED, made(4, "two", "deployed")], "2 revisions for the one edit 'two'"),
        ([made(1, "m0"), made(2, "three", "deployed")], "which nobody wrote"),
        ([made(1, "m0"), made(9, "two", "deployed")], "9 revisions for 2 edits"),
        ([made(1, "m0"), made(2, "two", "pending-upgrade")], "is pending-upgrade"),
        (
            [made(1, "m0"), *(made(n, "two", "failed") for n in (2, 3, 4)), made(5, "two")],
            "3 revisions cut short by 2 ends",
        ),
    ],
)
def test_revisions_that_nothing_asked_for(records: list[Record], said: str) -> None:
    written = Written("two", messages={"m0", "one", "two"})
    found = "; ".join(unasked(records, written, ends=2))
    assert (said in found) if said else not found


def test_a_release_that_nobody_edited_stays_at_its_first_revision() -> None:
    written = Written("m0", messages={"m0"})
    assert not list(unasked([made(1, "m0", "deployed")], written, ends=2))
    again = [made(1, "m0", "failed"), made(2, "m0", "deployed")]
    assert "never edited, but at revision 2" in "; ".join(unasked(again, written, ends=2))
