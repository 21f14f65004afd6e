"""Merge the footer key-values of the files that a rewrite replaces."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numparq.dataset.schema_merge.key_values import merge_geo_metadata
from numparq.format.key_values.json_document import parse_json_object
from numparq.format.key_values.spark import (
    LEGACY_DATES,
    LEGACY_INT96,
    ROW_METADATA,
    TIME_ZONE,
    VERSION,
    drop_calendar,
)

from .layout import FileLayout

if TYPE_CHECKING:
    from numparq.format.key_values.spark import KeyValues

_GEO = "geo"


def merge_key_values(files: Sequence[FileLayout], columns: Sequence[str]) -> dict[str, str | bytes]:
    """Return the key-values that are equal in all files, and those that can be merged (Spark's, GeoParquet's).

    Files without rows count only if there are no others. Raise SchemaError if coordinate systems of a column differ.
    """
    kinds = dict.fromkeys(file.key_values for file in files if file.num_rows) or dict.fromkeys(
        file.key_values for file in files
    )
    found = list(map(dict, kinds))
    first = found[0] if found else {}
    made: dict[str, str | bytes] = {
        key: value for key, value in first.items() if all(other.get(key) == value for other in found)
    }
    for names, unite in _MERGE_RULES:
        if any(name in keys for keys in found for name in names):
            made = {key: value for key, value in made.items() if key not in names} | unite(found, columns)
    return made


# --- Spark ------------------------------------------------------------------------------------------------------------


def _merge_calendar(found: Sequence[KeyValues], columns: Sequence[str]) -> dict[str, str | bytes]:
    """Return the oldest of Spark's versions that tells of the calendar in which all files are read."""
    versions = [drop_calendar(keys)[VERSION] for keys in found if VERSION in keys]
    return {VERSION: min(versions)} if versions else {}


def _merge_row_metadata(found: Sequence[KeyValues], columns: Sequence[str]) -> dict[str, str | bytes]:
    """Merge Spark's row metadata by column; nothing unless the files agree and cover all columns."""
    known: dict[str, Any] = {}
    for keys in found:
        fields = (parse_json_object(keys.get(ROW_METADATA)) or {}).get("fields")
        if not isinstance(fields, list):
            return {}
        for field in fields:
            if not isinstance(field, dict) or not isinstance(field.get("name"), str):
                return {}
            before = known.setdefault(field["name"], field)
            if any(before.get(key) != field.get(key) for key in ("type", "metadata")):
                return {}
    if not known.keys() >= set(columns):
        return {}
    fields = [{**known[name], "nullable": True} for name in columns]
    return {ROW_METADATA: json.dumps({"type": "struct", "fields": fields})}


# --- GeoParquet -------------------------------------------------------------------------------------------------------


def _merge_geo(found: Sequence[KeyValues], columns: Sequence[str]) -> dict[str, str | bytes]:
    """Merge GeoParquet metadata without bounding boxes; geometry types are empty if any file's are unknown."""
    stored = [keys[_GEO] for keys in found if _GEO in keys]
    if len(found) == 1:
        return {_GEO: stored[0]}
    united = parse_json_object(merge_geo_metadata([("", value) for value in stored], columns))
    if united is None:
        return {}
    for name, notes in united["columns"].items():
        of_files = [_geo_column(value, name) for value in stored]
        kinds = [some if isinstance(some := each.get("geometry_types"), list) else [] for each in of_files]
        known = len(stored) == len(found) and all(kinds)
        notes["geometry_types"] = sorted({str(kind) for some in kinds for kind in some}) if known else []
        coverings = [each.get("covering") for each in of_files]
        if coverings[0] is not None and coverings.count(coverings[0]) == len(found):
            notes["covering"] = coverings[0]
    return {_GEO: json.dumps(united)}


def _geo_column(value: bytes, name: str) -> Mapping[str, Any]:
    """Return the GeoParquet metadata of a column; empty if missing or malformed."""
    columns = (parse_json_object(value) or {}).get("columns")
    notes = columns.get(name) if isinstance(columns, dict) else None
    return notes if isinstance(notes, dict) else {}


# Keys that are merged even if their values differ -> function that merges them.
_MERGE_RULES: tuple[
    tuple[tuple[str, ...], Callable[[Sequence[KeyValues], Sequence[str]], dict[str, str | bytes]]], ...
] = (
    ((VERSION, TIME_ZONE, LEGACY_DATES, LEGACY_INT96), _merge_calendar),
    ((ROW_METADATA,), _merge_row_metadata),
    ((_GEO,), _merge_geo),
)
