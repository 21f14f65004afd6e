"""Group files by the footer bytes that determine their columns."""

from __future__ import annotations

import binascii
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import NamedTuple

from numparq.errors import ParquetError
from numparq.format.key_values.range_bounds import without_range_bounds
from numparq.format.key_values.spark import SparkCalendar
from numparq.format.open_file import OpenFile

from .fields import SchemaField, fields_of
from .key_values import geo_schema_key

# Key-value metadata that describe columns. Merged schemas are cached across datasets if the groups are few and their
# metadata short.
SCHEMA_KEYS = ("ARROW:schema", "pandas", "PANDAS_ATTRS", "geo")
MAX_SHARED_BYTES, MAX_SHARED_GROUPS = 64 << 10, 16


# Opens the files whose footers differ from that of a file in their rows alone, itself included.
OpenAlike = Callable[[OpenFile], Sequence[OpenFile]]


class SchemaKey(NamedTuple):
    """Footer bytes that determine a file's columns; equal keys mean equal columns, not the reverse.

    Attributes
    ----------
    schema : hashable
        The SchemaElements.
    arrow_schema, pandas_metadata : bytes or None
        Arrow schema and pandas metadata, without the bounds of a RangeIndex.
    geo_metadata : str or None
        Key of the geometry columns (`geo_schema_key`).
    is_own : bool
        Whether numparq wrote the file.
    calendar : SparkCalendar
        Calendar of its days and instants.
    """

    schema: Hashable
    arrow_schema: bytes | None
    pandas_metadata: bytes | None
    geo_metadata: str | None
    is_own: bool
    calendar: SparkCalendar


def schema_key(file: OpenFile) -> SchemaKey:
    """Return the footer bytes that determine a file's columns."""
    file = file.model or file
    try:
        if file.is_alias:
            return _schema_key(file)
        if file.calendar is not None:
            return file.footer.cache.get_or_make(("schema key", file.calendar), lambda: _schema_key(file))
        known: SchemaKey | None = file.footer.schema_key
        if known is None:
            known = file.footer.schema_key = _schema_key(file)
        return known
    except ParquetError as error:
        error.where.setdefault("file", file.source.name)
        raise


def _schema_key(file: OpenFile) -> SchemaKey:
    part = file.footer.schema_elements
    schema: Hashable = part if part.is_cached else (part.schema_records.tobytes(), _names(file))
    keys = file.footer.key_value_metadata
    arrow = keys.get("ARROW:schema")
    known = None if arrow is None else _arrow_key(arrow)
    geometries = geo_schema_key(keys.get("geo"))
    pandas = _without_range(keys.get("pandas"))
    return SchemaKey(schema, known, pandas, geometries, file.is_written_by_numparq, file.schema.calendar)


def _names(file: OpenFile) -> bytes:
    """Return the footer's bytes from the first column name to the end of the last."""
    slot = file.footer.schema_layout.slots["name"].word
    places = file.footer.schema_records[:, slot : slot + 2]
    first, end = int(places[:, 0].min(initial=0)), int(places.sum(axis=1).max(initial=0))
    return file.footer.binary(max(first, 0), end)


def _arrow_key(value: bytes) -> bytes:
    try:
        return _without_range(binascii.a2b_base64(value)) or b""
    except binascii.Error:
        return value


def _without_range(value: bytes | None) -> bytes | None:
    return None if value is None else without_range_bounds(value)


class SchemaGroup:
    """Files with one schema key, represented by the first; `alike` opens the files that each of them stands for."""

    def __init__(self, file: OpenFile, key: SchemaKey, alike: OpenAlike | None = None) -> None:
        self.file = file
        self.opened = [file]
        self.key = key
        self._alike = alike
        self.name = file.source.name
        self.keys = file.footer.key_value_metadata

    @property
    def files(self) -> Sequence[OpenFile]:
        """All files, open."""
        alike = self._alike
        return self.opened if alike is None else [each for file in self.opened for each in alike(file)]

    @cached_property
    def fields(self) -> list[SchemaField | None]:
        """Fields of the file, by column position."""
        return fields_of(self.file)

    @property
    def content(self) -> Hashable | None:
        """Everything of this file that enters a merged schema, as a cache key; None if it is large."""
        part, notes = self.file.footer.schema_elements, [self.keys.get(name) for name in SCHEMA_KEYS]
        if not part.is_cached or sum(len(note or b"") for note in notes) > MAX_SHARED_BYTES:
            return None
        return part, *notes, self.key.calendar, self.file.is_written_by_numparq


def group_by_schema(
    files: Sequence[OpenFile], keys: Sequence[SchemaKey], alike: OpenAlike | None = None
) -> list[SchemaGroup]:
    """Group files by schema key, in order of first appearance."""
    found: dict[SchemaKey, SchemaGroup] = {}
    for file, key in zip(files, keys, strict=True):
        if key in found:
            found[key].opened.append(file)
        else:
            found[key] = SchemaGroup(file, key, alike)
    return list(found.values())


def have_same_columns(kinds: Sequence[SchemaGroup]) -> bool:
    """Whether all groups have the same columns, in any calendar.

    Their Arrow schemas may differ by the row counts of a RangeIndex.
    """
    first, *others = (kind.key._replace(arrow_schema=None, calendar=kind.key.calendar.without_rebase) for kind in kinds)
    return all(key == first and kind.fields == kinds[0].fields for key, kind in zip(others, kinds[1:], strict=True))
