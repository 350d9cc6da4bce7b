"""Makes `make` and the bench's HTTP client importable; property tests judge results, not the machine's speed."""

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parent
sys.path[:0] = [str(TESTS), str(TESTS.parent / "bench")]
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")
