"""Key ranges held as arrays equal the tuples of the same ranges, in every operation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.expr.key_arrays import NumberRanges, StringPoints
from numparq.expr.key_ranges import TOP, RangeTuple, intersection, union

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
    assert tuple(ranges.complement(low, high)) == expected.complement(low, high)
    assert tuple(ranges.complement(low, high).complement(low, high)) == expected
    for mine, theirs in zip(ranges.wrap(64), expected.wrap(64), strict=True):
        assert mine.tolist() == theirs.tolist()
    if keys:
        for mine, theirs in zip(ranges.edges(dtype), expected.edges(dtype), strict=True):
            assert mine.tolist() == theirs.tolist()
    other = union([(3, 7)], [(9, 2**62)])
    assert intersection(ranges, other) == intersection(expected, other)
    assert union(ranges, other) == union(expected, other)


@pytest.mark.parametrize("front", [b"", b"customer-", b"https://example.org/"])
def test_a_common_prefix_is_skipped_in_ordering(monkeypatch, front):
    """Strings that differ in eight bytes after it are ordered by these: none becomes a Python object."""
    words = [front + b"%07d" % number for number in np.random.default_rng(0).permutation(1000)]
    with monkeypatch.context() as patch:
        patch.setattr(StringPoints, "_string", None)
        points = StringPoints.from_strings(words)
        assert points._order.tolist() == sorted(range(1000), key=words.__getitem__)
    assert [low for low, _ in points] == sorted(words)


def test_complement_of_bounds_that_are_narrower():
    ranges = NumberRanges.from_keys(np.array([0, 1, 254, 255], np.uint64))
    assert tuple(ranges.complement(0, 256)) == ((2, 254),)
    assert tuple(NumberRanges.from_keys(np.arange(256, dtype=np.uint64)).complement(0, 256)) == ()
    assert tuple(NumberRanges.from_keys(np.empty(0, np.int64)).complement(-8, 8)) == ((-8, 8),)


WORDS = st.lists(st.sampled_from([b"a", b"b", b"\0", b"\xff", b"abcdefgh"]), max_size=4).map(b"".join)


@given(st.lists(WORDS, max_size=12), st.sampled_from([b"", b"customer ", b"\0" * 9]), WORDS, WORDS)
def test_strings(words, front, low, high):
    """Ascending ranges of one string each; a repeated string may be a range twice, which changes no answer."""
    words = [front + word for word in words]
    points = StringPoints.from_strings(words)
    expected = tuple((word, word + b"\0") for word in sorted(words))
    assert tuple(points) == expected
    assert union(points) == union(expected)
    assert points.complement(b"", TOP) == union(expected).complement(b"", TOP)
    gaps, expected_gaps = points.complement(b"", TOP), union(expected).complement(b"", TOP)
    assert tuple(gaps) == expected_gaps
    assert gaps == expected_gaps
    assert len(gaps) == len(expected_gaps)
    assert gaps
    assert (gaps == ((b"", TOP),)) == (not words)
    assert gaps.complement(b"", TOP) == points
    assert gaps.complement(b"a", TOP) == expected_gaps.complement(b"a", TOP)
    low, high = sorted([front + low, front + high + b"\0"])
    assert points.overlaps(low, high) == union(expected).overlaps(low, high)
    assert gaps.covers(low, high) == expected_gaps.covers(low, high)
    assert gaps.overlaps(low, high) >= expected_gaps.overlaps(low, high)
    for word in words:
        assert not gaps.overlaps(word, word + b"\0")
        assert points.covers(word, word + b"\0")
    assert not points.covers(low, TOP)
    prefixes = sorted({int.from_bytes(word[:8].ljust(8, b"\0"), "big") for word in words})
    assert points.prefixes.tolist() == prefixes
    assert [edges.tolist() for edges in points.edge_prefixes()] == [prefixes, prefixes]
    starts, ends = gaps.edge_prefixes()
    assert {*starts.tolist()} >= {*RangeTuple(expected_gaps).edge_prefixes()[0].tolist()}
    assert {*ends.tolist()} >= {*RangeTuple(expected_gaps).edge_prefixes()[1].tolist()}
    assert all(starts[1:] >= ends[:-1])
    assert [sorted({*edges.tolist()}) for edges in RangeTuple(expected).edge_prefixes()] == [prefixes, prefixes]


def test_other_integers_than_those_beyond_64_bits():
    ranges = NumberRanges.from_keys(np.array([-5, 3, 4, 2**63 - 1], np.int64))
    gaps, expected = ranges.complement(-(2**100), 2**100), RangeTuple(ranges).complement(-(2**100), 2**100)
    assert tuple(gaps) == expected == ((-(2**100), -5), (-4, 3), (5, 2**63 - 1), (2**63, 2**100))
    assert gaps.complement(-(2**100), 2**100) is ranges
    for low, high in ((3, 5), (3, 6), (-5, -4), (2**80, 2**81), (2, 3)):
        assert gaps.overlaps(low, high) == expected.overlaps(low, high)
        assert gaps.covers(low, high) == expected.covers(low, high)
