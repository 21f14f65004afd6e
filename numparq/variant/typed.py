"""The types that a VARIANT's values may be shredded as (VariantShredding.md, Shredded Value Types).

Each has a row: the primitive type that it stands for, how its values become Python objects (those that `decode` makes
of the same values), and how they become the bytes of the binary encoding; both a column at a time.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..column.buffer import ColumnBuffer
from ..column.nested_arrays import LeafArray
from ..column.unscaled import binary_integers
from ..errors import InvalidFileError
from ..frame.finish import finish
from ..metadata.logical_type import LogicalType
from ..schema import (
    BOOLEAN,
    BYTE_ARRAY,
    DOUBLE,
    FIXED_LEN_BYTE_ARRAY,
    FLOAT,
    INT32,
    INT64,
    PHYSICAL_NAMES,
    Leaf,
)
from ..targets import Target
from . import scalars
from .parts import binary_bytes, header_of, string_bytes

__all__ = ["ShreddedType", "shredded_type"]


@dataclass(frozen=True, slots=True)
class ShreddedType:
    """What the values of a ``typed_value`` leaf are.

    Parameters
    ----------
    kind : int
        The primitive type.
    objects : callable
        Gives a list of Python objects of the values of a leaf that are there; it takes the leaf's array and target.
    encoded : callable
        Gives a list of bytes likewise; it takes the primitive type, too.
    """

    kind: int
    objects: Callable[[LeafArray, Target], list]
    encoded: Callable[[LeafArray, Target, int], list[bytes]]


def shredded_type(leaf: Leaf) -> ShreddedType:
    """Find what the values of a ``typed_value`` leaf are.

    Raises
    ------
    InvalidFileError
        When values cannot be shredded as that type.
    """
    logical = leaf.logical
    found = _TYPES.get((leaf.physical, _known(logical)))
    too_long = logical is not None and logical.kind == "DECIMAL" and (logical.precision or 0) > scalars.MAX_SCALE
    if found is None or too_long or (found.kind == scalars.UUID and leaf.type_length != 16):
        length = f"({leaf.type_length})" if leaf.physical == FIXED_LEN_BYTE_ARRAY else ""
        name = f"{PHYSICAL_NAMES[leaf.physical]}{length}" + (f" ({logical})" if logical is not None else "")
        raise InvalidFileError(f"{name} is no type that a VARIANT's values can be shredded as", column=leaf.name)
    return found


def _known(logical: LogicalType | None) -> tuple | None:
    """Give a logical type as the table has it."""
    if logical is None:
        return None
    facts = logical.kind, logical.bit_width, logical.signed, logical.unit, logical.utc
    return tuple(item for item in facts if item is not None)


# --- Python objects ---------------------------------------------------------------------------------------------------


def _finished(array: LeafArray, target: Target) -> Any:
    """Finish the values that are there, as a nested column has them."""
    if isinstance(array.values, np.ndarray):
        return finish(target, ColumnBuffer(array.values), array.num_values)
    return finish(target, ColumnBuffer(pieces=array.values), array.num_values)


def _as_listed(array: LeafArray, target: Target) -> list:
    return _finished(array, target).tolist()


def _objects_of(make: Callable[[int], Any]) -> Callable[[LeafArray, Target], list]:
    """Make objects as a nested column does, if they are all of the usual kind; else one by one."""

    def objects(array: LeafArray, target: Target) -> list:
        found = _finished(array, target)
        if found.dtype == object:
            return found.tolist()
        return [make(number) for number in _integers(array).tolist()]

    return objects


def _moments(utc: bool) -> Callable[[LeafArray, Target], list]:
    def objects(array: LeafArray, target: Target) -> list:
        values = array.values.view("M8[us]")
        if len(values) and (values.min() < _FIRST or values.max() > _LAST or np.isnat(values).any()):
            return [scalars.moment_of(number, utc) for number in values.view("i8").tolist()]
        return pd.DatetimeIndex(values).tz_localize("UTC").to_pydatetime().tolist() if utc else values.tolist()

    return objects


_FIRST, _LAST = np.datetime64("0001-01-01T00:00:00", "us"), np.datetime64("9999-12-31T23:59:59.999999", "us")


def _nanos(utc: bool) -> Callable[[LeafArray, Target], list]:
    def objects(array: LeafArray, target: Target) -> list:
        return list(pd.DatetimeIndex(array.values.view("M8[ns]"), tz="UTC" if utc else None))

    return objects


def _uuids(array: LeafArray, target: Target) -> list:
    return [uuid.UUID(bytes=item) for item in array.values.tolist()]


# --- bytes ------------------------------------------------------------------------------------------------------------


def _integers(array: LeafArray) -> np.ndarray:
    """Give numbers as they are stored."""
    return array.values.view(f"i{array.values.dtype.itemsize}")


def _packed(array: LeafArray, target: Target, kind: int) -> list[bytes]:
    """Put the first byte in front of each value of a fixed size."""
    values = array.values
    out = np.empty(len(values), [("header", "u1"), ("value", values.dtype.newbyteorder("<"))])
    out["header"], out["value"] = header_of(kind)[0], values
    return out.view(f"V{out.itemsize}").tolist()


def _booleans(array: LeafArray, target: Target, kind: int) -> list[bytes]:
    both = header_of(scalars.FALSE), header_of(scalars.TRUE)
    return [both[value] for value in array.values.tolist()]


def _packed_decimals(array: LeafArray, target: Target, kind: int) -> list[bytes]:
    values = array.values
    out = np.empty(len(values), [("header", "u1"), ("scale", "u1"), ("value", values.dtype.newbyteorder("<"))])
    out["header"], out["scale"], out["value"] = header_of(kind)[0], target.type.scale, values
    return out.view(f"V{out.itemsize}").tolist()


def _long_decimals(array: LeafArray, target: Target, kind: int) -> list[bytes]:
    if isinstance(array.values, np.ndarray):
        numbers = [int.from_bytes(item, "big", signed=True) for item in array.values.tolist()]
    else:
        numbers = [int(number) for piece in array.values for number in binary_integers(piece)]
    head = header_of(kind) + bytes([target.type.scale])
    try:
        return [head + number.to_bytes(16, "little", signed=True) for number in numbers]
    except OverflowError:
        raise InvalidFileError("a decimal is beyond the 128 bits that a variant's have") from None


def _strings(array: LeafArray, target: Target, kind: int) -> list[bytes]:
    return [string_bytes(text.encode()) for text in _as_listed(array, target)]


def _binaries(array: LeafArray, target: Target, kind: int) -> list[bytes]:
    return list(map(binary_bytes, _as_listed(array, target)))


def _plain(kind: int) -> ShreddedType:
    return ShreddedType(kind, _as_listed, _packed)


_SHORT_DECIMAL, _MIDDLE_DECIMAL = (
    ShreddedType(kind, _as_listed, _packed_decimals) for kind in (scalars.DECIMAL4, scalars.DECIMAL8)
)
_LONG_DECIMAL = ShreddedType(scalars.DECIMAL16, _as_listed, _long_decimals)

# By physical type and what counts of the logical one; other types are none that values can be shredded as.
_TYPES: dict[tuple[int, tuple | None], ShreddedType] = {
    (BOOLEAN, None): ShreddedType(scalars.TRUE, _as_listed, _booleans),
    (INT32, ("INTEGER", 8, True)): _plain(scalars.INT8),
    (INT32, ("INTEGER", 16, True)): _plain(scalars.INT16),
    (INT32, ("INTEGER", 32, True)): _plain(scalars.INT32),
    (INT32, None): _plain(scalars.INT32),
    (INT64, ("INTEGER", 64, True)): _plain(scalars.INT64),
    (INT64, None): _plain(scalars.INT64),
    (FLOAT, None): _plain(scalars.FLOAT),
    (DOUBLE, None): _plain(scalars.DOUBLE),
    (INT32, ("DECIMAL",)): _SHORT_DECIMAL,
    (INT64, ("DECIMAL",)): _MIDDLE_DECIMAL,
    (BYTE_ARRAY, ("DECIMAL",)): _LONG_DECIMAL,
    (FIXED_LEN_BYTE_ARRAY, ("DECIMAL",)): _LONG_DECIMAL,
    (INT32, ("DATE",)): ShreddedType(scalars.DATE, _objects_of(scalars.date_of), _packed),
    (INT64, ("TIME", "MICROS", False)): ShreddedType(scalars.TIME, _objects_of(scalars.time_of), _packed),
    (INT64, ("TIMESTAMP", "MICROS", True)): ShreddedType(scalars.TIMESTAMP, _moments(True), _packed),
    (INT64, ("TIMESTAMP", "MICROS", False)): ShreddedType(scalars.TIMESTAMP_LOCAL, _moments(False), _packed),
    (INT64, ("TIMESTAMP", "NANOS", True)): ShreddedType(scalars.TIMESTAMP_NANOS, _nanos(True), _packed),
    (INT64, ("TIMESTAMP", "NANOS", False)): ShreddedType(scalars.TIMESTAMP_LOCAL_NANOS, _nanos(False), _packed),
    (BYTE_ARRAY, None): ShreddedType(scalars.BINARY, _as_listed, _binaries),
    (BYTE_ARRAY, ("STRING",)): ShreddedType(scalars.STRING, _as_listed, _strings),
    (FIXED_LEN_BYTE_ARRAY, ("UUID",)): ShreddedType(scalars.UUID, _uuids, _packed),
}
