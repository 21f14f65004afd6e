"""Casts between physical types of one logical type: decimals as integers, timestamps as INT96."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from numparq.column.leaf_values import LeafValues
from numparq.column.nested.shred import UnshreddedLeaf
from numparq.errors import SchemaError
from numparq.format.physical_type import BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY, INT32, INT64, INT96, PHYSICAL_NAMES
from numparq.format.schema_node import SchemaNode
from numparq.types.parquet_type import ParquetType, infer_arrow_type, parquet_type
from numparq.util.pluralize import agree_noun, pluralize

from .rule import raise_first, replace_values

_JULIAN_1970 = 2_440_588
_NS_OF_DAY = 86_400_000_000_000
_INTS = {INT32: (np.int32, 9), INT64: (np.int64, 18)}  # dtype; digits of a decimal

PhysicalCast = Callable[[LeafValues], LeafValues]


def physical_cast(usual: ParquetType, wanted: tuple[int | None, int, object]) -> PhysicalCast | None:
    """Return the cast from the usual storage to the schema's (physical type, length, logical type); None if equal.

    Raises SchemaError if there is no such cast.
    """
    physical, length, logical = usual
    target, target_length, _ = wanted
    assert target is not None
    if (physical, length) == (target, target_length):
        return None
    if logical is not None and logical.kind == "DECIMAL":
        return _decimal_cast(length, target, target_length, logical.precision or 0)
    if logical is not None and logical.kind == "TIMESTAMP" and target == INT96:
        return _int96_cast(logical.unit or "")
    raise SchemaError(f"values stored as {PHYSICAL_NAMES[physical]} cannot be stored as {PHYSICAL_NAMES[target]}")


def _decimal_cast(length: int, target: int, target_length: int, precision: int) -> PhysicalCast:
    """Return the cast of big-endian integers of `length` bytes to INT32, INT64, more bytes or byte arrays."""
    if target in _INTS:
        dtype, digits = _INTS[target]
        if precision > digits:
            raise SchemaError(
                f"decimals of {pluralize(precision, 'digit')} do not fit {PHYSICAL_NAMES[target]}, which holds {digits}"
            )
        return lambda leaf: replace_values(leaf, _sign_extend(leaf.values, length, 8).view(">i8")[:, 0].astype(dtype))
    if target == FIXED_LEN_BYTE_ARRAY and target_length >= length:
        return lambda leaf: replace_values(leaf, _sign_extend(leaf.values, length, target_length).reshape(-1))
    if target == BYTE_ARRAY:
        return lambda leaf: _to_byte_arrays(leaf, length)
    raise SchemaError(
        f"decimals of {pluralize(precision, 'digit')} do not fit {target_length} {agree_noun(target_length, 'byte')}"
    )


def _sign_extend(values: np.ndarray, length: int, wider: int) -> np.ndarray:
    octets = values.reshape(-1, length)
    out = np.empty((len(octets), wider), np.uint8)
    out[:] = (octets[:, :1] >> 7) * np.uint8(255)
    kept = min(length, wider)
    out[:, wider - kept :] = octets[:, length - kept :]
    return out


def _to_byte_arrays(leaf: LeafValues, length: int) -> LeafValues:
    starts = np.arange(0, len(leaf.values), length, dtype=np.int64)
    return replace(leaf, starts=starts, ends=starts + length)


def _int96_cast(unit: str) -> PhysicalCast:
    """Return the cast of timestamps to INT96: nanoseconds of the day, then the Julian day."""
    factor = {"MILLIS": 1_000_000, "MICROS": 1000, "NANOS": 1}[unit]
    ticks_of_day = _NS_OF_DAY // factor

    def store(leaf: LeafValues) -> LeafValues:
        days, ticks = np.divmod(leaf.values, ticks_of_day)
        julian = days + _JULIAN_1970
        raise_first(leaf, (julian < 0) | (julian >= 1 << 31), lambda place: int(leaf.values[place]))
        words = np.zeros((len(days), 3), np.uint32)
        nanoseconds = ticks * factor
        words[:, 0], words[:, 1], words[:, 2] = nanoseconds & 0xFFFFFFFF, nanoseconds >> 32, julian & 0xFFFFFFFF
        return replace_values(leaf, words.view(np.uint8).reshape(-1))

    return store


def to_physical(node: SchemaNode, array: UnshreddedLeaf) -> UnshreddedLeaf:
    """Cast values to the physical type of the schema node where it is not the usual one."""
    is_decimal = node.logical is not None and node.logical.kind == "DECIMAL"
    if node.physical is None or not (is_decimal or node.physical == INT96):
        return array
    usual = parquet_type(infer_arrow_type(node.physical, node.type_length or None, node.logical))
    store = physical_cast(usual, (node.physical, node.type_length, node.logical))
    return array if store is None else replace(array, values=store(array.values))
