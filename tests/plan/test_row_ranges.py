"""Row ranges against the same operations on Python sets."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.plan.row_ranges import RowRanges

NUM_ROWS = 40
ROWS = st.sets(st.integers(0, NUM_ROWS - 1))


def to_ranges(rows):
    return RowRanges([(row, row + 1) for row in rows])


def to_set(ranges):
    """Return the rows as a set; checks that the ranges are sorted, disjoint and read-only."""
    pairs = list(ranges)
    assert all(start < stop for start, stop in pairs)
    assert all(before[1] < after[0] for before, after in pairwise(pairs))
    assert ranges.bounds.dtype == np.int64
    assert ranges.bounds.shape == (len(pairs), 2)
    assert not ranges.bounds.flags.writeable
    return {row for start, stop in pairs for row in range(start, stop)}


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8))))
def test_unsorted_ranges_are_merged(pairs):
    pairs = [(start, start + length) for start, length in pairs]
    expected = {row for start, stop in pairs for row in range(start, stop)}
    found = RowRanges(pairs)
    assert to_set(found) == expected
    assert found == to_ranges(expected) == RowRanges(np.array(pairs, np.int32).reshape(-1, 2))
    assert (found.count, found.stop, bool(found)) == (len(expected), max(expected, default=-1) + 1, bool(expected))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3))))
def test_sorted_ranges_are_merged(steps):
    """Steps are the distances between consecutive starts, and between consecutive stops."""
    starts, stops = np.cumsum(np.array(steps, np.int64).reshape(-1, 2), axis=0).T
    starts = np.minimum(starts, stops)
    assert RowRanges.from_sorted(starts, stops) == RowRanges(np.stack([starts, stops], axis=1))


@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=6), min_size=1))
def test_masks_that_follow_one_another(masks):
    mask = np.concatenate([np.array(each, np.bool_) for each in masks])
    assert RowRanges.from_masks(mask, [*map(len, masks)]) == [*map(RowRanges.from_mask, masks)]


@given(ROWS)
def test_masks_and_indices(rows):
    found = to_ranges(rows)
    assert found.indices().tolist() == sorted(rows)
    assert found.mask(NUM_ROWS).tolist() == [row in rows for row in range(NUM_ROWS)]
    assert RowRanges.from_mask(found.mask(NUM_ROWS)) == found
    assert RowRanges.from_indices(list(rows) * 2) == found
    assert to_set(RowRanges.from_mask(found.mask(found.stop))) == rows


@given(ROWS, ROWS)
def test_set_operations(a, b):
    first, second = to_ranges(a), to_ranges(b)
    assert to_set(first | second) == a | b
    assert to_set(first & second) == a & b
    assert to_set(first - second) == a - b
    assert to_set(first.complement(NUM_ROWS)) == set(range(NUM_ROWS)) - a
    assert first.is_subset(second) == (a <= b)
    assert (first == second) == (a == b)
    assert hash(first & second) == hash(second & first)


@given(ROWS, st.integers(-3, NUM_ROWS + 3), st.integers(-3, NUM_ROWS + 3), st.integers(0, 6))
def test_clip_and_shift(rows, start, stop, by):
    found = to_ranges(rows)
    assert to_set(found.clip(start, stop)) == {row for row in rows if start <= row < stop}
    assert to_set(found.shift(by)) == {row + by for row in rows}
    assert found.shift(by).shift(-by) == found


@given(ROWS, st.data())
def test_select_and_positions_in(rows, data):
    outer = to_ranges(rows)
    chosen = data.draw(st.sets(st.integers(0, len(rows) - 1))) if rows else set()
    expected = {sorted(rows)[place] for place in chosen}
    found = outer.select(to_ranges(chosen))
    assert to_set(found) == expected
    assert found.positions_in(outer) == to_ranges(chosen)
    outside = RowRanges.all(NUM_ROWS) - outer
    if outside:
        with pytest.raises(ValueError, match="lack some of the rows"):
            (found | outside).positions_in(outer)


def test_repr_equality_pickle_and_immutability():
    ranges = RowRanges([(10, 20), (0, 5), (15, 30)])
    assert repr(ranges) == "RowRanges([(0, 5), (10, 30)])"
    assert eval(repr(ranges)) == ranges
    assert repr(RowRanges.from_indices(np.arange(0, 40, 2))).endswith("(14, 15), ... 12 more])")
    assert pickle.loads(pickle.dumps(ranges)) == ranges
    assert len({ranges, RowRanges(ranges.bounds), RowRanges()}) == 2
    assert ranges != [(0, 5), (10, 30)]
    assert not RowRanges.all(0)
    with pytest.raises(ValueError, match="read-only"):
        ranges.bounds[0, 0] = 1


def test_input_bounds_are_copied():
    bounds = np.array([[0, 5], [7, 9]])
    ranges = RowRanges(bounds)
    bounds[:] = 1
    assert list(ranges) == [(0, 5), (7, 9)]


def test_narrow_ints_do_not_overflow():
    assert list(RowRanges.from_indices(np.array([254, 255], np.uint8))) == [(254, 256)]
    assert list(RowRanges(np.array([[250, 255]], np.uint8)).shift(1000)) == [(1250, 1255)]
    last = np.iinfo(np.int64).max
    assert list(RowRanges(np.array([[5, last]], np.uint64))) == [(5, last)]


def test_hundred_thousand_ranges():
    bounds = np.arange(400_000, dtype=np.int64).reshape(-1, 4)[:, :2]
    ranges = RowRanges(bounds)
    assert (len(ranges & ranges.shift(1)), len(ranges | ranges.shift(1))) == (0, 100_000)
    assert ranges.select(RowRanges.all(100_000)) == ranges


@pytest.mark.parametrize(
    ("ranges", "error", "message"),
    [
        ([(-1, 2)], ValueError, "below 0"),
        ([(3, 2)], ValueError, "before it begins"),
        ([(0, 1, 2)], ValueError, "shape"),
        ([1, 2], ValueError, "shape"),
        ([(0.0, 1.0)], TypeError, "ints"),
        ([(2**63, 2**63 + 1)], ValueError, "int64"),
        ([(0, 2**64)], TypeError, "ints"),
    ],
)
def test_invalid_ranges_are_refused(ranges, error, message):
    with pytest.raises(error, match=message):
        RowRanges(ranges)


def test_invalid_arguments_are_refused():
    with pytest.raises(ValueError, match="not -1"):
        RowRanges.all(-1)
    ranges = RowRanges([(5, 10)])
    for wrong in (lambda: ranges.mask(9), lambda: ranges.complement(9), lambda: ranges.select(RowRanges.all(6))):
        with pytest.raises(ValueError, match="beyond the limit"):
            wrong()
    with pytest.raises(ValueError, match="below 0"):
        ranges.shift(-6)
    with pytest.raises(ValueError, match="int64"):
        ranges.shift(2**63 - 10)
    with pytest.raises(ValueError, match="one dimension"):
        RowRanges.from_mask([[True]])
    with pytest.raises(TypeError, match="from_mask"):
        RowRanges.from_indices([True, False])
