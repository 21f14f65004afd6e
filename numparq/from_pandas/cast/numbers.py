"""Casts of integers, floats and booleans."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from numparq.column.leaf_values import LeafValues
from numparq.format.arrow_type import ArrowType
from numparq.from_pandas.numbers import float_bytes

from .rule import Cast, raise_first, replace_values


def integer_view(leaf: LeafValues, arrow_type: ArrowType) -> np.ndarray:
    """Return a leaf's integers, unsigned ones as a view of the signed storage."""
    if arrow_type.kind == "int" and not arrow_type.signed:
        return leaf.values.view(f"u{leaf.values.dtype.itemsize}")
    return leaf.values


def stored_bits(arrow_type: ArrowType) -> int:
    """Return the bits that integers, dates, times, timestamps or durations have in the file: 32 or 64."""
    if arrow_type.kind == "int":
        return 64 if arrow_type.bit_width == 64 else 32
    return 32 if arrow_type.kind == "date" or (arrow_type.kind == "time" and arrow_type.unit in ("s", "ms")) else 64


def integer_limits(arrow_type: ArrowType) -> tuple[int, int]:
    """Return the smallest and the largest integer of a type, both inclusive."""
    if arrow_type.kind == "int":
        info = np.iinfo(f"{'i' if arrow_type.signed else 'u'}{arrow_type.bit_width // 8}")
    else:
        info = np.iinfo(f"i{stored_bits(arrow_type) // 8}")
    return int(info.min), int(info.max)


def store_integers(leaf: LeafValues, numbers: np.ndarray, after: ArrowType) -> LeafValues:
    """Return a leaf with integers as a type stores them, after checking its limits."""
    low, high = integer_limits(after)
    own = np.iinfo(numbers.dtype)
    bad = np.zeros(len(numbers), bool)
    if own.min < low:
        bad |= numbers < low
    if own.max > high:
        bad |= numbers > high
    raise_first(leaf, bad, lambda place: int(numbers[place]))
    unsigned = after.kind == "int" and not after.signed
    width = stored_bits(after) // 8
    return replace_values(leaf, numbers.astype(f"{'u' if unsigned else 'i'}{width}").view(f"i{width}"))


def integers_to_integers(before: ArrowType, after: ArrowType) -> Cast:
    """Cast integers, or the integers behind a date, time, timestamp or duration, to another size within its limits."""
    return lambda leaf: store_integers(leaf, integer_view(leaf, before), after)


def integers_to_floats(before: ArrowType, after: ArrowType) -> Cast:
    """Cast integers to floats that hold them exactly."""
    dtype = np.dtype(f"f{after.bit_width // 8}")

    def step(leaf: LeafValues) -> LeafValues:
        numbers = integer_view(leaf, before)
        with np.errstate(over="ignore"):
            floats = numbers.astype(dtype)
        back, limits = floats.astype(np.float64), np.iinfo(numbers.dtype)
        inside = (back >= float(limits.min)) & (back < float(int(limits.max) + 1))
        same = np.where(inside, back, 0).astype(numbers.dtype) == numbers
        raise_first(leaf, ~(inside & same), lambda place: int(numbers[place]))
        return replace_values(leaf, float_bytes(floats))

    return step


def float_view(leaf: LeafValues, arrow_type: ArrowType) -> np.ndarray:
    """Return a leaf's floats; float16 as a view of bytes."""
    return leaf.values.view(np.float16) if arrow_type.bit_width == 16 else leaf.values


def floats_to_integers(before: ArrowType, after: ArrowType) -> Cast:
    """Cast floats to integers; they must be whole numbers within the limits."""
    low, high = integer_limits(after)

    def step(leaf: LeafValues) -> LeafValues:
        floats = float_view(leaf, before).astype(np.float64)
        whole = (np.trunc(floats) == floats) & (floats >= float(low)) & (floats <= float(high)) & (floats < 2.0**64)
        whole &= (floats < 2.0**63) | (after.kind == "int" and not after.signed)
        raise_first(leaf, ~whole, lambda place: float(floats[place]))
        unsigned = after.kind == "int" and not after.signed
        integers = np.where(whole, floats, 0).astype(np.uint64 if unsigned else np.int64)
        return store_integers(leaf, integers, after)

    return step


def floats_to_floats(before: ArrowType, after: ArrowType) -> Cast:
    """Round floats to another size; a finite float must not become infinite."""
    dtype = np.dtype(f"f{after.bit_width // 8}")

    def step(leaf: LeafValues) -> LeafValues:
        floats = float_view(leaf, before)
        with np.errstate(over="ignore"):
            rounded = floats.astype(dtype)
        raise_first(leaf, np.isinf(rounded) & ~np.isinf(floats), lambda place: float(floats[place]))
        return replace_values(leaf, float_bytes(rounded))

    return step


def floats_exactly(before: ArrowType, after: ArrowType) -> Cast:
    """Cast floats to another size that holds them exactly; NaN stays NaN."""
    dtype = np.dtype(f"f{after.bit_width // 8}")

    def step(leaf: LeafValues) -> LeafValues:
        floats = float_view(leaf, before)
        with np.errstate(over="ignore"):
            cast = floats.astype(dtype)
        bad = (cast.astype(floats.dtype) != floats) & (floats == floats)
        raise_first(leaf, bad, lambda place: float(floats[place]))
        return replace_values(leaf, float_bytes(cast))

    return step


def booleans_to_integers(before: ArrowType, after: ArrowType) -> Cast:
    """Cast booleans to 0 and 1."""
    return lambda leaf: replace_values(leaf, leaf.values.astype(f"i{stored_bits(after) // 8}"))


def integers_to_booleans(before: ArrowType, after: ArrowType) -> Cast:
    """Cast 0 and 1 to booleans; codes are resolved, since readers do not expect a dictionary of booleans."""

    def step(leaf: LeafValues) -> LeafValues:
        numbers = integer_view(leaf, before)
        raise_first(leaf, (numbers != 0) & (numbers != 1), lambda place: int(numbers[place]))
        flags = (numbers == 1).view(np.uint8)
        if leaf.codes is None:
            return replace_values(leaf, flags)
        table = flags if len(flags) else np.zeros(1, np.uint8)
        return replace(replace_values(leaf, np.take(table, leaf.codes, mode="clip")), codes=None)

    return step
