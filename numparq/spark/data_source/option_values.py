"""Parse Spark's option values, which are text: sizes, counts, booleans, names, JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

__all__ = [
    "choice_parser",
    "parse_bool",
    "parse_bytes",
    "parse_count",
    "parse_fraction",
    "parse_int",
    "parse_json_object",
    "parse_names",
    "parse_sort_columns",
    "per_column_parser",
]

_UNITS = {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30}
_DIRECTIONS = {"asc": False, "desc": True}
_NULLS = {"first": True, "last": False}
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")  # as many digits as 64 bits hold


def parse_names(text: str) -> list[str]:
    """Read ``a, b``, or ``["a", "b"]`` for names with commas."""
    if not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    found = _json(text)
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise ValueError("names, separated by commas or as a JSON list")
    return found


def parse_bytes(text: str) -> int:
    """Read bytes: ``1000000``, ``64m``, ``1GB``."""
    digits = text.strip().lower().rstrip("bgkm")
    unit = _UNITS.get(text.strip().lower()[len(digits) :].strip(), 0)
    found = _whole(digits) * unit
    if not 1 <= found < 1 << 63:
        raise ValueError("bytes, as 67108864 or 64m")
    return found


def parse_int(text: str) -> int:
    """Read a whole number."""
    if not _WHOLE.fullmatch(text.strip()):
        raise ValueError("a whole number")
    return _whole(text)


def parse_count(text: str) -> int:
    """Read a number from 1 on."""
    found = _whole(text)
    if found < 1:
        raise ValueError("a number from 1 on")
    return found


def parse_fraction(text: str) -> float:
    """Read a number between 0 and 1."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < 1:
        raise ValueError("a number between 0 and 1")
    return found


def parse_bool(text: str) -> bool:
    """Read ``true`` or ``false``."""
    if text.strip().lower() not in ("true", "false"):
        raise ValueError("true or false")
    return text.strip().lower() == "true"


def choice_parser(*words: str) -> Callable[[str], str]:
    """Give the function that reads one of some words."""

    def parse(text: str) -> str:
        if text.strip().lower() not in words:
            raise ValueError(" or ".join(words))
        return text.strip().lower()

    return parse


def parse_json_object(text: str) -> dict[str, Any]:
    """Read a JSON object."""
    found = _json(text)
    if not isinstance(found, dict):
        raise ValueError("a JSON object")
    return found


def per_column_parser(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Give the function that reads one value for all columns, or ``{"a": ..., "b": ...}`` with one for each."""

    def parse_all(text: str) -> Any:
        if not text.lstrip().startswith("{"):
            return parse(text)
        return {
            name: parse(value if isinstance(value, str) else json.dumps(value))
            for name, value in parse_json_object(text).items()
        }

    return parse_all


def parse_sort_columns(text: str) -> list[tuple[str, bool, bool]]:
    """Read ``a, b desc, c asc nulls first``; without a word nulls come last, whatever the direction."""
    return [_sort_key(part) for part in parse_names(text)]


def _sort_key(text: str) -> tuple[str, bool, bool]:
    name = text
    words: list[str] = []
    while (word := name.rpartition(" ")[2].lower()) in (*_DIRECTIONS, *_NULLS, "nulls") and " " in name:
        words.insert(0, word)
        name = name.rpartition(" ")[0].rstrip()
    descending = _DIRECTIONS.get(words.pop(0), False) if words and words[0] in _DIRECTIONS else False
    if words and not (len(words) == 2 and words[0] == "nulls" and words[1] in _NULLS):
        raise ValueError("columns to sort by: a, b desc, c nulls first")
    return name, descending, _NULLS[words[1]] if words else False


def _whole(text: str) -> int:
    """Give a whole number; 0 for what is none: Python would take ``1_0``, and digits of any script."""
    return int(text) if _WHOLE.fullmatch(text.strip()) else 0


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
