"""Take out of a text what came from a Secret."""

import base64
import json
from collections.abc import Iterable
from typing import Any

MASK = "***"
# Shorter strings are everywhere; masking them would hide the sentence and protect nothing.
SHORTEST = 3


def redact(text: str, secrets: Iterable[str]) -> str:
    """Return the text with every secret, in the spellings it may take on its way, masked."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) < SHORTEST:
            continue
        for spelling in _spellings(secret):
            text = text.replace(spelling, MASK)
    return text


def _spellings(secret: str) -> list[str]:
    encoded = base64.b64encode(secret.encode()).decode()
    escaped = json.dumps(secret)[1:-1]
    return [secret, escaped, encoded, encoded.rstrip("=")]


def strings_in(value: Any) -> set[str]:
    """Return every leaf of a document as text: each of them may be the secret."""
    if isinstance(value, dict):
        return set().union(*(strings_in(inner) for inner in value.values()))
    if isinstance(value, list):
        return set().union(*(strings_in(inner) for inner in value))
    if value is None or isinstance(value, bool):
        return set()
    text = str(value)
    return {text, *(line.strip() for line in text.splitlines())} - {""}
