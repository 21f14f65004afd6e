"""The pandas metadata of many files made one: what they say of columns that are the same in all of them."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from ..dtype_notes import LABEL
from ..json_columns import parse_object

__all__ = ["united_notes"]


def united_notes(
    documents: Sequence[bytes], columns: Collection[str], agreed: Collection[str], keeps_range: bool
) -> bytes | None:
    """Unite the values of the key ``pandas``.

    Parameters
    ----------
    documents : sequence of bytes
        Of the files that have the key, in their order.
    columns : collection of str
        The united columns.
    agreed : collection of str
        Those whose types are the same in all files that have them.
    keeps_range : bool
        Whether a RangeIndex is kept: of one file.

    Returns
    -------
    bytes or None
        JSON, made of the first; None where there is none. The index is made of columns only if all files have it so.
        Of a column that is widened only the label is left.
    """
    parsed = [document for document in map(parse_object, documents) if document is not None]
    if not parsed:
        return None
    entries: dict[str, dict[str, Any]] = {}
    for document in parsed:
        for name, entry in _entries(document).items():
            if name in columns:
                entries.setdefault(name, entry)
    made = {**parsed[0], "index_columns": _index(parsed, columns, keeps_range)}
    made["columns"] = [entry if name in agreed else _label_of(entry, name) for name, entry in entries.items()]
    return json.dumps(made).encode()


def _entries(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Give what is said of columns, by their names in the file; files of before 2018 do not say these."""
    listed = document.get("columns")
    found = [entry for entry in (listed if isinstance(listed, list) else []) if isinstance(entry, dict)]
    return {entry["field_name"]: entry for entry in found if isinstance(entry.get("field_name"), str)}


def _index(parsed: Sequence[dict[str, Any]], columns: Collection[str], keeps_range: bool) -> list[Any]:
    """Give the levels of the index, if all files name the same columns for them."""
    listed = [document.get("index_columns") for document in parsed]
    levels = [one if isinstance(one, list) else [] for one in listed]
    if keeps_range:
        return levels[0]
    names = [[level for level in one if isinstance(level, str)] for one in levels]
    same = all(one == names[0] for one in names) and all(name in columns for name in names[0])
    return names[0] if same else []


def _label_of(entry: dict[str, Any], name: str) -> dict[str, Any]:
    """Leave of an entry what does not depend on the column's type."""
    known = entry.get("metadata")
    label = {LABEL: known[LABEL]} if isinstance(known, dict) and LABEL in known else None
    return {"name": entry.get("name"), "field_name": name, "pandas_type": None, "numpy_type": None, "metadata": label}
