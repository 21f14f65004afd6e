"""Tests made ready for the kernels: by the kind of a column's keys, what says of its values whether they satisfy.

A test is made ready once, when it first meets values; then it only runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..bloom_filter import hash_values
from .bound import MemberTest, ValueTest
from .byte_set import ByteSet, LikeSet, Strings
from .domain import Domain
from .joining import Mask
from .key_set import KeySet
from .probes import has_one_form
from .ranges import Ranges, union
from .unscaled import join_unscaled, offset_binary
from .values import Values

Asker = Callable[[Values, Mask], None]


def ask(test: ValueTest | MemberTest, column: Values, into: Mask) -> None:
    """Join with a mask whether values satisfy a test.

    Parameters
    ----------
    test : ValueTest or MemberTest
        Bound.
    column : Values
        The values; `codes` and `validity` are not looked at.
    into : Mask
        Of as many rows; its validity counts.
    """
    if not test.ready:
        test.ready.append(_made_ready(test))  # twice, where two threads come at once: that does not matter
    test.ready[0](column, into)


def _made_ready(test: ValueTest | MemberTest) -> Asker:
    if isinstance(test, MemberTest):
        return _members(test)
    if test.pattern is not None:
        likes, domain = LikeSet(test.pattern, test.negated), test.domain
        return lambda column, into: likes.join(strings_of(domain, column), into)
    return _ASKERS[test.domain.kind](test)


# --- numbers ----------------------------------------------------------------------------------------------------------


def _booleans(test: ValueTest) -> Asker:
    false, true = [any(low <= key < high for low, high in test.ranges) for key in (0, 1)]

    def asked(column: Values, into: Mask) -> None:
        if false == true:
            into.constant(true)
        else:
            into.where(column.values, negated=false)

    return asked


def _integers(test: ValueTest) -> Asker:
    # What a writer left above the bits of a narrow integer does not count.
    keys = KeySet(test.ranges, (test.domain.high - test.domain.low).bit_length() - 1)
    return lambda column, into: keys.join(_numbers(column.values), into)


def _floats(test: ValueTest) -> Asker:
    domain = test.domain
    bits = 8 * domain.width
    nan = [(domain.high, domain.low + (1 << bits))] if test.nan else []
    keys = KeySet(union(test.ranges, nan), bits, fold=True)
    return lambda column, into: keys.join(_numbers(column.values.view(f"<i{domain.width}")), into)


def _numbers(values: np.ndarray) -> np.ndarray:
    """Give values as the integers that kernels take: signed, of 4 or 8 bytes."""
    size = values.dtype.itemsize
    if size < 4:
        return values.astype(np.int32)
    values = values.view(f"=i{size}")
    return values if values.flags.c_contiguous and values.flags.aligned else np.require(values, requirements=("C", "A"))


def _moments(test: ValueTest) -> Asker:
    """INT96, decoded to nanoseconds or microseconds."""
    keys = {unit: KeySet(_counted(test.ranges, per), 64) for unit, per in (("ns", 1), ("us", 1000))}
    return lambda column, into: keys[np.datetime_data(column.values.dtype)[0]].join(_numbers(column.values), into)


def _counted(ranges: Ranges, per: int) -> Ranges:
    """Give ranges of nanoseconds in a unit of so many, of which an int64 holds the number."""
    least, most = -1 << 63, (1 << 63) - 1
    found = []
    for low, high in ranges:
        first = least if low == -math.inf else max(-(-low // per), least)
        last = most if high == math.inf else min(-(-high // per) - 1, most)
        if first <= last:
            found.append((first, last + 1))
    return union(found)


# --- bytes ------------------------------------------------------------------------------------------------------------


def strings_of(domain: Domain, column: Values) -> Strings:
    """Give the values of a column of bytes."""
    if column.offsets is not None:
        return Strings.between(column.values, column.offsets)
    return Strings.of_width(column.values, domain.width)


def _bytes(test: ValueTest) -> Asker:
    wanted, domain = ByteSet(test.ranges), test.domain
    return lambda column, into: wanted.join(strings_of(domain, column), into)


def _decimals(test: ValueTest) -> Asker:
    domain = test.domain
    if not domain.width:
        return lambda column, into: join_unscaled(column, test.ranges, into)
    wanted = ByteSet(offset_binary(test.ranges, domain.width), signed=True)
    return lambda column, into: wanted.join(strings_of(domain, column), into)


_ASKERS: dict[str, Callable[[ValueTest], Asker]] = {
    "boolean": _booleans, "signed": _integers, "unsigned": _integers, "float": _floats, "int96": _moments,
    "bytes": _bytes, "decimal": _decimals,
}  # fmt: skip


# --- members of a Bloom filter ----------------------------------------------------------------------------------------

_AT_ONCE = 1 << 14  # so many hashes stay in the processor's cache


def _members(test: MemberTest) -> Asker:
    leaf, domain, bloom_filter = test.leaf, test.domain, test.filter
    if not has_one_form(leaf, domain):
        return lambda column, into: into.constant(True)
    has_zero = domain.is_float and bool(
        bloom_filter.might_contain(hash_values(leaf, np.array([0.0, -0.0], f"<f{domain.width}"))).any()
    )

    def asked(column: Values, into: Mask) -> None:
        if column.offsets is None and column.values.dtype.itemsize not in (1, domain.width):
            into.constant(True)  # not as it is stored
            return
        for start in range(0, len(into.out), _AT_ONCE):
            part = into.part(start, start + _AT_ONCE)
            found = bloom_filter.might_contain(_hashes(test, column, start, len(part.out)))
            if domain.is_float:
                floats = column.values.view(f"<f{domain.width}")[start : start + _AT_ONCE]
                found |= np.isnan(floats)
                if has_zero:
                    found |= floats == 0
            part.where(found)

    return asked


def _hashes(test: MemberTest, column: Values, start: int, count: int) -> np.ndarray:
    """Hash some of the values of a column."""
    if column.offsets is not None:
        places = column.offsets[start : start + count + 1].astype(np.int64)
        return hash_values(test.leaf, np.ascontiguousarray(column.values), places[:-1], places[1:])
    items = test.domain.width // column.values.dtype.itemsize
    values = column.values[start * items : (start + count) * items]
    return hash_values(test.leaf, np.ascontiguousarray(values))
