"""Compile a bound predicate into a matcher: one kernel call over a column vector."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from numparq.expr.bound import BloomPredicate, ValuePredicate
from numparq.expr.key_arrays import NumberRanges
from numparq.expr.key_ranges import TOP, KeyRanges, union
from numparq.expr.sort_keys import KeyDomain, has_canonical_bytes
from numparq.format.bloom_filter import hash_values
from numparq.kernels.kernel_groups import predicate_kernels

from .byte_strings import (
    BytesMatcher,
    ByteStrings,
    LikeMatcher,
    big_endian_points,
    match_unscaled_decimals,
    offset_binary,
)
from .vectors import ColumnVector, RowMask

_FEW = 4
_TABLE_SPAN = 1 << 18  # a table of this size stays in the CPU cache
_LARGE_TABLE_SPAN, _LARGE_TABLE_SHARE = 1 << 21, 64  # larger ones pay off where they hold many keys
_SLOTS_A_KEY = 4

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
    ranges = predicate.ranges
    if predicate.matches_nan:  # NaNs have all keys outside of the domain
        half = 1 << (bits - 1)
        ranges = ranges.complement(domain.low, domain.high).complement(-half, half)
    return IntMatcher(ranges, bits, fold=True).match


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
    single, others = predicate.ranges.single_keys(), None
    if single is None:
        others = predicate.ranges.complement(domain.low, domain.high).single_keys()
    if single is not None:
        keys = BytesMatcher(big_endian_points(single, domain.width))
    elif others is not None:
        keys = BytesMatcher(big_endian_points(others, domain.width).complement(b"", TOP))
    else:
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


class IntMatcher:
    """Matcher of sort keys of `bits` bits (at most 64) in ascending int ranges, taken modulo that width.

    With `fold`, values are float bits, which are folded to keys.
    """

    __slots__ = ("_arguments", "_name", "_negated")

    def __init__(self, ranges: KeyRanges, bits: int, fold: bool = False) -> None:
        self._negated = False
        if len(ranges) == 1:
            low, high = ranges[0]
            first, span = low & (1 << bits) - 1, high - low - 1
            self._name, arguments = "match_range", (first - (first >> 63 << 64), span - (span >> 63 << 64))
        else:
            firsts, spans = ranges.wrap(bits)
            self._negated = len(firsts) > _FEW and bool(spans.sum(dtype=np.float64) > 1 << (bits - 1))
            if self._negated:  # most keys are in the ranges: mostly all but a list of some
                firsts, spans = _gaps(firsts, spans, bits)
            self._name, arguments = _choose_kernel(firsts, spans, bits)
        mask = -1 if bits == 64 else (1 << bits) - 1
        self._arguments = ((1 << bits - 1) - 1 if fold else 0, mask, *arguments)

    def match(self, column: ColumnVector, mask: RowMask) -> None:
        """Combine into the mask which values of a column, of at most 8 bytes each, are in the ranges."""
        if column.stored is not None and column.stored.itemsize < 4:
            column = column.join_runs()
        values, runs = column.values, column.runs
        item = values.itemsize if column.stored is None else column.stored.itemsize
        if runs is None:
            if item < 4:
                values, item = values.view(f"=i{item}").astype(np.int32), 4
            elif not values.flags.c_contiguous:
                values = np.ascontiguousarray(values)
            values, runs = values.view(np.uint8), np.array([0, len(mask.out)])
        run = getattr(predicate_kernels, self._name)
        result = RowMask(np.empty(len(mask.out), np.uint8)) if self._negated else mask
        run(values, runs, len(runs) // 2, item, *self._arguments, *result.kernel_arguments)
        if self._negated:
            mask.combine(result.out, negated=True)


def _signed(number: int) -> int:
    """Return the int64 with the bits of a uint64."""
    return number - (1 << 64) if number >> 63 else number


def _gaps(firsts: np.ndarray, spans: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the gaps between ranges, modulo ``2**bits``, as first keys and spans; after the widest range first."""
    mask, one, widest = np.uint64((1 << bits) - 1), np.uint64(1), int(spans.argmax())
    starts = np.roll((firsts + spans + one) & mask, -widest)
    return starts, (np.roll(firsts, -widest - 1) - starts - one) & mask


def _choose_kernel(firsts: np.ndarray, spans: np.ndarray, bits: int) -> tuple[str, tuple[Any, ...]]:
    """Choose the kernel for the ranges, and build its arguments."""
    if not len(firsts):
        return "match_table", (0, 0, np.zeros(1, np.uint8))
    if len(firsts) == 1:
        return "match_range", (_signed(int(firsts[0])), _signed(int(spans[0])))
    if len(firsts) <= _FEW:
        ranges = np.empty((_FEW, 2), np.uint64)
        ranges[:, 0], ranges[:, 1] = firsts[-1], spans[-1]
        ranges[: len(firsts), 0], ranges[: len(firsts), 1] = firsts, spans
        return "match_four_ranges", (ranges.reshape(-1),)
    return _many((firsts - firsts[0]) & np.uint64((1 << bits) - 1), spans, int(firsts[0]), bits)


def _many(firsts: np.ndarray, spans: np.ndarray, base: int, bits: int) -> tuple[str, tuple[Any, ...]]:
    """Choose table, hash set or binary search for many ranges, whose keys count from `base`, the first key."""
    most = int(firsts[-1]) + int(spans[-1])
    if most < max(_TABLE_SPAN, min(_LARGE_TABLE_SPAN, _LARGE_TABLE_SHARE * len(firsts))):
        return "match_table", (_signed(base), most, _table(firsts.astype(np.int64), spans.astype(np.int64), most))
    single = NumberRanges(firsts, firsts + spans).single_keys()
    if single is not None:
        return "match_keys", _hashed((single + np.uint64(base)) & np.uint64((1 << bits) - 1))
    steps = (len(firsts) - 1).bit_length()
    more = (0, (1 << steps) - len(firsts))
    return "match_ranges", (_signed(base), np.pad(firsts, more, "edge"), np.pad(spans, more, "edge"), steps)


def _table(firsts: np.ndarray, spans: np.ndarray, most: int) -> np.ndarray:
    """Return for each key from the first to the last whether it is in a range."""
    changes = np.zeros(most + 2, np.int8)
    changes[firsts] = 1
    changes[firsts + spans + 1] -= 1
    return np.cumsum(changes, dtype=np.int8).view(np.uint8)


def _hashed(keys: np.ndarray) -> tuple[Any, ...]:
    bits = math.ceil(math.log2(_SLOTS_A_KEY * len(keys)))
    table = np.full(1 << bits, keys[0], np.uint64)
    predicate_kernels.fill_key_table(keys, len(keys), table, 64 - bits)
    return table, 64 - bits, _signed(int(keys[0]))
