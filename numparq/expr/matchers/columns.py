"""Matcher of two columns, compared row by row as exact numbers or bytes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from numparq.expr.bound import ComparisonPredicate
from numparq.expr.sort_keys import KeyDomain
from numparq.format.schema import Leaf
from numparq.kernels.kernel_groups import predicate_kernels

from .vectors import ColumnVector, RowMask

_OPERATORS: dict[str, Callable[[Any, Any], np.ndarray]] = {"==": np.equal, "<": np.less, "<=": np.less_equal}
_MOST_INT = 1 << 63
_MOST_EXACT = 1 << 53  # floats hold all integers up to it


def match_columns(predicate: ComparisonPredicate, first: ColumnVector, second: ColumnVector, mask: RowMask) -> None:
    """Combine into the mask in which rows two columns compare as the predicate says; nulls do not match."""
    count = len(mask.out)
    first, second = _rebased(predicate.leaf, first), _rebased(predicate.other, second)
    if predicate.domain.kind == "bytes":
        order = np.empty(count, np.uint8)
        strings = *_strings(predicate.domain, first, count), *_strings(predicate.other_domain, second, count)
        predicate_kernels.compare_string_rows(*strings, count, order)
        found = _OPERATORS[predicate.op](order, 1)
    else:
        numbers = _numbers(predicate.domain, first, count), _numbers(predicate.other_domain, second, count)
        with np.errstate(invalid="ignore"):  # signalling NaNs
            found = _OPERATORS[predicate.op](*_exact(*numbers))
    for column in (first, second):
        if column.validity is not None:
            mask = replace(mask, validity=_both(mask.validity, column.validity[:count]))
        if column.codes is not None:
            mask = replace(mask, validity=_both(mask.validity, column.codes[:count] >= 0))
    mask.combine(found, negated=predicate.negated)


def _rebased(leaf: Leaf, column: ColumnVector) -> ColumnVector:
    """Return the values of a column, which are as stored, in the proleptic Gregorian calendar."""
    if leaf.rebase is None:
        return column
    values = column.values.copy()
    leaf.rebase.apply(values)
    return replace(column, values=values)


def _both(validity: np.ndarray | None, other: np.ndarray) -> np.ndarray:
    other = other != 0
    return (other if validity is None else other & (validity != 0)).view(np.uint8)


def _take(entries: np.ndarray, column: ColumnVector, count: int) -> np.ndarray:
    """Return an item for each row, given one for each value or dictionary entry; arbitrary ones at nulls."""
    if column.codes is None:
        return entries[:count]
    if not len(entries):
        return np.zeros(count, entries.dtype)
    return entries.take(column.codes[:count], mode="clip")


def _strings(domain: KeyDomain, column: ColumnVector, count: int) -> tuple[np.ndarray, int, np.ndarray, np.ndarray]:
    """Return the bytes of a column, how many, and where the string of each row starts and ends."""
    data = np.ascontiguousarray(column.values).view(np.uint8).reshape(-1)
    starts, ends = (np.ascontiguousarray(_take(edge, column, count)) for edge in _string_bounds(domain, column))
    return data, len(data), starts, ends


def _string_bounds(domain: KeyDomain, column: ColumnVector) -> tuple[np.ndarray, np.ndarray]:
    """Return where each string, or each value of a fixed size, begins and ends in the bytes; int64."""
    if column.offsets is not None:
        return column.string_bounds()
    starts = np.arange(column.values.nbytes // domain.width, dtype=np.int64) * domain.width
    return starts, starts + domain.width


# --- numbers ----------------------------------------------------------------------------------------------------------


def _numbers(domain: KeyDomain, column: ColumnVector, count: int) -> tuple[np.ndarray, Fraction]:
    """Return the numbers of the rows, and the worth of one."""
    values, worth = column.values, domain.worth
    if domain.kind == "decimal":
        values = _integers(domain, column)
    elif domain.kind == "int96":
        worth = Fraction({"ns": 1, "us": 1000}[np.datetime_data(values.dtype)[0]])
        values = values.view(np.int64)
    elif domain.is_float:
        values = np.ascontiguousarray(values).view(f"<f{domain.width}")
    elif domain.kind != "boolean":  # upper bits of a narrow integer are ignored, whatever the writer left there
        bits = (domain.high - domain.low).bit_length() - 1
        values = values.astype(f"{'u' if domain.kind == 'unsigned' else 'i'}{bits // 8}")
    return _take(values, column, count), worth


def _integers(domain: KeyDomain, column: ColumnVector) -> np.ndarray:
    """Return big-endian integers as Python integers."""
    data = np.ascontiguousarray(column.values).view(np.uint8)
    starts, ends = (edges.tolist() for edges in _string_bounds(domain, column))
    stored = data.tobytes()
    numbers = np.empty(len(starts), object)
    numbers[:] = [
        int.from_bytes(stored[start:end], "big", signed=True) for start, end in zip(starts, ends, strict=True)
    ]
    return numbers


def _exact(first: tuple[np.ndarray, Fraction], second: tuple[np.ndarray, Fraction]) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers of two worths as arrays that NumPy compares exactly: as objects if no other type holds them."""
    over, under = (first[1] / second[1]).as_integer_ratio()
    one, other = _times(first[0], over), _times(second[0], under)
    if one.dtype.kind == "f" and other.dtype.kind != "f":
        return one if _are_exact_floats(other) else one.astype(object), other
    if other.dtype.kind == "f" and one.dtype.kind != "f":
        return one, other if _are_exact_floats(one) else other.astype(object)
    return one, other


def _are_exact_floats(values: np.ndarray) -> bool:
    return values.dtype.kind != "O" and _largest(values) <= _MOST_EXACT


def _largest(values: np.ndarray) -> int:
    return max(int(values.max(initial=0)), -int(values.min(initial=0)))


def _times(values: np.ndarray, factor: int) -> np.ndarray:
    if factor == 1:
        return values
    if values.dtype.kind == "f":
        products = np.empty(len(values), object)
        products[:] = [Fraction(value) * factor if math.isfinite(value) else value for value in values.tolist()]
        return products
    if values.dtype.kind != "O" and _largest(values) * factor < _MOST_INT:
        return values.astype(np.int64) * factor
    scaled: np.ndarray = values.astype(object) * factor
    return scaled
