"""Casts of a leaf's values from the type of a file to the merged type: one table by both kinds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from numparq.column.buffers import BinaryArray, binary_from_fixed_size
from numparq.column.read.decode import is_utf8
from numparq.to_pandas.decimals import binary_to_integers, fixed_to_int64
from numparq.types.common_type import describe_type, value_type
from numparq.types.output_type import OutputType

LeafValues = np.ndarray | BinaryArray

_INT64 = np.iinfo(np.int64)
_ADVICE = "schema= can give the column another type"
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DIGITS = {2: 11, 4: 24, 8: 53}  # bytes of a float, and the binary digits of the integers that it holds all of


class CastValues(NamedTuple):
    """Values as the target stores them; `unfit` has the positions of those that it cannot hold, `message` says why."""

    values: LeafValues
    unfit: np.ndarray | None = None
    message: str = ""


def cast_values(values: LeafValues, source: OutputType, target: OutputType) -> CastValues:
    """Cast the values of a leaf, none of them null, from one output type to another."""
    cast = _CASTS.get((value_type(source.type).kind, value_type(target.type).kind), _same)
    return cast(values, source, target)


def _same(values: LeafValues, source: OutputType, target: OutputType) -> CastValues:
    return CastValues(values if isinstance(values, BinaryArray) or target.dtype is None else values.view(target.dtype))


def _numbers(values: LeafValues, source: OutputType, target: OutputType) -> CastValues:
    """Cast numbers to other numbers; those that would change are unfit."""
    assert isinstance(values, np.ndarray)
    assert target.dtype is not None
    have, wanted = (np.dtype("f2") if dtype == "V2" else dtype for dtype in (values.dtype, target.dtype))
    values = values.view(have)
    if have == wanted:
        return CastValues(values.view(target.dtype))
    with np.errstate(all="ignore"):
        result = values.astype(wanted)
        unfit = _changed_numbers(values, result)
    if unfit is None:
        return CastValues(result.view(target.dtype))
    number = "integer" if have.kind in "iu" else "number"
    message = f"{number} {values[unfit[0]]} cannot be stored as {describe_type(target.type)} without loss; {_ADVICE}"
    return CastValues(result.view(target.dtype), unfit, message)


def _changed_numbers(values: np.ndarray, result: np.ndarray) -> np.ndarray | None:
    """Return the positions of values that a cast changed; None if there are none."""
    if not len(values):
        return None
    kinds = values.dtype.kind + result.dtype.kind
    if kinds in _BOUNDED:
        low, high = _BOUNDED[kinds](result.dtype)
        if int(values.min()) >= low and int(values.max()) <= high:
            return None
        return np.flatnonzero((values < low) | (values > high))
    if kinds in ("fi", "fu"):
        # Beyond an integer's range a cast is undefined; the bounds are powers of two, which floats hold.
        limits = np.iinfo(result.dtype)
        same = (values >= limits.min) & (values < float(limits.max) + 1) & (np.trunc(values) == values)
    else:
        same = (result.astype(values.dtype) == values) | (values != values)
    return None if same.all() else np.flatnonzero(~same)


def _integer_limits(dtype: np.dtype) -> tuple[int, int]:
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def _float_limits(dtype: np.dtype) -> tuple[int, int]:
    most = 1 << _DIGITS[dtype.itemsize]
    return -most, most


# Kinds of a cast whose result is exact between two bounds.
_BOUNDED: dict[str, Callable[[np.dtype], tuple[int, int]]] = {
    **dict.fromkeys(("ii", "iu", "ui", "uu"), _integer_limits),
    **dict.fromkeys(("if", "uf"), _float_limits),
}


# --- dates, times, timestamps, durations -----------------------------------------------------------------------------


def _moments(values: LeafValues, source: OutputType, target: OutputType) -> CastValues:
    """Cast to a finer unit; NaT stays NaT where it stands for nulls."""
    assert isinstance(values, np.ndarray)
    assert target.dtype is not None
    unit = np.datetime_data(target.dtype)[0] if target.dtype.kind in "mM" else target.type.unit
    from_unit = source.type.unit or "D"
    if not unit or from_unit == unit:
        return CastValues(values.view(target.dtype))
    factor = 86_400 * _PER_SECOND[unit] if from_unit == "D" else _PER_SECOND[unit] // _PER_SECOND[from_unit]
    numbers = values.view(f"i{values.dtype.itemsize}").astype(np.int64)
    nat = (numbers == _INT64.min) & (target.dtype.kind in "mM")
    limit = _INT64.max // factor
    unfit = np.flatnonzero(((numbers > limit) | (numbers < -limit)) & ~nat)
    result = numbers * factor
    result[nat] = _INT64.min
    message = f"a value in {from_unit} is beyond what 64 bits hold in {unit}"
    stored = result.astype(f"i{target.dtype.itemsize}", copy=False).view(target.dtype)
    return CastValues(stored, unfit if len(unfit) else None, message)


# --- decimals and bytes ----------------------------------------------------------------------------------------------


def _decimals(values: LeafValues, source: OutputType, target: OutputType) -> CastValues:
    """Cast integers or decimals to decimals of as many digits after the point, or more."""
    factor = 10 ** (target.type.scale - source.type.scale)
    unscaled, limit = _unscaled(values), _INT64.max // factor
    if unscaled.dtype.kind != "O" and len(unscaled) and not (unscaled.min() >= -limit and unscaled.max() <= limit):
        unscaled = unscaled.astype(object)
    if len(unscaled):
        unscaled = unscaled * factor
    return _store_unscaled(unscaled, target)


def _store_unscaled(unscaled: np.ndarray, target: OutputType) -> CastValues:
    """Store unscaled integers (int64 or objects) as the decimals of a type; those with too many digits are unfit."""
    if target.dtype is None:
        bounds = (int(unscaled.min()), int(unscaled.max())) if len(unscaled) else ()
        width = max((number.bit_length() // 8 + 1 for number in bounds), default=1)
        return CastValues(binary_from_fixed_size(_big_endian(unscaled, width), width))
    width, unfit = target.dtype.itemsize, None
    if unscaled.dtype.kind == "O" or width < 8:
        outside = (unscaled < -(1 << (8 * width - 1))) | (unscaled >= 1 << (8 * width - 1))
        if outside.any():
            unfit = np.flatnonzero(outside)
            unscaled = np.where(outside, 0, unscaled)
    is_integer = target.dtype.kind == "i"
    stored = unscaled.astype(target.dtype) if is_integer else _big_endian(unscaled, width).view(target.dtype)
    return CastValues(stored, unfit, f"a decimal has too many digits for {target.type.precision}")


def _unscaled(values: LeafValues) -> np.ndarray:
    """Return integers, or the unscaled values of decimals, as int64 if all fit, else as objects."""
    if isinstance(values, BinaryArray):
        integers = binary_to_integers(values)
        return integers if isinstance(integers, np.ndarray) else np.array(integers, object)
    if values.dtype.kind == "V":
        small = fixed_to_int64(values)
        if small is not None:
            return small
        return np.array([int.from_bytes(item, "big", signed=True) for item in values.tolist()], object)
    is_large = values.dtype == np.uint64 and len(values) and values.max() > _INT64.max
    return values.astype(object if is_large else np.int64)


def _big_endian(unscaled: np.ndarray, width: int) -> np.ndarray:
    """Return integers as the bytes of big-endian two's complement items."""
    if unscaled.dtype.kind == "O":
        return np.frombuffer(b"".join(number.to_bytes(width, "big", signed=True) for number in unscaled), np.uint8)
    octets = np.empty((len(unscaled), width), np.uint8)
    octets[:] = (unscaled >> 63).astype(np.uint8)[:, None]
    kept = min(width, 8)
    octets[:, width - kept :] = unscaled.astype(">i8").view(np.uint8).reshape(-1, 8)[:, 8 - kept :]
    return octets.reshape(-1)


def _bytes(values: LeafValues, source: OutputType, target: OutputType) -> CastValues:
    assert isinstance(values, np.ndarray)
    width = values.dtype.itemsize
    return CastValues(binary_from_fixed_size(np.ascontiguousarray(values).view(np.uint8), width))


def _texts(values: LeafValues, source: OutputType, target: OutputType) -> CastValues:
    """Cast bytes to strings; those that are not UTF-8 are unfit."""
    texts = values if isinstance(values, BinaryArray) else _bytes(values, source, target).values
    assert isinstance(texts, BinaryArray)
    if is_utf8(texts):
        return CastValues(texts)
    offsets, data, unfit = texts.offsets, texts.data.copy(), []
    for row in range(len(texts)):
        if not is_utf8(BinaryArray(offsets[row : row + 2], data)):
            unfit.append(row)
            data[offsets[row] : offsets[row + 1]] = ord("?")
    first = texts.data[offsets[unfit[0]] : offsets[unfit[0] + 1]].tobytes()
    message = f"{first!r} is not UTF-8, and cannot be stored as string; {_ADVICE}"
    return CastValues(BinaryArray(offsets, data, texts.validity), np.array(unfit), message)


def _floats_to_decimals(values: LeafValues, source: OutputType, target: OutputType) -> CastValues:
    """Cast floats to decimals; those that are not exactly decimals of the scale are unfit."""
    assert isinstance(values, np.ndarray)
    numbers = values.view(np.dtype("f2") if values.dtype == "V2" else values.dtype)
    unscaled = [_scaled(number, 10**target.type.scale) for number in numbers.tolist()]
    outside = np.array([number is None or abs(number) >= 10**target.type.precision for number in unscaled], np.bool_)
    integers = np.array([0 if there else number for number, there in zip(unscaled, outside, strict=True)], object)
    made = _store_unscaled(integers, target)
    if not outside.any():
        return made
    unfit = np.flatnonzero(outside)
    message = f"number {numbers[unfit[0]]} is not exactly a {describe_type(target.type)}; {_ADVICE}"
    return made._replace(unfit=unfit, message=message)


def _scaled(number: float, factor: int) -> int | None:
    """Return a float times an integer if that is an integer, else None."""
    if not math.isfinite(number):
        return None
    over, under = number.as_integer_ratio()
    result, rest = divmod(over * factor, under)
    return None if rest else result


def _booleans(values: LeafValues, source: OutputType, target: OutputType) -> CastValues:
    """Cast booleans to the numbers 0 and 1."""
    assert isinstance(values, np.ndarray)
    assert target.dtype is not None
    dtype = np.dtype("f2") if target.dtype == "V2" else target.dtype
    return CastValues((values != 0).astype(dtype).view(target.dtype))


_CASTS: dict[tuple[str, str], Callable[[LeafValues, OutputType, OutputType], CastValues]] = {
    ("bool", "int"): _booleans,
    ("bool", "float"): _booleans,
    ("int", "int"): _numbers,
    ("int", "float"): _numbers,
    ("float", "float"): _numbers,
    ("float", "int"): _numbers,
    ("float", "decimal"): _floats_to_decimals,
    ("int", "decimal"): _decimals,
    ("decimal", "decimal"): _decimals,
    ("date", "date"): _moments,
    ("date", "timestamp"): _moments,
    ("time", "time"): _moments,
    ("timestamp", "timestamp"): _moments,
    ("duration", "duration"): _moments,
    ("fixed_size_binary", "binary"): _bytes,
    ("fixed_size_binary", "utf8"): _texts,
    ("binary", "utf8"): _texts,
}
