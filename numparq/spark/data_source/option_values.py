"""Parse Spark's option values, which are text: sizes, counts, booleans, names, JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from numparq.keys.provider import check_provider_name

_UNITS = {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30}
# Microseconds by unit, as Spark writes durations; without a unit they are milliseconds.
_DURATIONS = {"us": 1, "ms": 10**3, "": 10**3, "s": 10**6, "m": 60 * 10**6, "min": 60 * 10**6}
_DURATIONS |= {"h": 3600 * 10**6, "d": 86400 * 10**6}
_DIRECTIONS = {"asc": False, "desc": True}
_NULLS = {"first": True, "last": False}
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")  # 18 digits always fit 64 bits


class UnquotedValueError(ValueError):
    """Wrong value that no message may quote, as it may be a key; the text says what the value should be."""


def parse_provider_name(text: str) -> str:
    """Parse the name of a key provider."""
    try:
        return check_provider_name(text.strip(), "")
    except ValueError:
        raise UnquotedValueError("the name of a key provider, package.module:attribute") from None


def parse_names(text: str) -> list[str]:
    """Parse ``a, b``, or ``["a", "b"]`` for names with commas."""
    if not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    found = _json(text)
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise ValueError("a list of names, separated by commas or as JSON")
    return found


def parse_bytes(text: str) -> int:
    """Parse a number of bytes: ``1000000``, ``64m``, ``1GB``."""
    digits = text.strip().lower().rstrip("bgkm")
    unit = _UNITS.get(text.strip().lower()[len(digits) :].strip(), 0)
    found = _whole(digits) * unit
    if not 1 <= found < 1 << 63:
        raise ValueError("a number of bytes, such as 67108864 or 64m")
    return found


def parse_int(text: str) -> int:
    """Parse an integer."""
    if not _WHOLE.fullmatch(text.strip()):
        raise ValueError("a whole number")
    return _whole(text)


def parse_count(text: str) -> int:
    """Parse a positive integer."""
    found = _whole(text)
    if found < 1:
        raise ValueError("a whole number of at least 1")
    return found


def parse_duration(text: str) -> int:
    """Parse a positive duration, such as ``7d``, as microseconds."""
    unit = text.strip().lower().lstrip("0123456789")
    found = _whole(text.strip().lower().removesuffix(unit)) * _DURATIONS.get(unit.strip(), 0)
    if not 1 <= found < 1 << 62:
        raise ValueError("a duration such as 7d, 12h, 30m or 10s")
    return found


def parse_fraction(text: str) -> float:
    """Parse a number between 0 and 1 (exclusive)."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < 1:
        raise ValueError("a number between 0 and 1")
    return found


def parse_bool(text: str) -> bool:
    """Parse ``true`` or ``false``."""
    if text.strip().lower() not in ("true", "false"):
        raise ValueError("true or false")
    return text.strip().lower() == "true"


def choice_parser(*words: str) -> Callable[[str], str]:
    """Return a parser of one of some words."""

    def parse(text: str) -> str:
        if text.strip().lower() not in words:
            raise ValueError(" or ".join(words))
        return text.strip().lower()

    return parse


def parse_json_object(text: str) -> dict[str, Any]:
    """Parse a JSON object."""
    found = _json(text)
    if not isinstance(found, dict):
        raise ValueError("a JSON object")
    return found


def per_column_parser(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a parser of one value for all columns, or of ``{"a": ..., "b": ...}``."""

    def parse_all(text: str) -> Any:
        if not text.lstrip().startswith("{"):
            return parse(text)
        return {
            name: parse(value if isinstance(value, str) else json.dumps(value))
            for name, value in parse_json_object(text).items()
        }

    return parse_all


def parse_sort_columns(text: str) -> list[tuple[str, bool, bool]]:
    """Parse ``a, b desc, c asc nulls first``; nulls come last by default, in either direction."""
    return [_sort_key(part) for part in parse_names(text)]


def _sort_key(text: str) -> tuple[str, bool, bool]:
    name = text
    words: list[str] = []
    while (word := name.rpartition(" ")[2].lower()) in (*_DIRECTIONS, *_NULLS, "nulls") and " " in name:
        words.insert(0, word)
        name = name.rpartition(" ")[0].rstrip()
    descending = _DIRECTIONS.get(words.pop(0), False) if words and words[0] in _DIRECTIONS else False
    if words and not (len(words) == 2 and words[0] == "nulls" and words[1] in _NULLS):
        raise ValueError("a list of columns to sort by, such as a, b desc, c nulls first")
    return name, descending, _NULLS[words[1]] if words else False


def _whole(text: str) -> int:
    """Return an integer; 0 for other text, also for what only Python accepts (``1_0``, digits of other scripts)."""
    return int(text) if _WHOLE.fullmatch(text.strip()) else 0


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
