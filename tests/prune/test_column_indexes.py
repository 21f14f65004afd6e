"""Pruning by valid, invalid and false page indexes."""

from __future__ import annotations

import struct

import numpy as np
import pytest

import numparq
from numparq import col
from numparq.plan.row_ranges import RowRanges
from support.files.builder import from_bytes, with_footer
from support.planned_file import FRAME, QUESTIONS, ROWS, STEP, WRITTEN, PlannedFile, pruning_steps, with_changed_indexes


def change_first_column_index(change):
    """Return an edit of the first column's column index."""

    def apply(place, found):
        if place == 0:
            change(found["column_index"])

    return apply


def check(data: bytes, expected_rows: int, question="point"):
    expression, truth = QUESTIONS[question]
    planned = PlannedFile(data)
    plan = planned.pruned(expression)
    assert set(np.flatnonzero(truth(FRAME).astype(bool)).tolist()) <= planned.rows(plan)
    assert plan.num_rows == expected_rows
    return plan


def set_to(**fields):
    return change_first_column_index(lambda index: [setattr(index, name, value) for name, value in fields.items()])


@pytest.mark.parametrize("order", [0, 1, 2])
def test_wrong_boundary_order_is_harmless(order):
    check(with_changed_indexes(set_to(boundary_order=order)), 100)
    check(with_changed_indexes(set_to(boundary_order=order)), 300, "several")


UNHELPFUL = {
    "an unknown boundary order": set_to(boundary_order=7),
    "too few bounds": change_first_column_index(lambda index: index.min_values.pop()),
    "too many null pages": change_first_column_index(lambda index: index.null_pages.append(True)),
    "too few null counts": change_first_column_index(lambda index: index.null_counts.pop()),
    "fewer pages than the offset index": change_first_column_index(
        lambda index: [part.pop() for part in (index.min_values, index.max_values, index.null_pages, index.null_counts)]
    ),
    "no struct": lambda place, found: found.update(column_index=b"\x99\x99\x99"),
    "none": lambda place, found: found.update(column_index=None),
    "bounds of another length": change_first_column_index(
        lambda index: [setattr(index, name, [b"\1" for _ in index.null_pages]) for name in ("min_values", "max_values")]
    ),
    "bounds that contradict each other": change_first_column_index(
        lambda index: setattr(index, "min_values", [b"\xff" * 7 + b"\x7f" for _ in index.null_pages])
    ),
}


@pytest.mark.parametrize("what", UNHELPFUL)
def test_invalid_column_index_is_ignored(what):
    plan = check(with_changed_indexes(UNHELPFUL[what]), STEP)
    assert pruning_steps(plan) == {"statistics"}


def test_missing_or_impossible_null_counts():
    check(with_changed_indexes(set_to(null_counts=None)), 100)
    check(with_changed_indexes(set_to(null_counts=[-1] * 10)), 100)
    check(with_changed_indexes(set_to(null_counts=[10**9] * 10)), 100)


def test_null_counts_of_polars_are_ignored():
    def change(place, found):
        if FRAME.columns[place] == "e":
            found["column_index"].null_counts = [0] * len(found["column_index"].null_counts)

    question = col("e").is_null() & (col("k") < STEP)
    assert PlannedFile(with_changed_indexes(change)).pruned(question).num_rows == 0
    assert PlannedFile(with_changed_indexes(change, created_by="Polars")).pruned(question).num_rows == STEP


def test_bounds_of_old_parquet_mr_and_truncated_strings():
    """parquet-mr 1.7.0 compared bytes wrong; equal string bounds may both be truncated."""

    def change(place, found):
        if FRAME.columns[place] == "s":
            index = found["column_index"]
            index.min_values = index.max_values = [b"v00400"] * len(index.null_pages)

    point, other = (col("s") == "v00401") & (col("k") >= 1000), (col("s") != "v00400") & (col("k") < STEP)
    assert PlannedFile(with_changed_indexes(change)).pruned(point).num_rows == 0
    assert (
        PlannedFile(with_changed_indexes(change, created_by="parquet-mr version 1.7.0")).pruned(point).num_rows
        == 3 * STEP
    )
    assert PlannedFile(with_changed_indexes(change)).pruned(other).num_rows == STEP


def test_null_pages_contradicted_by_null_counts():
    false_indexes = set_to(null_pages=[True] * 10, min_values=[b""] * 10, max_values=[b""] * 10, null_counts=[0] * 10)
    check(with_changed_indexes(false_indexes), STEP)


def change_locations(change, columns=range(6)):
    def apply(place, found):
        if place in columns:
            change(found["offset_index"].page_locations)

    return apply


def shift(by):
    def change(locations):
        for location in locations:
            location.offset += by

    return change


def set_first_rows(rows):
    def change(locations):
        for location, row in zip(locations, rows, strict=True):
            location.first_row_index = row

    return change


@pytest.mark.parametrize(
    "change",
    [
        shift(10**9),
        shift(-(10**9)),
        shift(2**62),
        lambda found: found.clear(),
        lambda found: found.reverse(),
        set_first_rows(range(5, 15)),
        set_first_rows([0, 10**6, *range(2, 10)]),
        lambda found: setattr(found[0], "compressed_page_size", 2**31 - 1),
        lambda found: setattr(found[3], "compressed_page_size", -5),
        lambda found: found.pop(4),
    ],
)
def test_invalid_offset_index_is_ignored(change):
    plan = check(with_changed_indexes(change_locations(change)), STEP)
    assert not any(chunk.is_indexed for chunk in plan[1].chunks)
    plan = check(with_changed_indexes(change_locations(change, [3])), 100)  # of a column that the filter does not read
    assert [chunk.is_indexed for chunk in plan[1].chunks] == [True, True, True, False, True, True]


def test_offset_index_without_column_index():
    data = with_changed_indexes(lambda place, found: found.update(column_index=None))
    planned = PlannedFile(data)
    plan = planned.located({1: RowRanges([(5, 6)])})
    assert [len(group.pages_with_rows(0)) for group in plan] == [1]
    assert all(chunk.is_indexed for chunk in plan[1].chunks)


def test_column_index_without_offset_index():
    plan = check(with_changed_indexes(lambda place, found: found.update(offset_index=None)), STEP)
    assert pruning_steps(plan) == {"statistics"}


@pytest.mark.parametrize("where", [(1 << 60, 50), (4, 1 << 31), (-7, 50), (0, 50), (1000, -1), (1000, 0), (None, 50)])
@pytest.mark.parametrize("which", ["column_index", "offset_index"])
def test_index_positions_outside_the_file(where, which):
    (length,) = struct.unpack("<I", WRITTEN[-8:-4])
    footer, _ = from_bytes("FileMetaData", WRITTEN[-8 - length : -8])
    for group in footer.row_groups:
        setattr(group.columns[0], f"{which}_offset", where[0])
        setattr(group.columns[0], f"{which}_length", min(where[1], 2**31 - 1))
    check(with_footer(WRITTEN[: -8 - length], footer), STEP)


def test_indexes_of_total_length_beyond_the_file():
    (length,) = struct.unpack("<I", WRITTEN[-8:-4])
    footer, _ = from_bytes("FileMetaData", WRITTEN[-8 - length : -8])
    for group in footer.row_groups:
        for chunk in group.columns:
            chunk.column_index_offset = chunk.offset_index_offset = 4
            chunk.column_index_length = chunk.offset_index_length = len(WRITTEN) - 8 - length - 4
    check(with_footer(WRITTEN[: -8 - length], footer), STEP)


ONE_PAGE = numparq.to_parquet(FRAME, row_group_size=STEP, max_rows_per_page=STEP, use_dictionary=["c"])


def without_statistics(data: bytes) -> bytes:
    (length,) = struct.unpack("<I", data[-8:-4])
    footer, _ = from_bytes("FileMetaData", data[-8 - length : -8])
    for group in footer.row_groups:
        for chunk in group.columns:
            chunk.meta_data.statistics = None
    return with_footer(data[: -8 - length], footer)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("data", [ONE_PAGE, WRITTEN], ids=["one page", "pages"])
def test_column_indexes_prune_like_statistics(data, question):
    expression, truth = QUESTIONS[question]
    planned = PlannedFile(without_statistics(data))
    plan = planned.pruned(expression)
    assert set(np.flatnonzero(truth(FRAME).astype(bool)).tolist()) <= planned.rows(plan)
    by_statistics = PlannedFile(data).pruned(expression)
    assert plan.num_rows == by_statistics.num_rows
    assert "statistics" not in pruning_steps(plan)
    for group in planned.whole:  # each row group alone gives the same result
        rows = {group.ordinal: group.rows}
        assert planned.pruned(expression, rows).row_groups == (plan[group.ordinal],)


def test_row_groups_without_column_index_stay():
    turn = iter(range(100))

    def change(place, found):
        if place == 0 and next(turn) % 2:
            found["column_index"] = None

    planned = PlannedFile(without_statistics(with_changed_indexes(change)))
    assert [group.rows.count for group in planned.pruned(col("k") == 1234)] == [0, STEP, 0, STEP]
    assert [group.rows.count for group in planned.pruned((col("k") == 1234) | (col("s") == "v00001"))] == [
        100,
        STEP,
        0,
        STEP,
    ]
    assert [group.rows.count for group in planned.pruned((col("k") == 1234) & (col("s") == "v00411"))] == [0, 100, 0, 0]


ONE_PAGE_WRONG = {
    "shorter": lambda found: setattr(found[0], "compressed_page_size", found[0].compressed_page_size - 1),
    "longer": lambda found: setattr(found[0], "compressed_page_size", found[0].compressed_page_size + 1),
    "negative": lambda found: setattr(found[0], "compressed_page_size", -1),
    "in front": lambda found: [setattr(found[0], "offset", 0), setattr(found[0], "compressed_page_size", 10**9)],
    "later row": lambda found: setattr(found[0], "first_row_index", 1),
    "two": lambda found: found.append(found[0]),
}


@pytest.mark.parametrize("what", ONE_PAGE_WRONG)
def test_single_page_index_must_cover_the_chunk(what):
    data = with_changed_indexes(change_locations(ONE_PAGE_WRONG[what]), ONE_PAGE)
    assert PlannedFile(without_statistics(data)).pruned(col("k") == 1234).num_rows == ROWS


def test_indexes_of_old_parquet_rs_are_ignored():
    unchanged = with_changed_indexes(lambda place, found: None, created_by="parquet-rs version 52.0.0")
    plan = check(unchanged, STEP)
    assert pruning_steps(plan) == {"statistics"}
    old = with_changed_indexes(lambda place, found: None, created_by="parquet-rs version 42.0.0")
    planned = PlannedFile(old)
    plan = planned.located({1: RowRanges([(5, 6)])})
    assert not any(chunk.is_indexed for chunk in plan[1].chunks)
    assert planned.pruned(col("k") == 1234).num_rows == STEP
