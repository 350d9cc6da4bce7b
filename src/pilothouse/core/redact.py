"""Take out of a text what came from a Secret."""

import base64
import json
import math
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

MASK = "***"
# Shorter strings are everywhere; masking them would hide the sentence and protect nothing.
SHORTEST = 3


def redact(text: str, secrets: Iterable[str]) -> str:
    """Return the text with every secret, in the spellings it may take on its way, masked."""
    if not text:
        return text
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
    """Return every leaf of a document as text: each of them may be the secret.

    Each part is visited once: by aliases a few lines of YAML contain themselves, or a billion leaves.
    """
    found: set[str] = set()
    seen: set[int] = set()
    ahead = [value]
    while ahead:
        one = ahead.pop()
        if not isinstance(one, dict | list):
            found |= _texts_of(one)
        elif id(one) not in seen:
            seen.add(id(one))
            ahead.extend(one.values() if isinstance(one, dict) else one)
    return found


def _texts_of(value: Any) -> set[str]:
    if value is None or isinstance(value, bool):
        return set()
    if isinstance(value, int | float):
        return {str(value), _as_templates_print(value)}
    # JSON in YAML may write one character as two halves.
    text = str(value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return {text, *(line.strip() for line in text.splitlines())} - {""}


def _as_templates_print(number: float) -> str:
    """Spell a number as Helm's templates do when it is large: 1.2345678e+07."""
    try:
        exact = float(number)
    except OverflowError:
        return str(number)
    if not math.isfinite(exact):
        return str(number)
    mantissa, _, exponent = f"{Decimal(repr(exact)).normalize():e}".partition("e")
    return f"{mantissa}e{int(exponent):+03d}"


def lines_in(text: str) -> set[str]:
    """Return every line, and what stands in it as a value, whether or not the whole can be read as YAML."""
    found = set()
    for line in text.splitlines():
        whole = line.strip()
        item = whole.removeprefix("- ").strip()
        _, named, value = item.partition(": ")
        for one in (whole, item, value if named else ""):
            bare = one.partition(" #")[0].strip()
            found |= {one, bare, bare.rstrip(",").strip("\"'")}
    return found - {""}


def assigned_in(text: str) -> set[str]:
    """Return the values that Helm makes of `name=<text>`: it splits at commas, reads lists, takes backslashes out."""
    found: list[str] = []
    at, in_value = 0, True
    while at < len(text):
        if in_value and text[at] == "{":
            last, at = ",", at + 1
            while last == ",":
                part, last, at = _until(text, at, ",}")
                found.append(part)
            at += text[at : at + 1] == ","
            in_value = False
            continue
        part, last, at = _until(text, at, "," if in_value else ",=")
        if in_value or last != "=":
            found.append(part)
        in_value = not in_value and last == "="
    # A number loses its plus.
    return strings_in([*found, *(part.removeprefix("+") for part in found)])


def _until(text: str, at: int, stops: str) -> tuple[str, str, int]:
    """Read up to one of the stops; return what was read, the stop (empty at the end), and where to go on."""
    read: list[str] = []
    while at < len(text):
        sign, at = text[at], at + 1
        if sign in stops:
            return "".join(read), sign, at
        if sign == "\\":
            sign, at = text[at : at + 1], at + 1
        read.append(sign)
    return "".join(read), "", at
