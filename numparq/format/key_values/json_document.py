"""JSON in key-value metadata; a long `columns` list is parsed entry by entry."""

from __future__ import annotations

import json
from typing import Any

_START = '"columns": ['
_END = '}], "'
_LARGE = 20_000  # characters; shorter documents parse fast enough
_MAX_SEARCHES = 16  # each scans the text from its start


class LazyPandasColumns:
    """Entries of the `columns` list by ``field_name``, parsed on demand from its JSON text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._searches = 0

    def find(self, field: str) -> dict[str, Any] | None:
        """Return a column's entry; None if only `parse_all` can find it."""
        self._searches += 1
        if self._searches > _MAX_SEARCHES:
            return None
        place = self._text.find(f'"field_name": {json.dumps(field)}')
        start = self._text.rfind("{", 0, max(place, 0))
        if place < 0 or start < 0:
            return None
        try:
            entry, _ = json.JSONDecoder().raw_decode(self._text, start)
        except (ValueError, RecursionError):
            return None
        whole = isinstance(entry, dict) and "numpy_type" in entry and entry.get("field_name") == field
        return entry if whole else None

    def parse_all(self) -> list[Any]:
        """Parse the whole list; empty if it is invalid."""
        try:
            entries: list[Any] = json.loads(self._text)
        except (ValueError, RecursionError):
            return []
        return entries


def parse_pandas_json(value: str | bytes | None) -> tuple[dict[str, Any] | None, LazyPandasColumns | None]:
    """Parse a JSON object; a long `columns` list is returned apart, unparsed.

    The object is None if the value is not one; the list is None unless it was split off.
    """
    text = _text(value)
    parts = _cut(text) if text is not None and len(text) >= _LARGE else None
    return parts or (parse_json_object(text), None)


def parse_json_object(value: str | bytes | None) -> dict[str, Any] | None:
    """Parse a JSON object; None if the value is not one."""
    text = _text(value)
    if text is None:
        return None
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def is_nested_at_most(value: object, depth: int) -> bool:
    """Whether lists and dicts are nested at most so deep; Python cannot copy what is too deep."""
    level = [value]
    while level and depth:
        items = [list(item.values()) if isinstance(item, dict) else item for item in level]
        level = [inner for item in items if isinstance(item, (list, tuple)) for inner in item]
        depth -= 1
    return not level


def _text(value: str | bytes | None) -> str | None:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _cut(text: str) -> tuple[dict[str, Any], LazyPandasColumns] | None:
    start = text.find(_START)
    end = text.find(_END, max(start, 0))
    if start < 0 or end < 0:
        return None
    before = parse_json_object(text[:start].rstrip(", \n") + "}")
    after = parse_json_object("{" + text[end + len(_END) - 1 :])
    if before is None or after is None or "columns" in before or "columns" in after:
        return None
    return before | after, LazyPandasColumns(text[start + len(_START) - 1 : end + 2])
