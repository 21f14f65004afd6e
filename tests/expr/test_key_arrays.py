"""Key ranges held as arrays equal the tuples of the same ranges, in every operation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.expr.key_arrays import NumberRanges, StringPoints
from numparq.expr.key_ranges import TOP, complement, covers, intersection, overlaps, union

SIGNED = st.one_of(st.integers(-5, 12), st.sampled_from([-(2**63), -(2**63) + 1, 2**63 - 2, 2**63 - 1]))
UNSIGNED = st.one_of(st.integers(0, 12), st.sampled_from([2**64 - 2, 2**64 - 1, 2**63, 2**63 - 1]))
DOMAINS = {"int64": (SIGNED, -(2**63), 2**63), "uint64": (UNSIGNED, 0, 2**64)}


@pytest.mark.parametrize("dtype", DOMAINS)
@given(data=st.data())
def test_numbers(dtype, data):
    numbers, low, high = DOMAINS[dtype]
    keys = data.draw(st.lists(numbers, max_size=12))
    ranges, expected = NumberRanges.from_keys(np.array(keys, dtype)), union((key, key + 1) for key in keys)
    assert tuple(ranges) == expected
    assert ranges == expected
    assert expected == ranges
    assert hash(ranges) == hash(NumberRanges.from_keys(np.array(keys, dtype)))
    assert [ranges[at] for at in range(len(ranges))] == [*expected]
    assert ranges[-2:] == expected[-2:]
    assert tuple(complement(ranges, low, high)) == complement(expected, low, high)
    assert tuple(complement(complement(ranges, low, high), low, high)) == expected
    other = union([(3, 7)], [(9, 2**62)])
    assert intersection(ranges, other) == intersection(expected, other)
    assert union(ranges, other) == union(expected, other)


def test_complement_of_bounds_that_are_narrower():
    ranges = NumberRanges.from_keys(np.array([0, 1, 254, 255], np.uint64))
    assert tuple(complement(ranges, 0, 256)) == ((2, 254),)
    assert tuple(complement(NumberRanges.from_keys(np.arange(256, dtype=np.uint64)), 0, 256)) == ()
    assert tuple(complement(NumberRanges.from_keys(np.empty(0, np.int64)), -8, 8)) == ((-8, 8),)


WORDS = st.lists(st.sampled_from([b"a", b"b", b"\0", b"\xff", b"abcdefgh"]), max_size=4).map(b"".join)


@given(st.lists(WORDS, max_size=12), st.sampled_from([b"", b"customer ", b"\0" * 9]), WORDS, WORDS)
def test_strings(words, front, low, high):
    """Ascending ranges of one string each; a repeated string may be a range twice, which changes no answer."""
    words = [front + word for word in words]
    points = StringPoints.from_strings(words)
    expected = tuple((word, word + b"\0") for word in sorted(words))
    assert tuple(points) == expected
    assert union(points) == union(expected)
    assert complement(points, b"", TOP) == complement(union(expected), b"", TOP)
    low, high = sorted([front + low, front + high + b"\0"])
    assert overlaps(points, low, high) == overlaps(union(expected), low, high)
    for word in words:
        assert covers(points, word, word + b"\0")
    assert not covers(points, low, TOP)
    prefixes = sorted({int.from_bytes(word[:8].ljust(8, b"\0"), "big") for word in words})
    assert points.prefixes.tolist() == prefixes
