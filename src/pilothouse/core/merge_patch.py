"""The merge patch (RFC 7386) between two values of one type."""

from typing import Any

import msgspec


def difference(before: msgspec.Struct, after: msgspec.Struct) -> dict[str, Any]:
    """Return the patch that turns one into the other; {} when they are equal."""
    if before == after:
        return {}
    return _between(msgspec.to_builtins(before), msgspec.to_builtins(after))


def _between(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    patch: dict[str, Any] = {name: None for name in old if name not in new}
    for name, value in new.items():
        held = old.get(name)
        if held == value:
            continue
        if isinstance(held, dict) and isinstance(value, dict):
            patch[name] = _between(held, value)
        else:
            patch[name] = value
    return patch
