"""Compile a bound predicate into a matcher: one kernel call over a column vector."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from numparq.expr.bound import BloomPredicate, ValuePredicate
from numparq.expr.key_ranges import KeyRanges, union
from numparq.expr.sort_keys import KeyDomain, has_canonical_bytes
from numparq.format.bloom_filter import hash_values

from .byte_strings import BytesMatcher, ByteStrings, LikeMatcher, match_unscaled_decimals, offset_binary
from .ints import IntMatcher
from .vectors import ColumnVector, RowMask

Matcher = Callable[[ColumnVector, RowMask], None]

# Kinds of values that are matched where they are in pages, in the runs of a column.
_MATCHED_IN_PAGES = ("signed", "unsigned", "float")


def match_values(predicate: ValuePredicate | BloomPredicate, column: ColumnVector, mask: RowMask) -> None:
    """Combine into the mask which values match.

    The column's codes and validity are ignored; the mask's validity counts.
    """
    if not predicate.matcher:  # a race of threads compiles twice, harmlessly
        if isinstance(predicate, BloomPredicate):
            matcher = _members(predicate)
        elif predicate.pattern is not None:
            matcher = _pattern(predicate)
        else:
            matcher = _COMPILERS[predicate.domain.kind](predicate)
        predicate.matcher.append(matcher)
    if column.runs is not None and (
        isinstance(predicate, BloomPredicate) or predicate.domain.kind not in _MATCHED_IN_PAGES
    ):
        column = column.join_runs()
    predicate.matcher[0](column, mask)


# --- numbers ----------------------------------------------------------------------------------------------------------


def _booleans(predicate: ValuePredicate) -> Matcher:
    false, true = [any(low <= key < high for low, high in predicate.ranges) for key in (0, 1)]

    def match(column: ColumnVector, into: RowMask) -> None:
        if false == true:
            into.combine_constant(true)
        else:
            into.combine(column.values, negated=false)

    return match


def _integers(predicate: ValuePredicate) -> Matcher:
    # Upper bits of a narrow integer are ignored, whatever the writer left there.
    keys = IntMatcher(predicate.ranges, (predicate.domain.high - predicate.domain.low).bit_length() - 1)
    return keys.match


def _floats(predicate: ValuePredicate) -> Matcher:
    domain = predicate.domain
    bits = 8 * domain.width
    nan = [(domain.high, domain.low + (1 << bits))] if predicate.matches_nan else []
    return IntMatcher(union(predicate.ranges, nan), bits, fold=True).match


def _moments(predicate: ValuePredicate) -> Matcher:
    """Build the matcher of INT96, which is decoded to nanoseconds or microseconds."""
    keys = {unit: IntMatcher(_counted(predicate.ranges, per), 64) for unit, per in (("ns", 1), ("us", 1000))}
    return lambda column, into: keys[np.datetime_data(column.values.dtype)[0]].match(column, into)


def _counted(ranges: KeyRanges, per: int) -> KeyRanges:
    """Return ranges of nanoseconds in units of `per` nanoseconds, clipped to int64."""
    least, most = -1 << 63, (1 << 63) - 1
    found = []
    for low, high in ranges:
        first = least if low == -math.inf else max(-(-low // per), least)
        last = most if high == math.inf else min(-(-high // per) - 1, most)
        if first <= last:
            found.append((first, last + 1))
    return union(found)


# --- bytes ------------------------------------------------------------------------------------------------------------


def as_byte_strings(domain: KeyDomain, column: ColumnVector) -> ByteStrings:
    """Return the values of a column of byte strings as the kernels take them."""
    if column.offsets is not None:
        build = ByteStrings.from_starts if column.are_prefixed else ByteStrings.from_offsets
        return build(column.values, column.offsets)
    return ByteStrings.from_fixed_width(column.values, domain.width)


def _pattern(predicate: ValuePredicate) -> Matcher:
    assert predicate.pattern is not None
    likes, domain = LikeMatcher(predicate.pattern, predicate.negated), predicate.domain
    return lambda column, into: likes.match(as_byte_strings(domain, column), into)


def _bytes(predicate: ValuePredicate) -> Matcher:
    keys, domain = BytesMatcher(predicate.ranges), predicate.domain
    return lambda column, into: keys.match(as_byte_strings(domain, column), into)


def _decimals(predicate: ValuePredicate) -> Matcher:
    domain = predicate.domain
    if not domain.width:
        return lambda column, into: match_unscaled_decimals(column, predicate.ranges, into)
    keys = BytesMatcher(offset_binary(predicate.ranges, domain.width), signed=True)
    return lambda column, into: keys.match(as_byte_strings(domain, column), into)


_COMPILERS: dict[str, Callable[[ValuePredicate], Matcher]] = {
    "boolean": _booleans,
    "signed": _integers,
    "unsigned": _integers,
    "float": _floats,
    "int96": _moments,
    "bytes": _bytes,
    "decimal": _decimals,
}

# --- Bloom filters ----------------------------------------------------------------------------------------------------

_AT_ONCE = 1 << 14  # hashes per batch, which stay in the CPU cache


def _members(predicate: BloomPredicate) -> Matcher:
    leaf, domain, bloom_filter = predicate.leaf, predicate.domain, predicate.bloom_filter
    if leaf.rebase is not None or not has_canonical_bytes(leaf, domain):
        return lambda column, into: into.combine_constant(True)
    has_zero = domain.is_float and bool(
        bloom_filter.might_contain(hash_values(leaf, np.array([0.0, -0.0], f"<f{domain.width}"))).any()
    )

    def match(column: ColumnVector, into: RowMask) -> None:
        if column.offsets is None and column.values.dtype.itemsize not in (1, domain.width):
            into.combine_constant(True)  # decoded to another width than stored: cannot be hashed
            return
        bounds = None if column.offsets is None else column.string_bounds()
        for start in range(0, len(into.out), _AT_ONCE):
            part = into.slice(start, start + _AT_ONCE)
            members = bloom_filter.might_contain(_hashes(predicate, column.values, bounds, start, len(part.out)))
            if domain.is_float:
                floats = column.values.view(f"<f{domain.width}")[start : start + _AT_ONCE]
                members |= np.isnan(floats)
                if has_zero:
                    members |= floats == 0
            part.combine(members)

    return match


def _hashes(
    predicate: BloomPredicate, values: np.ndarray, bounds: tuple[np.ndarray, np.ndarray] | None, start: int, count: int
) -> np.ndarray:
    """Return the hashes of `count` values from `start`; `bounds` are those of strings."""
    if bounds is not None:
        starts, ends = (edges[start : start + count] for edges in bounds)
        return hash_values(predicate.leaf, np.ascontiguousarray(values), starts, ends)
    items = predicate.domain.width // values.dtype.itemsize
    return hash_values(predicate.leaf, np.ascontiguousarray(values[start * items : (start + count) * items]))
