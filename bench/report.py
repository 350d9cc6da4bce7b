"""The table and the JSON: what was measured, against what it is to be."""

import json
import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_HEAD = ("measure", "floor", "pilothouse", "bar", "ok?")


@dataclass(frozen=True, slots=True)
class Row:
    """One measure; without a limit it only informs."""

    measure: str
    value: float | None
    unit: str
    floor: float | None = None
    limit: float | None = None
    digits: int = 1

    @property
    def within(self) -> bool | None:
        """Whether the bar is met; None when there is none."""
        return None if self.limit is None or self.value is None else self.value <= self.limit

    def cells(self) -> tuple[str, ...]:
        """Return it as text."""
        verdict = {None: "", True: "yes", False: "MISSED"}[self.within]
        limit = "" if self.limit is None else f"≤ {self._text(self.limit)}"
        return (
            f"{self.measure}, {self.unit}",
            self._text(self.floor),
            self._text(self.value),
            limit,
            verdict,
        )

    def _text(self, number: float | None) -> str:
        return "" if number is None else f"{number:.{self.digits}f}"


def table(rows: Iterable[Row]) -> str:
    """Lay the rows out, in Markdown that reads well as it is."""
    lines = [_HEAD, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEAD))]
    rule = tuple("-" * width for width in widths)
    laid = [
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in (lines[0], rule, *lines[1:])
    ]
    return "\n".join(laid)


def machine() -> dict[str, Any]:
    """Say where and when this was measured."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory / 1024**3),
        "python": platform.python_version(),
        "kernel": platform.release(),
    }


def judged(found: dict[str, Any], rows: Iterable[Row]) -> str:
    """Return the table for programs: a line of JSON."""
    return json.dumps({"n": found["n"], "machine": found["machine"], "rows": _as_values(rows)})


def write(path: Path, found: dict[str, Any], rows: Iterable[Row]) -> None:
    """Write everything that was found."""
    path.write_text(json.dumps({**found, "rows": _as_values(rows)}, indent=2) + "\n")


def _as_values(rows: Iterable[Row]) -> list[dict[str, Any]]:
    return [
        {
            "measure": row.measure,
            "unit": row.unit,
            "floor": row.floor,
            "pilothouse": row.value,
            "limit": row.limit,
            "ok": row.within,
        }
        for row in rows
    ]
