"""What footers of new files say besides their columns: what those of all old ones say, and what holds of all rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..dataset.geo_notes import united_geo_notes
from ..dataset.layout import FileFacts
from ..json_columns import parse_object

__all__ = ["files_of_old_calendars", "united_keys"]

Keys = Mapping[str, bytes]

_GEO = "geo"
_ROW_METADATA = "org.apache.spark.sql.parquet.row.metadata"
_VERSION, _ZONE = "org.apache.spark.version", "org.apache.spark.timeZone"
_OLD_DATES, _OLD_INT96 = "org.apache.spark.legacyDateTime", "org.apache.spark.legacyINT96"
# Before these, Spark counted days, and those of INT96, by the calendar that was Julian before 1582.
_FIRST_OF_DATES, _FIRST_OF_INT96 = b"3.0.0", b"3.1.0"


class Calendar(NamedTuple):
    """How Spark takes the days of a file: by the old calendar or not, and in which zone its moments were shifted."""

    old_dates: bool
    old_int96: bool
    zone: bytes | None

    @classmethod
    def of(cls, keys: Keys) -> Calendar:
        """Find it as Spark does; files of others are taken for new ones."""
        version = keys.get(_VERSION)
        if version is None:
            return cls(False, False, None)
        old_dates = version < _FIRST_OF_DATES or _OLD_DATES in keys
        old_int96 = version < _FIRST_OF_INT96 or _OLD_INT96 in keys
        return cls(old_dates, old_int96, keys.get(_ZONE) if old_dates or old_int96 else None)


def files_of_old_calendars(files: Iterable[FileFacts]) -> list[FileFacts]:
    """Give the files whose days and moments Spark takes for others than those of the rest; none where all are alike.

    Parameters
    ----------
    files : iterable of FileFacts
        All files whose rows are put together.
    """
    found = [(file, Calendar.of(dict(file.keys))) for file in files if file.num_rows]
    if len({calendar for _, calendar in found}) < 2:
        return []
    return [file for file, calendar in found if calendar.old_dates or calendar.old_int96]


def united_keys(files: Sequence[FileFacts], columns: Sequence[str]) -> dict[str, str | bytes]:
    """Give the keys of footers whose values are the same in all files, and those that can be made of all.

    Parameters
    ----------
    files : sequence of FileFacts
        The files; those without rows do not count, unless there are no others.
    columns : sequence of str
        The columns of the new files, in their order.

    Returns
    -------
    dict of str to (str or bytes)
        What is said of the rows of one file (an extent of GeoParquet) is not in it. Where some files are of Spark's
        old calendar and others are not, it is that of today: see `files_of_old_calendars`.

    Raises
    ------
    SchemaError
        When geometries of a column have different coordinate systems.
    """
    kinds = dict.fromkeys(file.keys for file in files if file.num_rows) or dict.fromkeys(file.keys for file in files)
    found = list(map(dict, kinds))
    first = found[0] if found else {}
    made: dict[str, str | bytes] = {key: value for key, value in first.items()
                                    if all(other.get(key) == value for other in found)}  # fmt: skip
    for names, unite in _UNITED:
        if any(name in keys for keys in found for name in names):
            made = {key: value for key, value in made.items() if key not in names} | unite(found, columns)
    return made


# --- Spark's ----------------------------------------------------------------------------------------------------------


def _calendar(found: Sequence[Keys], columns: Sequence[str]) -> dict[str, str | bytes]:
    """Say by which calendar days are to be taken."""
    versions = [keys[_VERSION] for keys in found if _VERSION in keys]
    if len({Calendar.of(keys) for keys in found}) > 1:  # no day is in doubt, or this has been refused
        newest = max(versions)
        return {} if newest < _FIRST_OF_DATES else {_VERSION: newest}
    made: dict[str, str | bytes] = {_VERSION: min(versions)} if versions else {}
    return made | {key: keys[key] for keys in found for key in (_OLD_DATES, _OLD_INT96, _ZONE) if key in keys}


def _row_metadata(found: Sequence[Keys], columns: Sequence[str]) -> dict[str, str | bytes]:
    """Unite what Spark noted of the types of columns: nothing, unless all files agree about each one."""
    known: dict[str, Any] = {}
    for keys in found:
        fields = (parse_object(keys.get(_ROW_METADATA)) or {}).get("fields")
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
    return {_ROW_METADATA: json.dumps({"type": "struct", "fields": fields})}


# --- GeoParquet's -----------------------------------------------------------------------------------------------------


def _geo(found: Sequence[Keys], columns: Sequence[str]) -> dict[str, str | bytes]:
    """Unite what is said of geometries: kinds of which there may be some, and no extent."""
    stored = [keys[_GEO] for keys in found if _GEO in keys]
    if len(found) == 1:
        return {_GEO: stored[0]}
    united = parse_object(united_geo_notes([("", value) for value in stored], columns))
    if united is None:
        return {}
    for name, notes in united["columns"].items():
        of_files = [_notes_of(value, name) for value in stored]
        kinds = [some if isinstance(some := each.get("geometry_types"), list) else [] for each in of_files]
        known = len(stored) == len(found) and all(kinds)
        notes["geometry_types"] = sorted({str(kind) for some in kinds for kind in some}) if known else []
        coverings = [each.get("covering") for each in of_files]
        if coverings[0] is not None and coverings.count(coverings[0]) == len(found):
            notes["covering"] = coverings[0]
    return {_GEO: json.dumps(united)}


def _notes_of(value: bytes, name: str) -> Mapping[str, Any]:
    """Give what a value of the key says of a column, whatever else it may be."""
    columns = (parse_object(value) or {}).get("columns")
    notes = columns.get(name) if isinstance(columns, dict) else None
    return notes if isinstance(notes, dict) else {}


# Keys that are not just equal or not, and what makes one value of those of all files.
_UNITED: tuple[tuple[tuple[str, ...], Callable[[Sequence[Keys], Sequence[str]], dict[str, str | bytes]]], ...] = (
    ((_VERSION, _ZONE, _OLD_DATES, _OLD_INT96), _calendar),
    ((_ROW_METADATA,), _row_metadata),
    ((_GEO,), _geo),
)
