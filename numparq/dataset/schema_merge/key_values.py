"""Merge the key-value metadata of many footers: the `pandas` and `geo` documents."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from numparq.errors import SchemaError
from numparq.format.arrow_type import ArrowType
from numparq.format.key_values.json_document import parse_json_object
from numparq.format.key_values.pandas_dtypes import LABEL_KEY

# Keys of a geometry column that describe the rows of one file.
_OF_ROWS = ("bbox", "geometry_types", "covering")

_COMPLEX = {"complex64", "complex128"}  # the longer name is the wider type
_NULLABLE = re.compile(r"U?Int(8|16|32|64)|Float(32|64)")

_NAMES = {("int", True): "Int", ("int", False): "UInt", ("float", True): "Float"}


def geo_schema_key(value: bytes | None) -> str | None:
    """Return a key that is equal for files with the same geometry columns; None without ``geo`` metadata."""
    document = parse_json_object(value)
    if document is None:
        return None
    return json.dumps([document.get("primary_column"), _columns(document)], sort_keys=True)


def merge_geo_metadata(found: Sequence[tuple[str, bytes]], columns: Collection[str]) -> bytes | None:
    """Merge the ``geo`` documents, given as (file name, value), for the merged ``columns``; None if there are none.

    Keys that describe rows are dropped. Raises SchemaError if a column's CRS or edges differ between files.
    """
    parsed = [
        (file, document) for file, document in ((file, parse_json_object(value)) for file, value in found) if document
    ]
    if not parsed:
        return None
    known: dict[str, tuple[str, Any]] = {}
    for file, document in parsed:
        for name, notes in _columns(document).items():
            first, agreed = known.setdefault(name, (file, notes))
            if name in columns and notes != agreed:
                raise SchemaError(
                    f"the CRS or edges of the geometries differ from those in {first!r}",
                    file=file,
                    column=name,
                )
    kept = {name: notes for name, (_, notes) in known.items() if name in columns}
    return json.dumps({**parsed[0][1], "columns": kept}).encode()


def _columns(document: Mapping[str, Any]) -> dict[str, Any]:
    listed = document.get("columns")
    columns = listed if isinstance(listed, Mapping) else {}
    return {
        name: {key: value for key, value in notes.items() if key not in _OF_ROWS}
        for name, notes in columns.items()
        if isinstance(notes, Mapping)
    }


def merge_pandas_metadata(
    documents: Sequence[bytes], columns: Mapping[str, ArrowType | None], agreed: Collection[str], keeps_range: bool
) -> bytes | None:
    """Merge the ``pandas`` documents of files for the merged ``columns``; None if there are none.

    A column not in ``agreed`` (same type in all files) keeps only its label, and its nullable dtype if all have one.
    """
    parsed = [document for document in map(parse_json_object, documents) if document is not None]
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
        if entries[name].get("name") is None:  # an index level may lack a name, a column may not
            entries[name] = {**entries[name], "name": name}
    made["columns"] = list(entries.values())
    try:
        return json.dumps(made).encode()
    except RecursionError:  # nested too deeply to encode, though it could be parsed
        return None


def _entries(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the column entries of a document by field name; files written before 2018 lack field names."""
    listed = document.get("columns")
    found = [entry for entry in (listed if isinstance(listed, list) else []) if isinstance(entry, dict)]
    return {entry["field_name"]: entry for entry in found if isinstance(entry.get("field_name"), str)}


def _index(parsed: Sequence[dict[str, Any]], columns: Collection[str], keeps_range: bool) -> list[Any]:
    """Return the index levels if all files name the same columns, else none."""
    listed = [document.get("index_columns") for document in parsed]
    levels = [one if isinstance(one, list) else [] for one in listed]
    if keeps_range:
        return levels[0]
    names = [[level for level in one if isinstance(level, str)] for one in levels]
    same = all(one == names[0] for one in names) and all(name in columns for name in names[0])
    return names[0] if same else []


def _former_levels(parsed: Sequence[dict[str, Any]], index: Collection[Any]) -> set[str]:
    """Return the columns that are index levels in some files, but not in the merged table."""
    listed = (document.get("index_columns") for document in parsed)
    found = {level for one in listed if isinstance(one, list) for level in one if isinstance(level, str)}
    return found - {level for level in index if isinstance(level, str)}


def _widened(
    entry: dict[str, Any], name: str, parsed: Sequence[dict[str, Any]], arrow_type: ArrowType | None
) -> dict[str, Any]:
    """Reduce a column's entry to what also holds for the common type."""
    known = entry.get("metadata")
    label = {LABEL_KEY: known[LABEL_KEY]} if isinstance(known, dict) and LABEL_KEY in known else None
    dtypes = {str(found[name].get("numpy_type")) for found in map(_entries, parsed) if name in found}
    numpy_type = None
    if arrow_type is not None and arrow_type.kind in ("int", "float") and all(map(_NULLABLE.fullmatch, dtypes)):
        numpy_type = f"{_NAMES[arrow_type.kind, arrow_type.signed]}{arrow_type.bit_width}"
    if dtypes <= _COMPLEX:
        numpy_type = max(dtypes, key=len)
    return {
        "name": entry.get("name"),
        "field_name": name,
        "pandas_type": None,
        "numpy_type": numpy_type,
        "metadata": label,
    }
