"""The metadata of GeoParquet of many files made one: kind and CRS of columns of geometries (key ``geo``)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ..errors import SchemaError
from ..json_columns import parse_object

__all__ = ["geo_key", "united_geo_notes"]

# What is said of the rows of one file.
_OF_ROWS = ("bbox", "geometry_types", "covering")


def geo_key(value: bytes | None) -> str | None:
    """Give what is equal for files whose columns of geometries are of the same kind; None for a file without."""
    document = parse_object(value)
    if document is None:
        return None
    return json.dumps([document.get("primary_column"), _columns(document)], sort_keys=True)


def united_geo_notes(found: Sequence[tuple[str, bytes]], columns: Collection[str]) -> bytes | None:
    """Unite the values of the key ``geo``.

    Parameters
    ----------
    found : sequence of (str, bytes)
        For each file that has the key its name, and the value.
    columns : collection of str
        The united columns.

    Returns
    -------
    bytes or None
        JSON without what is said of rows, made of the first; None where there is none.

    Raises
    ------
    SchemaError
        When a column has another CRS, or other edges, in two files: their coordinates do not belong together.
    """
    parsed = [(file, document) for file, document in ((file, parse_object(value)) for file, value in found) if document]
    if not parsed:
        return None
    known: dict[str, tuple[str, Any]] = {}
    for file, document in parsed:
        for name, notes in _columns(document).items():
            first, agreed = known.setdefault(name, (file, notes))
            if name in columns and notes != agreed:
                raise SchemaError(f"the geometries of the column have another CRS, or other edges, in {first!r}",
                                  file=file, column=name)  # fmt: skip
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
