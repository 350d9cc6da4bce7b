"""What came from Secrets for one Release, of late.

A Secret changes, or goes, while what was made with it before still runs, fails and talks: hooks of a revision that
is being removed or gone back to, pods, records. So for a while the earlier contents are kept from messages too.
"""

from collections import deque

# Each is another content of the Secrets; more than these have hardly left a revision behind.
MOST = 8


class Hidden:
    """Remembers the last contents; a restart forgets the earlier ones."""

    __slots__ = ("_contents", "secrets")

    def __init__(self) -> None:
        self._contents: deque[frozenset[str]] = deque(maxlen=MOST)
        # All of them together.
        self.secrets: frozenset[str] = frozenset()

    def note(self, content: frozenset[str]) -> frozenset[str]:
        """Take in what the Secrets hold now; return what must not be shown."""
        if not content or content in self._contents:
            return self.secrets
        self._contents.append(content)
        self.secrets = frozenset().union(*self._contents)
        return self.secrets
