"""The binary encoding of objects and arrays out of the bytes of their values, and of the metadata out of names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

from ..errors import LimitError
from .encoding import VERSION
from .scalars import ARRAY, BINARY, OBJECT, PRIMITIVE, SHORT_STRING, STRING

__all__ = ["array_bytes", "binary_bytes", "header_of", "metadata_bytes", "object_bytes", "string_bytes"]

_SORTED = 1 << 4
_MOST_SHORT = 63
_MOST_BYTES = (1 << 32) - 1


def header_of(kind: int) -> bytes:
    """Give the first byte of a value of a primitive type."""
    return bytes([kind << 2 | PRIMITIVE])


def string_bytes(text: bytes) -> bytes:
    """Encode a string; `text` is its UTF-8."""
    if len(text) <= _MOST_SHORT:
        return bytes([len(text) << 2 | SHORT_STRING]) + text
    return header_of(STRING) + _length(text) + text


def binary_bytes(value: bytes) -> bytes:
    """Encode a string of bytes."""
    return header_of(BINARY) + _length(value) + value


def _length(value: bytes) -> bytes:
    _check_size(len(value))
    return len(value).to_bytes(4, "little")


def _check_size(size: int) -> None:
    if size > _MOST_BYTES:
        raise LimitError(f"a variant would take {size:,} bytes, where its offsets count at most {_MOST_BYTES:,}")


def _width(largest: int) -> int:
    """Give the bytes that an unsigned integer takes, at least one."""
    _check_size(largest)
    return max(1, (largest.bit_length() + 7) // 8)


def _packed(numbers: Iterable[int], width: int) -> bytes:
    return bytes(numbers) if width == 1 else b"".join(number.to_bytes(width, "little") for number in numbers)


def metadata_bytes(names: Sequence[bytes]) -> bytes:
    """Encode metadata.

    Parameters
    ----------
    names : sequence of bytes
        The names of fields, in UTF-8, by their ids. Where they are sorted and unique, the metadata say so.
    """
    offsets = [0, *accumulate(map(len, names))]
    width = _width(max(len(names), offsets[-1]))
    is_sorted = len(names) > 0 and all(first < second for first, second in pairwise(names))
    header = VERSION | (_SORTED if is_sorted else 0) | (width - 1) << 6
    return bytes([header]) + _packed([len(names), *offsets], width) + b"".join(names)


def array_bytes(values: Sequence[bytes]) -> bytes:
    """Encode an array of encoded values."""
    offsets = [0, *accumulate(map(len, values))]
    width, large = _width(offsets[-1]), len(values) > 255
    header = ARRAY | (width - 1 | large << 2) << 2
    count = len(values).to_bytes(4 if large else 1, "little")
    return bytes([header]) + count + _packed(offsets, width) + b"".join(values)


def object_bytes(ids: Sequence[int], values: Sequence[bytes]) -> bytes:
    """Encode an object.

    Parameters
    ----------
    ids : sequence of int
        The ids of its fields, in the order of the bytes of their names.
    values : sequence of bytes
        The encoded value of each.
    """
    offsets = [0, *accumulate(map(len, values))]
    width, large = _width(offsets[-1]), len(values) > 255
    id_width = _width(max(ids, default=0))
    header = OBJECT | (width - 1 | (id_width - 1) << 2 | large << 4) << 2
    count = len(values).to_bytes(4 if large else 1, "little")
    return bytes([header]) + count + _packed(ids, id_width) + _packed(offsets, width) + b"".join(values)
