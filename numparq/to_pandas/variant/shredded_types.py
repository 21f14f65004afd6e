"""Types of `typed_value` columns (VariantShredding.md), each with its conversion to objects and to VARIANT bytes."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from numparq.column.buffers import DecodedColumn
from numparq.column.nested.arrays import LeafArray
from numparq.errors import InvalidFileError
from numparq.format.logical_type import LogicalType
from numparq.format.physical_type import (
    BOOLEAN,
    BYTE_ARRAY,
    DOUBLE,
    FIXED_LEN_BYTE_ARRAY,
    FLOAT,
    INT32,
    INT64,
    PHYSICAL_NAMES,
)
from numparq.format.schema import Leaf
from numparq.format.variant import primitives
from numparq.format.variant.encoder import encode_binary, encode_string, primitive_header
from numparq.to_pandas.columns import to_array
from numparq.to_pandas.decimals import binary_to_integers
from numparq.types.output_type import OutputType


@dataclass(frozen=True, slots=True)
class ShreddedType:
    """Conversions of a ``typed_value`` leaf, of the VARIANT primitive type `kind`.

    `to_objects` returns Python objects, and `to_variant_bytes` VARIANT bytes, of the leaf's values that are not null.
    """

    kind: int
    to_objects: Callable[[LeafArray, OutputType], list[Any]]
    to_variant_bytes: Callable[[LeafArray, OutputType, int], list[bytes]]


def shredded_type(leaf: Leaf) -> ShreddedType:
    """Return the shredded type of a ``typed_value`` leaf; InvalidFileError if its type cannot be one."""
    logical = leaf.logical
    found = _TYPES.get((leaf.physical, _logical_key(logical)))
    too_long = logical is not None and logical.kind == "DECIMAL" and (logical.precision or 0) > primitives.MAX_SCALE
    if found is None or too_long or (found.kind == primitives.UUID and leaf.type_length != 16):
        length = f"({leaf.type_length})" if leaf.physical == FIXED_LEN_BYTE_ARRAY else ""
        name = f"{PHYSICAL_NAMES[leaf.physical]}{length}" + (f" ({logical})" if logical is not None else "")
        raise InvalidFileError(f"a VARIANT cannot be shredded as {name}", column=leaf.name)
    return found


def _logical_key(logical: LogicalType | None) -> tuple[object, ...] | None:
    """Return a logical type as a key of the table of shredded types."""
    if logical is None:
        return None
    facts = logical.kind, logical.bit_width, logical.signed, logical.unit, logical.utc
    return tuple(item for item in facts if item is not None)


# --- Python objects ---------------------------------------------------------------------------------------------------


def _to_array(array: LeafArray, target: OutputType) -> Any:
    """Return the values that are not null, as a nested column has them."""
    if isinstance(array.values, np.ndarray):
        return to_array(target, DecodedColumn(array.values), array.num_values)
    return to_array(target, DecodedColumn(arrays=array.values), array.num_values)


def _to_list(array: LeafArray, target: OutputType) -> list[Any]:
    items: list[Any] = _to_array(array, target).tolist()
    return items


def _objects_of(make: Callable[[int], Any]) -> Callable[[LeafArray, OutputType], list[Any]]:
    """Return a conversion to the objects of a nested column, or by `make` if these are not all objects."""

    def objects(array: LeafArray, target: OutputType) -> list[Any]:
        found = _to_array(array, target)
        items: list[Any] = found.tolist() if found.dtype == object else list(map(make, _integers(array).tolist()))
        return items

    return objects


def _moments(utc: bool) -> Callable[[LeafArray, OutputType], list[Any]]:
    def objects(array: LeafArray, target: OutputType) -> list[Any]:
        values = array.values.view("M8[us]")
        if len(values) and (values.min() < _FIRST or values.max() > _LAST or np.isnat(values).any()):
            return [primitives.micros_to_datetime(number, utc) for number in values.view("i8").tolist()]
        moments = pd.DatetimeIndex(values).tz_localize("UTC").to_pydatetime() if utc else values
        items: list[Any] = moments.tolist()
        return items

    return objects


_FIRST, _LAST = np.datetime64("0001-01-01T00:00:00", "us"), np.datetime64("9999-12-31T23:59:59.999999", "us")


def _nanos(utc: bool) -> Callable[[LeafArray, OutputType], list[Any]]:
    def objects(array: LeafArray, target: OutputType) -> list[Any]:
        return list(pd.DatetimeIndex(array.values.view("M8[ns]"), tz="UTC" if utc else None))

    return objects


def _uuids(array: LeafArray, target: OutputType) -> list[Any]:
    return [uuid.UUID(bytes=item) for item in array.values.tolist()]


# --- bytes ------------------------------------------------------------------------------------------------------------


def _integers(array: LeafArray) -> np.ndarray:
    """Return fixed-size values as the integers that are stored."""
    integers: np.ndarray = array.values.view(f"i{array.values.dtype.itemsize}")
    return integers


def _packed(array: LeafArray, target: OutputType, kind: int) -> list[bytes]:
    """Encode fixed-size values, each after its header byte."""
    values = array.values
    out = np.empty(len(values), [("header", "u1"), ("value", values.dtype.newbyteorder("<"))])
    out["header"], out["value"] = primitive_header(kind)[0], values
    return out.view(f"V{out.itemsize}").tolist()


def _booleans(array: LeafArray, target: OutputType, kind: int) -> list[bytes]:
    both = primitive_header(primitives.FALSE), primitive_header(primitives.TRUE)
    return [both[value] for value in array.values.tolist()]


def _packed_decimals(array: LeafArray, target: OutputType, kind: int) -> list[bytes]:
    values = array.values
    out = np.empty(len(values), [("header", "u1"), ("scale", "u1"), ("value", values.dtype.newbyteorder("<"))])
    out["header"], out["scale"], out["value"] = primitive_header(kind)[0], target.type.scale, values
    return out.view(f"V{out.itemsize}").tolist()


def _long_decimals(array: LeafArray, target: OutputType, kind: int) -> list[bytes]:
    if isinstance(array.values, np.ndarray):
        numbers = [int.from_bytes(item, "big", signed=True) for item in array.values.tolist()]
    else:
        numbers = [int(number) for piece in array.values for number in binary_to_integers(piece)]
    head = primitive_header(kind) + bytes([target.type.scale])
    try:
        return [head + number.to_bytes(16, "little", signed=True) for number in numbers]
    except OverflowError:
        raise InvalidFileError("a decimal exceeds the 128 bits of a VARIANT decimal") from None


def _strings(array: LeafArray, target: OutputType, kind: int) -> list[bytes]:
    return [encode_string(text.encode()) for text in _to_list(array, target)]


def _binaries(array: LeafArray, target: OutputType, kind: int) -> list[bytes]:
    return list(map(encode_binary, _to_list(array, target)))


def _plain(kind: int) -> ShreddedType:
    return ShreddedType(kind, _to_list, _packed)


_SHORT_DECIMAL, _MIDDLE_DECIMAL = (
    ShreddedType(kind, _to_list, _packed_decimals) for kind in (primitives.DECIMAL4, primitives.DECIMAL8)
)
_LONG_DECIMAL = ShreddedType(primitives.DECIMAL16, _to_list, _long_decimals)

# By physical type and `_logical_key`; values cannot be shredded as other types.
_TYPES: dict[tuple[int, tuple[object, ...] | None], ShreddedType] = {
    (BOOLEAN, None): ShreddedType(primitives.TRUE, _to_list, _booleans),
    (INT32, ("INTEGER", 8, True)): _plain(primitives.INT8),
    (INT32, ("INTEGER", 16, True)): _plain(primitives.INT16),
    (INT32, ("INTEGER", 32, True)): _plain(primitives.INT32),
    (INT32, None): _plain(primitives.INT32),
    (INT64, ("INTEGER", 64, True)): _plain(primitives.INT64),
    (INT64, None): _plain(primitives.INT64),
    (FLOAT, None): _plain(primitives.FLOAT),
    (DOUBLE, None): _plain(primitives.DOUBLE),
    (INT32, ("DECIMAL",)): _SHORT_DECIMAL,
    (INT64, ("DECIMAL",)): _MIDDLE_DECIMAL,
    (BYTE_ARRAY, ("DECIMAL",)): _LONG_DECIMAL,
    (FIXED_LEN_BYTE_ARRAY, ("DECIMAL",)): _LONG_DECIMAL,
    (INT32, ("DATE",)): ShreddedType(primitives.DATE, _objects_of(primitives.days_to_date), _packed),
    (INT64, ("TIME", "MICROS", False)): ShreddedType(primitives.TIME, _objects_of(primitives.micros_to_time), _packed),
    (INT64, ("TIMESTAMP", "MICROS", True)): ShreddedType(primitives.TIMESTAMP, _moments(True), _packed),
    (INT64, ("TIMESTAMP", "MICROS", False)): ShreddedType(primitives.TIMESTAMP_LOCAL, _moments(False), _packed),
    (INT64, ("TIMESTAMP", "NANOS", True)): ShreddedType(primitives.TIMESTAMP_NANOS, _nanos(True), _packed),
    (INT64, ("TIMESTAMP", "NANOS", False)): ShreddedType(primitives.TIMESTAMP_LOCAL_NANOS, _nanos(False), _packed),
    (BYTE_ARRAY, None): ShreddedType(primitives.BINARY, _to_list, _binaries),
    (BYTE_ARRAY, ("STRING",)): ShreddedType(primitives.STRING, _to_list, _strings),
    (FIXED_LEN_BYTE_ARRAY, ("UUID",)): ShreddedType(primitives.UUID, _uuids, _packed),
}
