"""The pandas metadata of many files made one: what they say of columns that are the same in all of them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ..arrow_schema import ArrowType
from ..dtype_notes import LABEL
from ..json_columns import parse_object

__all__ = ["united_notes"]

_COMPLEX = {"complex64", "complex128"}  # of which the longer name is that of the wider one
_NULLABLE = re.compile(r"U?Int(8|16|32|64)|Float(32|64)")


def united_notes(
    documents: Sequence[bytes], columns: Mapping[str, ArrowType | None], agreed: Collection[str], keeps_range: bool
) -> bytes | None:
    """Unite the values of the key ``pandas``.

    Parameters
    ----------
    documents : sequence of bytes
        Of the files that have the key, in their order.
    columns : mapping of str to (ArrowType or None)
        The united columns, and what their values are.
    agreed : collection of str
        Those whose types are the same in all files that have them.
    keeps_range : bool
        Whether a RangeIndex is kept: of one file.

    Returns
    -------
    bytes or None
        JSON, made of the first; None where there is none. The index is made of columns only if all files have it so.
        Of a column that is widened only the label is left, and that its numbers had a nullable dtype in all frames.
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
    for name in entries.keys() - set(agreed):
        entries[name] = _widened(entries[name], name, parsed, columns[name])
    for name in _former_levels(parsed, made["index_columns"]) & entries.keys():
        if entries[name].get("name") is None:  # a level needs no name, a column does
            entries[name] = {**entries[name], "name": name}
    made["columns"] = list(entries.values())
    try:
        return json.dumps(made).encode()
    except RecursionError:  # it was just not too deep to be parsed
        return None


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


def _former_levels(parsed: Sequence[dict[str, Any]], index: Collection[Any]) -> set[str]:
    """Give the columns that are levels of the index in some files, and not in the table."""
    listed = (document.get("index_columns") for document in parsed)
    found = {level for one in listed if isinstance(one, list) for level in one if isinstance(level, str)}
    return found - {level for level in index if isinstance(level, str)}


def _widened(
    entry: dict[str, Any], name: str, parsed: Sequence[dict[str, Any]], arrow_type: ArrowType | None
) -> dict[str, Any]:
    """Leave of an entry what holds for the wider type, too."""
    known = entry.get("metadata")
    label = {LABEL: known[LABEL]} if isinstance(known, dict) and LABEL in known else None
    dtypes = {str(found[name].get("numpy_type")) for found in map(_entries, parsed) if name in found}
    numpy_type = None
    if arrow_type is not None and arrow_type.kind in ("int", "float") and all(map(_NULLABLE.fullmatch, dtypes)):
        numpy_type = f"{_NAMES[arrow_type.kind, arrow_type.signed]}{arrow_type.bit_width}"
    if dtypes <= _COMPLEX:
        numpy_type = max(dtypes, key=len)
    return {"name": entry.get("name"), "field_name": name, "pandas_type": None, "numpy_type": numpy_type,
            "metadata": label}  # fmt: skip


_NAMES = {("int", True): "Int", ("int", False): "UInt", ("float", True): "Float"}
