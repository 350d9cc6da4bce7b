"""How often a Release wants its cluster asked."""

from datetime import timedelta

from pilothouse.api.release import POLL_INTERVAL, Release
from pilothouse.core.spelling import duration

# More often than this is a load, not a look.
SHORTEST = timedelta(seconds=1)
# Longer than any process lives, and short enough to be added to any date.
LONGEST = timedelta(days=365)


def poll_interval(release: Release) -> timedelta | None:
    """Return the interval; None when nobody asks for one."""
    asked = release.metadata.annotations.get(POLL_INTERVAL)
    return min(max(duration(asked, POLL_INTERVAL), SHORTEST), LONGEST) if asked else None
