"""Files that were written alike: what tells, without looking at their columns, that these are the same."""

from __future__ import annotations

import binascii
import re
from collections.abc import Hashable
from typing import NamedTuple

from ..opened import OpenedFile
from .geo_notes import geo_key

__all__ = ["SchemaKey", "schema_key"]

# Of a RangeIndex, which counts the rows of the one file. pyarrow has the pandas metadata in its Arrow schema, too.
_RANGE = re.compile(rb'"(start|stop)": ?-?[0-9]+')


class SchemaKey(NamedTuple):
    """The bytes of a footer that tell of columns; of files of other ones, these may be the same nevertheless.

    Parameters
    ----------
    schema : hashable
        The SchemaElements.
    arrow_schema, notes : bytes or None
        The Arrow schema, and the pandas metadata, without the numbers of a RangeIndex.
    geometries : str or None
        What is noted of the kinds of geometries.
    is_own : bool
        Whether numparq wrote the file.
    """

    schema: Hashable
    arrow_schema: bytes | None
    notes: bytes | None
    geometries: str | None
    is_own: bool


def schema_key(file: OpenedFile) -> SchemaKey:
    """Give the bytes of a footer that tell of columns."""
    part = file.footer.schema_part
    schema: Hashable = part if part.is_shared else (part.schema_records.tobytes(), _names(file))
    keys = file.footer.key_value_metadata
    arrow = keys.get("ARROW:schema")
    known = None if arrow is None else _arrow_key(arrow)
    return SchemaKey(schema, known, _without_range(keys.get("pandas")), geo_key(keys.get("geo")), file.is_own)


def _names(file: OpenedFile) -> bytes:
    """Give the bytes of the footer from the first name to the last."""
    slot = file.footer.schema_layout.slots["name"].word
    places = file.footer.schema_records[:, slot : slot + 2]
    first, end = int(places[:, 0].min(initial=0)), int(places.sum(axis=1).max(initial=0))
    return file.footer.content(max(first, 0), end)


def _arrow_key(value: bytes) -> bytes:
    try:
        return _without_range(binascii.a2b_base64(value)) or b""
    except binascii.Error:
        return value


def _without_range(value: bytes | None) -> bytes | None:
    return None if value is None else _RANGE.sub(b"", value)
