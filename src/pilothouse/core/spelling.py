"""Values, versions and durations as Helm, Go and people read them."""

import json
import re
from datetime import timedelta
from typing import Any

DEFAULT_TIMEOUT = timedelta(minutes=5)
# The longest that Go can hold, and so the engine.
LONGEST_DURATION = timedelta(microseconds=(2**63 - 1) // 1000)
# Beyond it, Helm's and Kubernetes' numbers are only nearly what was written.
_EXACT_INTEGERS = 2**53
_DURATION_PART = re.compile(r"(\d+\.?\d*|\.\d+)(h|ms|m|ns|us|µs|μs|s)")
_UNIT = {
    "h": 3600.0,
    "m": 60.0,
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ns": 1e-9,
}


def plain_version(version: str) -> str:
    """Return a version as semver compares it: no `v`, no build metadata."""
    return version.removeprefix("v").split("+", 1)[0]


def spelled(value: Any) -> str:
    """Spell a JSON value in the one way that equal values share; true is not 1, though Python thinks so."""
    return json.dumps(canonical(value), sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def canonical(value: Any) -> Any:
    """Return a JSON value in which equal numbers are spelled alike: 1 is 1.0, as a float holds them."""
    if isinstance(value, dict):
        return {str(key): canonical(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [canonical(inner) for inner in value]
    if isinstance(value, int) and abs(value) > _EXACT_INTEGERS:
        value = float(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def as_helm_reads(value: Any) -> Any:
    """Return a JSON value with its integers as floats: Helm reads every number of a document so.

    It shows in templates: a million from a values file prints as 1e+06, from `--set` as 1000000.
    """
    if isinstance(value, dict):
        return {key: as_helm_reads(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [as_helm_reads(inner) for inner in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def duration(text: str, field: str) -> timedelta:
    """Read a Go duration such as 1h30m or 90s; none, or none to speak of, is the default."""
    if text in {"", "0"}:
        return DEFAULT_TIMEOUT
    parts = _DURATION_PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        msg = f"{field}: {text!r} is not a duration such as 90s, 5m or 1h30m"
        raise ValueError(msg)
    seconds = sum(float(number) * _UNIT[unit] for number, unit in parts)
    if seconds > LONGEST_DURATION.total_seconds():
        msg = f"{field}: {text!r} is longer than any duration: 2562047h is the longest"
        raise ValueError(msg)
    return timedelta(seconds=seconds) or DEFAULT_TIMEOUT


def changes(before: dict[str, Any], after: dict[str, Any], limit: int = 5) -> str:
    """Name the value paths that differ: "image.tag, replicas", at most `limit` of them."""
    paths = sorted(_changed_paths(before, after, ""))
    shown = ", ".join(paths[:limit])
    return f"{shown} and {len(paths) - limit} more" if len(paths) > limit else shown


def _changed_paths(before: Any, after: Any, prefix: str) -> set[str]:
    if spelled(before) == spelled(after):
        return set()
    if not isinstance(before, dict) or not isinstance(after, dict):
        return {prefix or "all"}
    found: set[str] = set()
    for key in before.keys() | after.keys():
        path = f"{prefix}.{key}" if prefix else key or '""'
        if (key in before) != (key in after):
            found.add(path)  # a null is not nothing: it removes the chart's default
        else:
            found |= _changed_paths(before[key], after[key], path)
    return found
