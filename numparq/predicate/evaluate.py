"""Which rows satisfy a bound expression: over whole columns, without an object for each value.

A bound expression is in normal form, where unknown never becomes true by a negation: so a mask of what is true is all
that there is to compute, and a null makes a test of values not true.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .bound import ElementTest, NullTest, ValueTest
from .byte_strings import ByteStrings, count_at_most, equal_to
from .expression import And, Constant, Expression, Or
from .ranges import TOP, Ranges
from .unscaled import inside_unscaled, offset_binary

_FEW_RANGES = 4


@dataclass(slots=True)
class Values:
    """A decoded leaf, for `evaluate`.

    Parameters
    ----------
    values : numpy.ndarray
        Of a fixed size: an item a value, in the stored form or narrowed; FIXED_LEN_BYTE_ARRAY as ``V{n}``, or as uint8,
        n of them a value; INT96 as ``M8[ns]`` or ``M8[us]``. Of BYTE_ARRAY: the uint8 bytes that `offsets` tells of.
    offsets : int array or None
        Of BYTE_ARRAY: one more than there are values.
    validity : uint8 or bool array or None
        Where there is a value, an item a value; None: everywhere. What `values` holds at nulls does not count.
    levels : mapping of int to array
        Of what is around the leaf: by definition level, where it is there, an item a row; a level left out or None:
        everywhere.
    list_offsets : int array or None
        Of a leaf in lists: where in the values the list of each row begins, and where the last one ends.
    codes : int32 array or None
        Where it is not None, `values` and `offsets` are entries of a dictionary, and `codes` has an item a value: the
        number of its entry, -1 for a null. Entries are tested once, whatever the number of values.
    """

    values: np.ndarray
    offsets: np.ndarray | None = None
    validity: np.ndarray | None = None
    levels: Mapping[int, np.ndarray | None] = field(default_factory=dict)
    list_offsets: np.ndarray | None = None
    codes: np.ndarray | None = None


def evaluate(bound: Expression, columns: Mapping[int, Values], num_rows: int) -> np.ndarray:
    """Find the rows that satisfy a bound expression.

    Parameters
    ----------
    bound : Expression
        Made by `bind`.
    columns : mapping of int to Values
        The leaves that it asks, by their ordinals.
    num_rows : int
        How many rows these have.

    Returns
    -------
    bool array
        An item a row: True where the expression is true, False where it is false or unknown.
    """
    if isinstance(bound, Constant):
        return np.full(num_rows, bound.value)
    if isinstance(bound, (And, Or)):
        join = np.logical_and if isinstance(bound, And) else np.logical_or
        found = evaluate(bound.parts[0], columns, num_rows)
        for part in bound.parts[1:]:
            join(found, evaluate(part, columns, num_rows), out=found)
        return found
    assert isinstance(bound, (ValueTest, NullTest, ElementTest))
    column = columns[bound.leaf.index]
    if isinstance(bound, NullTest):
        present = _present(column, num_rows) if bound.is_of_leaf else _mask(column.levels.get(bound.level), num_rows)
        return present if bound.negated else ~present
    if isinstance(bound, ElementTest):
        return _in_lists(bound, column, num_rows)
    return satisfying(bound, column)


def satisfying(test: ValueTest, column: Values) -> np.ndarray:
    """Find the values that satisfy a test: rows of a column, or entries of a dictionary.

    Parameters
    ----------
    test : ValueTest
        Bound.
    column : Values
        The leaf's values.

    Returns
    -------
    bool array
        An item a value; False for nulls.
    """
    found = _coded(test, column, column.codes) if column.codes is not None else _tested(test, column)
    if column.validity is not None:
        found &= _mask(column.validity, len(found))
    return found


def _tested(test: ValueTest, column: Values) -> np.ndarray:
    """Test the values themselves, whatever is null."""
    found = _INSIDE[test.domain.kind](test, column)
    if test.pattern is not None:
        _match(test, column, found)
        if test.negated:
            np.logical_not(found, out=found)
    return found


def _coded(test: ValueTest, column: Values, codes: np.ndarray) -> np.ndarray:
    """Test the entries of a dictionary, and look up what was found of each value's."""
    entries = _tested(test, Values(column.values, column.offsets))
    return np.append(entries, False)[codes]  # -1 is the item behind the entries


def _present(column: Values, count: int) -> np.ndarray:
    """Say of each value whether there is one."""
    there = _mask(column.validity, count)
    return there if column.codes is None else there & (column.codes >= 0)


def _mask(there: np.ndarray | None, count: int) -> np.ndarray:
    return np.ones(count, bool) if there is None else np.asarray(there) != 0


def _in_lists(test: ElementTest, column: Values, num_rows: int) -> np.ndarray:
    assert column.list_offsets is not None
    before = np.concatenate([[0], np.cumsum(satisfying(test.test, column))])
    found = before[column.list_offsets[1:]] > before[column.list_offsets[:-1]]
    there = _mask(column.levels.get(test.level), num_rows)
    return there & ~found if test.negated else there & found


# --- numbers ----------------------------------------------------------------------------------------------------------


def in_ranges(keys: np.ndarray, ranges: Ranges) -> np.ndarray:
    """Say of integers whether they are in a set.

    Parameters
    ----------
    keys : integer array
        Any.
    ranges : Ranges
        Of ints that the dtype has.
    """
    if len(ranges) > _FEW_RANGES:
        lows = np.array([low for low, _ in ranges], keys.dtype)
        highs = np.array([high - 1 for _, high in ranges], keys.dtype)
        places = np.searchsorted(lows, keys, "right") - 1
        return (places >= 0) & (keys <= highs[places])
    found = np.zeros(len(keys), bool)
    for low, high in ranges:
        found |= keys == low if high - low == 1 else (keys >= low) & (keys <= high - 1)
    return found


def _integers(test: ValueTest, column: Values) -> np.ndarray:
    domain, values = test.domain, column.values
    if domain.kind == "boolean":
        return in_ranges((values.view(np.uint8) != 0).view(np.uint8), test.ranges)
    sign = "i" if domain.kind == "signed" else "u"
    if values.dtype.kind not in "iu":
        values = values.view(f"{sign}{values.dtype.itemsize}")
    bits = (domain.high - domain.low).bit_length() - 1
    # What a writer left above the bits of a narrow integer does not count.
    return in_ranges(values.astype(f"{sign}{bits // 8}", copy=False), test.ranges)


def _floats(test: ValueTest, column: Values) -> np.ndarray:
    width = test.domain.width
    floats = column.values.view(f"<f{width}")
    bits = floats.view(f"<i{width}")
    keys = bits ^ ((bits >> (8 * width - 1)) & np.iinfo(bits.dtype).max)
    found = in_ranges(keys, test.ranges)
    if test.nan:
        found |= np.isnan(floats)
    return found


def _moments(test: ValueTest, column: Values) -> np.ndarray:
    """INT96, decoded to nanoseconds or microseconds."""
    per = {"ns": 1, "us": 1000}[np.datetime_data(column.values.dtype)[0]]
    least, most = -1 << 63, (1 << 63) - 1
    ranges = []
    for low, high in test.ranges:
        first = least if low == -math.inf else max(-(-low // per), least)
        last = most if high == math.inf else min(-(-high // per) - 1, most)
        if first <= last:
            ranges.append((first, last + 1))
    return in_ranges(column.values.view(np.int64), tuple(ranges))


# --- bytes ------------------------------------------------------------------------------------------------------------


def strings_of(test: ValueTest, column: Values) -> ByteStrings:
    """Give the values of a column of bytes."""
    if column.offsets is not None:
        return ByteStrings.between(column.offsets, column.values)
    return ByteStrings.of_width(np.ascontiguousarray(column.values).view(np.uint8), test.domain.width)


def inside_bytes(strings: ByteStrings, ranges: Ranges) -> np.ndarray:
    """Say of strings whether they are in a set."""
    if 0 < len(ranges) <= _FEW_RANGES and all(high is not TOP and high == low + b"\0" for low, high in ranges):
        found = equal_to(strings, ranges[0][0])
        for low, _ in ranges[1:]:
            found |= equal_to(strings, low)
        return found
    edges = [edge for pair in ranges for edge in pair if edge is not TOP]
    if not edges:
        return np.full(len(strings.sizes), bool(ranges))
    return count_at_most(strings, edges) % 2 == 1


def _bytes(test: ValueTest, column: Values) -> np.ndarray:
    return inside_bytes(strings_of(test, column), test.ranges)


def _decimals(test: ValueTest, column: Values) -> np.ndarray:
    if column.offsets is not None:
        return inside_unscaled(strings_of(test, column), test.ranges, inside_bytes)
    width = test.domain.width
    flipped = np.ascontiguousarray(column.values).view(np.uint8).copy()
    flipped[::width] ^= 0x80
    return inside_bytes(ByteStrings.of_width(flipped, width), offset_binary(test.ranges, width))


def _match(test: ValueTest, column: Values, found: np.ndarray) -> None:
    """Take from the values found those that do not match the pattern, or are null."""
    assert test.pattern is not None
    if column.validity is not None:
        found &= _mask(column.validity, len(found))
    strings = strings_of(test, column)
    data, matches = memoryview(strings.data), test.pattern.matches  # type: ignore[arg-type]
    rows = np.flatnonzero(found)
    starts = strings.starts[rows]
    ends = starts + strings.sizes[rows]
    places = zip(starts.tolist(), ends.tolist(), strict=True)
    found[rows] = [matches(data[start:end]) for start, end in places]


_INSIDE: dict[str, Callable[[Any, Values], np.ndarray]] = {
    "boolean": _integers, "signed": _integers, "unsigned": _integers, "float": _floats, "int96": _moments,
    "bytes": _bytes, "decimal": _decimals,
}  # fmt: skip
