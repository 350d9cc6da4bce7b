"""The bars of the soak."""

from collections.abc import Iterator
from typing import Any

from report import Row

FLAT = 1.1
# In less time nothing is warm yet, so that growth says nothing.
FLAT_FROM_MINUTES = 5.0


def rows_of(found: dict[str, Any]) -> list[Row]:
    """Judge what was found."""
    return [*_disturbed(found), *_left(found), *_memory(found)]


def _disturbed(found: dict[str, Any]) -> Iterator[Row]:
    deeds, count = found["deeds"], found["releases"]
    ends = ("brain killed", "brain stopped", "engine killed", "API server killed")
    hands = sum(n for what, n in deeds.items() if what not in {*ends, "edits"})
    yield Row(f"soak of {count} for {found['minutes']:g} min: edits", found["edits"], "", digits=0)
    yield Row("… objects edited or deleted by hand", hands, "", digits=0)
    for end in ends:
        yield Row(f"… {end}", deeds.get(end, 0), "times", digits=0)
    yield Row("… settled after", found["settled_s"], "s")


def _left(found: dict[str, Any]) -> Iterator[Row]:
    yield Row("… not as written", len(found["not_as_written"]), "objects", limit=0, digits=0)
    yield Row("… not ready", len(found["not_ready"]), "conditions", limit=0, digits=0)
    yield Row("… nothing asked for", len(found["unasked"]), "revisions", limit=0, digits=0)
    yield Row("… cut short and done again", len(found["cut_short"]), "revisions", digits=0)
    yield Row("… stirs after all", 0 if found["came_to_rest"] else 1, "", limit=0, digits=0)


def _memory(found: dict[str, Any]) -> Iterator[Row]:
    memory = found["memory"]
    limit = FLAT if found["memory_judged"] else None
    for which, words in (("run", "of the run"), ("last_lives", "of the last lives")):
        ratio = memory[which]["ratio"]
        text = f"… memory, last minute {words}"
        yield Row(text, ratio, "× the second", limit=limit, digits=2)
        yield Row(f"{text}, brain + engine", memory[which]["last_mb"], "MB", digits=0)
    for part in ("brain", "engine"):
        text = f"… memory of the last {part}"
        yield Row(f"{text}, last minute", memory[part]["ratio"], "× the second", digits=2)
