"""VARIANT metadata and values, decoded without recursion; every offset is checked."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import pairwise, starmap
from operator import lt
from typing import Any, NamedTuple

from numparq.errors import InvalidFileError, UnsupportedError
from numparq.util.pluralize import agree_noun, pluralize

from .primitives import ARRAY, HEADER_DECODERS, OBJECT, VERSION, decode_text


def decode(metadata: bytes, value: bytes) -> Any:
    r"""Decode a VARIANT value.

    Parameters
    ----------
    metadata : bytes
        Dictionary of field names.
    value : bytes
        Encoded value.

    Returns
    -------
    None, bool, int, float, str, bytes, list, dict, or another
        Also `decimal.Decimal`, `uuid.UUID`, `datetime.date`, `datetime.time` and `datetime.datetime` (in UTC if
        adjusted to it). Timestamps in nanoseconds are `pandas.Timestamp`; dates and timestamps outside the years 1 to
        9999 are `numpy.datetime64`, times outside of a day `numpy.timedelta64`.

    Raises
    ------
    InvalidFileError
        When the bytes are not a valid VARIANT.
    UnsupportedError
        When the version or a primitive type is unknown.

    Examples
    --------
    >>> from numparq.format import variant
    >>> variant.decode(b"\x01\x01\x00\x01a", b"\x02\x01\x00\x00\x02\x0c\x07")
    {'a': 7}
    """
    return decode_value(bytes(value), decode_metadata(bytes(metadata)))


def decode_metadata(metadata: bytes) -> list[str]:
    """Decode the metadata into field names by id.

    InvalidFileError if it is damaged; UnsupportedError for another version.
    """
    if not metadata:
        raise InvalidFileError("a variant has no metadata")
    header = metadata[0]
    if header & 15 != VERSION:
        raise UnsupportedError(f"the metadata of a variant has version {header & 15}; numparq reads version {VERSION}")
    width = (header >> 6) + 1
    count = int.from_bytes(metadata[1 : 1 + width], "little")
    first = 1 + width + (count + 1) * width
    if first > len(metadata):
        raise InvalidFileError(
            f"the metadata of a variant ends within the offsets of its {pluralize(count, 'field name')}"
        )
    offsets = _integers(metadata, 1 + width, count + 1, width)
    if offsets[0] != 0 or first + offsets[-1] != len(metadata) or any(start > end for start, end in pairwise(offsets)):
        raise InvalidFileError("the offsets in the metadata of a variant do not match its field names")
    return [decode_text(metadata, first + start, first + end) for start, end in pairwise(offsets)]


def decode_value(value: bytes, names: Sequence[str]) -> Any:
    """Decode a value, given the field names of its metadata; raises as `decode`."""
    if not value:
        raise InvalidFileError("the value of a variant is empty")
    scalar = HEADER_DECODERS[value[0]]
    if scalar is not None:
        return scalar(value, 0, len(value))
    out: list[Any] = [None]
    pending: list[tuple[Any, Any, int, int]] = [(out, 0, 0, len(value))]
    while pending:
        target, place, start, end = pending.pop()
        keys, starts, ends = read_fields(value, start, end, names)
        made: Any = [None] * len(keys) if isinstance(keys, range) else dict.fromkeys(keys)
        target[place] = made
        for key, first, last in zip(keys, starts, ends, strict=True):
            scalar = HEADER_DECODERS[value[first]]
            if scalar is None:
                pending.append((made, key, first, last))
            else:
                made[key] = scalar(value, first, last)
    return out[0]


class VariantFields(NamedTuple):
    """Fields of an object or elements of an array; start and end (exclusive) of each value."""

    keys: list[str] | range
    starts: Sequence[int]
    ends: Sequence[int]


def read_fields(value: bytes, start: int, end: int, names: Sequence[str]) -> VariantFields:
    """Locate the values of an object or array that spans `start` to `end` (exclusive).

    InvalidFileError if an offset or id is out of bounds, or two fields have the same name.
    """
    kind, header = value[start] & 3, value[start] >> 2
    is_object = kind == OBJECT
    offset_width, id_width = (header & 3) + 1, (header >> 2 & 3) + 1 if is_object else 0
    count_width = 4 if header >> (4 if is_object else 2) & 1 else 1
    position = start + 1 + count_width
    count = int.from_bytes(value[start + 1 : position], "little")
    first = position + count * id_width + (count + 1) * offset_width
    if first > end:
        raise InvalidFileError(
            f"{_KINDS[kind]} in a variant ends within the offsets of its {count} {agree_noun(count, 'value')}"
        )
    offsets = _integers(value, position + count * id_width, count + 1, offset_width)
    if first + offsets[-1] != end:
        raise InvalidFileError(f"{_KINDS[kind]} in a variant ends at byte {first + offsets[-1]} instead of byte {end}")
    keys = _field_names(_integers(value, position, count, id_width), names) if is_object else range(count)
    places = [first + offset for offset in offsets]
    starts, ends = places[:-1], places[1:]
    if offsets[0] != 0 or not all(starmap(lt, pairwise(offsets))):
        ends = _value_ends(starts, first, end)
    return VariantFields(keys, starts, ends)


_KINDS = {OBJECT: "an object", ARRAY: "an array"}


def _field_names(ids: Sequence[int], names: Sequence[str]) -> list[str]:
    """Return the field names of an object by id.

    Their order is not checked: writers differ, and nothing here depends on it.
    """
    try:
        keys = [names[number] for number in ids]
    except IndexError:
        raise InvalidFileError(
            f"an object in a variant has the field id {max(ids)}, but its metadata has "
            f"{pluralize(len(names), 'field name')}"
        ) from None
    if len(set(keys)) != len(keys):
        raise InvalidFileError("an object in a variant has two fields of one name")
    return keys


def _value_ends(starts: Sequence[int], first: int, end: int) -> list[int]:
    """Return the ends of values stored in another order than their offsets; they must tile the space."""
    order = sorted(starts)
    following = dict(pairwise([*order, end]))
    tiled = order[0] == first and order[-1] < end if order else first == end
    if not tiled or len(following) != len(starts):
        raise InvalidFileError("values in a variant overlap, or have gaps between them")
    return [following[start] for start in starts]


_FORMS = {1: "B", 2: "H", 4: "I"}


def _integers(data: bytes, position: int, count: int, width: int) -> Sequence[int]:
    """Read unsigned little-endian integers of 1 to 4 bytes."""
    end = position + count * width
    if width == 1:
        return data[position:end]
    if width == 3:
        return [int.from_bytes(data[place : place + 3], "little") for place in range(position, end, 3)]
    return struct.unpack_from(f"<{count}{_FORMS[width]}", data, position)
