"""Makes `make` and the bench's HTTP client importable; property tests judge results, not the machine's speed.

A suite that was started in the background, or under nohup, is deaf to Ctrl-C or to the end of its terminal, and so
would be every program that the tests start and then end that way.
"""

import signal
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parent
sys.path[:0] = [str(TESTS), str(TESTS.parent / "bench")]
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")
for number, usual in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)
