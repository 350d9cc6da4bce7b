"""While an action waits, its status says for what."""

from make import NOW, release

from pilothouse.api.status import ReleaseStatus
from pilothouse.core.conclude import announce
from pilothouse.core.desired import desired
from pilothouse.core.observed import Running
from pilothouse.core.plan import Install
from pilothouse.core.progress import with_progress

WANTED = desired(release())


def messages(status: ReleaseStatus) -> set[str]:
    return {one.message for one in status.conditions}


def test_the_hook_that_is_waited_for_is_named_once() -> None:
    announced = announce(release(), WANTED, Install("not installed"), NOW)
    first = with_progress(
        announced, Running("Install", "", waiting=True, progress="hook Job db-1"), WANTED
    )
    assert messages(first) == {"installing: not installed; waiting for hook Job db-1"}
    second = with_progress(
        first, Running("Install", "", waiting=True, progress="hook Job web-1"), WANTED
    )
    assert messages(second) == {"installing: not installed; waiting for hook Job web-1"}
    assert with_progress(second, Running("Install", ""), WANTED) == announced
    assert with_progress(second, None, WANTED) == second


def test_only_what_is_being_done_has_progress() -> None:
    assert (
        with_progress(ReleaseStatus(), Running("Install", "", progress="x"), WANTED)
        == ReleaseStatus()
    )
