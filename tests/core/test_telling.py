"""The words of Events."""

from make import record, release

from pilothouse.core.desired import desired
from pilothouse.core.outcome import Ended, Outcome
from pilothouse.core.plan import Install, Upgrade
from pilothouse.core.telling import describe

MISMATCH = "Chart.lock says db 1.1.0, but charts/ has 1.2.4"


def test_what_is_odd_about_a_chart_is_told_with_its_installation() -> None:
    made = record(2, "deployed", "d", chart_name="tiny", chart_version="1.0.0")
    outcome = Outcome(made, warnings=(MISMATCH, "and more"))
    wanted = desired(release())
    installed = describe(Ended(wanted, Install("not installed"), outcome))
    assert installed == f"installed tiny 1.0.0 as web/shop; note: {MISMATCH}; note: and more"
    upgraded = describe(Ended(wanted, Upgrade("values changed"), outcome))
    assert upgraded.endswith(f"revision 2: values changed; note: {MISMATCH}; note: and more")
