"""Plans cut by statistics, Bloom filters, page indexes and dictionaries: nothing wanted is lost, little else read."""

from __future__ import annotations

import copy
import io
import struct

import numpy as np
import pandas as pd
import pytest
from hostile.handmade import from_bytes, to_bytes, with_footer

import numparq
from numparq import col
from numparq.column.read.chunk_table import ChunkTables
from numparq.expr.bind import bind
from numparq.expr.expression import Constant
from numparq.format import bloom_filter
from numparq.format.bloom_filter import BloomFilter
from numparq.format.open_file import OpenFile
from numparq.plan.row_ranges import RowRanges
from numparq.prune import bloom_blocks, statistics
from numparq.prune import planner as planner_module
from numparq.prune.planner import ReadPlanner

ROWS = 4000
STEP = 1000  # rows of a row group


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    rows = np.arange(ROWS)
    nulls = rng.random(ROWS) < 0.1
    return pd.DataFrame(
        {
            "k": rows,
            "n": pd.Series(rows // 7, dtype="Int64").mask(nulls),
            "x": np.where(rng.random(ROWS) < 0.02, np.nan, rng.random(ROWS) * rows),
            "s": [f"v{row // 3:05d}" for row in rows],
            "c": [f"c{row % 40 * 2}" for row in rows],
            "e": pd.array([None if 1200 <= row < 1900 else row for row in rows], "Int64"),
        }
    )


FRAME = frame()
WRITTEN = numparq.to_parquet(FRAME, row_group_size=STEP, max_rows_per_page=100, use_dictionary=["c"])

QUESTIONS = {
    "point": (col("k") == 1234, lambda d: d.k == 1234),
    "range": (col("k").between(1950, 2050), lambda d: d.k.between(1950, 2050)),
    "ends": ((col("k") < 30) | (col("k") >= 3980), lambda d: (d.k < 30) | (d.k >= 3980)),
    "nulls": (col("n") == 40, lambda d: (d.n == 40).fillna(False)),
    "no nulls": (col("n").is_null() & (col("k") < 500), lambda d: d.n.isna() & (d.k < 500)),
    "not": (~(col("x") < 3000), lambda d: d.x >= 3000),
    "float": ((col("x") > 3500) & (col("k") > 100), lambda d: (d.x > 3500) & (d.k > 100)),
    "string": (col("s") == "v00400", lambda d: d.s == "v00400"),
    "prefix": (col("s").startswith("v0012"), lambda d: d.s.str.startswith("v0012")),
    "like": (col("s").like("v012%7"), lambda d: d.s.str.match("v012.*7$")),
    "several": (col("k").isin([5, 777, 3333]), lambda d: d.k.isin([5, 777, 3333])),
    "two": ((col("k") > 1990) & (col("s") < "v00680"), lambda d: (d.k > 1990) & (d.s < "v00680")),
    "either": ((col("k") < 10) | (col("s") > "v01330"), lambda d: (d.k < 10) | (d.s > "v01330")),
    "code": (col("c") == "c3", lambda d: d.c == "c3"),
    "gap": (col("e").is_null(), lambda d: d.e.isna()),
    "no gap": (
        col("e").is_not_null() & (col("k") >= 1000) & (col("k") < 2000),
        lambda d: d.e.notna() & (d.k >= 1000) & (d.k < 2000),
    ),
    "none": (col("k") > 10**6, lambda d: d.k > 10**6),
    "all": (col("k") >= 0, lambda d: d.k >= 0),
}


class Planned:
    """A file, and what is planned of it."""

    def __init__(self, data, **options) -> None:
        self.file = OpenFile(data, **options)
        self.leaves = list(self.file.schema)
        groups = range(self.file.num_row_groups)
        tables = ChunkTables(self.file.footer, self.leaves, groups, self.file.footer_start)
        self.planner = ReadPlanner(self.file, self.leaves, tables)
        self.counts = self.file.footer.row_group_num_rows.tolist()
        self.whole = self.planner.whole({group: RowRanges.all(self.counts[group]) for group in groups})

    def pruned(self, expression, plan=None):
        return self.planner.pruned(plan or self.whole, bind(expression, self.file.schema))

    def rows(self, plan) -> set[int]:
        starts = np.concatenate([[0], np.cumsum(self.counts)])
        return {int(row) for group in plan for row in group.rows.indices() + starts[group.ordinal]}


def levels(plan) -> set[str]:
    return {cut.level for cut in plan.cuts}


def by_pyarrow(**options) -> bytes:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(FRAME), out, row_group_size=STEP, data_page_size=512, **options)
    return out.getvalue()


def by_polars() -> bytes:
    out = io.BytesIO()
    pytest.importorskip("polars").from_pandas(FRAME).write_parquet(out, row_group_size=STEP, data_page_size=512)
    return out.getvalue()


def by_duckdb(path) -> bytes:
    duckdb = pytest.importorskip("duckdb")
    source = FRAME  # noqa: F841  (which duckdb finds by its name)
    duckdb.sql("from source").write_parquet(str(path / "d.parquet"), row_group_size=2048)
    return (path / "d.parquet").read_bytes()


WRITERS = {
    "numparq": lambda path: WRITTEN,
    "numparq, Bloom filters": lambda path: numparq.to_parquet(
        FRAME, row_group_size=STEP, max_rows_per_page=64, bloom_filter_options={"s": True, "k": True}
    ),
    "pyarrow": lambda path: by_pyarrow(),
    "pyarrow, page index": lambda path: by_pyarrow(write_page_index=True, use_dictionary=["c"]),
    "pyarrow, no statistics": lambda path: by_pyarrow(write_statistics=False),
    "polars": lambda path: by_polars(),
    "duckdb": by_duckdb,
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("writer", WRITERS)
def test_no_row_that_is_wanted_is_left_out(writer, question, tmp_path):
    expression, truth = QUESTIONS[question]
    planned = Planned(WRITERS[writer](tmp_path))
    plan = planned.pruned(expression)
    wanted = set(np.flatnonzero(truth(FRAME).astype(bool)).tolist())
    assert wanted <= planned.rows(plan)
    decided = planned.planner.decided(plan, bind(expression, planned.file.schema))
    for group in plan.left:
        if group.ordinal in decided:
            start = sum(planned.counts[: group.ordinal])
            assert set(range(start, start + group.num_rows)) <= wanted


@pytest.mark.parametrize(
    ("question", "rows", "cuts"),
    [
        ("point", 100, {"statistics", "column index"}),
        ("range", 200, {"statistics", "column index"}),
        ("ends", 200, {"statistics", "column index"}),
        ("string", 100, {"statistics", "column index"}),
        ("two", 200, {"statistics", "column index"}),
        ("several", 300, {"statistics", "column index"}),
        ("code", 0, {"dictionary"}),
        ("gap", 700 + 100, {"statistics", "column index"}),
        ("none", 0, {"statistics"}),
        ("all", ROWS, set()),
    ],
)
def test_what_is_left_of_a_file_with_everything(question, rows, cuts):
    planned = Planned(WRITTEN)
    plan = planned.pruned(QUESTIONS[question][0])
    assert plan.num_rows <= rows
    assert levels(plan) == cuts
    for group in plan.left:
        assert all(chunk.is_indexed for chunk in group.chunks) == (group.rows.count < group.num_rows)


def test_what_is_decided_by_statistics_has_no_index_read():
    planned = Planned(WRITTEN)
    for expression in (col("k") >= 0, col("k") < 2 * STEP, col("k") > ROWS, col("e").is_not_null() & (col("k") < STEP)):
        planned.pruned(expression)
    assert not planned.file.indexes
    assert planned.planner.decided(planned.whole, bind(col("k") < 2 * STEP, planned.file.schema)) == {0, 1}


def test_statistics_are_looked_at_once_whatever_object_the_predicate_is(monkeypatch):
    planned = Planned(WRITTEN)
    asked: list[int] = []

    def counting(file, leaf, row_groups):
        asked.extend(row_groups)
        return statistics.row_group_statistics(file, leaf, row_groups)

    monkeypatch.setattr(planner_module, "row_group_statistics", counting)
    question, other = col("k") < 2500, col("k") < 1500
    groups = planned.planner.may_match_row_groups(range(4), bind(question, planned.file.schema))
    assert groups == [0, 1, 2]
    assert asked == [0, 1, 2, 3]
    plan = planned.planner.prune_by_indexes(
        planned.planner.whole({group: RowRanges.all(STEP) for group in groups}), bind(question, planned.file.schema)
    )
    for group in groups:
        one = planned.planner.whole({group: plan[group].rows})
        decided = planned.planner.decided(one, bind(question, planned.file.schema))
        assert decided == ({group} if group < 2 else set())
    assert asked == [0, 1, 2, 3]
    one = planned.planner.whole({1: RowRanges.all(STEP)})  # another predicate is asked of no more than it has to be
    assert planned.planner.decided(one, bind(other, planned.file.schema)) == set()
    assert asked == [0, 1, 2, 3, 1]
    assert planned.planner.decided(planned.whole, bind(other, planned.file.schema)) == {0}


def test_indexes_are_read_once():
    planned = Planned(WRITTEN)
    plan = planned.pruned(col("k") == 1234)
    requests = planned.file.source.num_requests
    assert planned.pruned(col("k") == 1234) == plan
    assert planned.pruned(col("k").isin([1234, 1999])).num_rows == 200
    again = ReadPlanner(planned.file, planned.leaves, planned.planner._tables)
    assert again.pruned(planned.whole, bind(col("k") == 1234, planned.file.schema)) == plan
    assert planned.file.source.num_requests == requests


def test_rows_that_are_not_asked_for():
    planned = Planned(WRITTEN)
    plan = planned.planner.whole({2: RowRanges([(150, 250)]), 0: RowRanges.all(STEP)})
    assert [group.ordinal for group in plan] == [2, 0]
    assert plan.cuts[0].num_rows == 900
    plan = planned.planner.located(plan, planned.leaves[:2])
    assert [chunk.is_indexed for chunk in plan[2].chunks] == [True, True, False, False, False, False]
    assert not any(chunk.is_indexed for chunk in plan[0].chunks)
    assert plan[2].needed(0).tolist() == [1, 2]
    plan = planned.planner.located(plan, planned.leaves)
    assert all(chunk.is_indexed for chunk in plan[2].chunks)
    assert planned.pruned(col("k") == 2160, plan)[2].rows == RowRanges([(150, 200)])
    part = planned.planner.located(planned.planner.whole({1: RowRanges([(1, 2)])}).only(["s", "k"]), planned.leaves)
    assert all(chunk.is_indexed for chunk in part[1].chunks)


def test_predicates_that_are_constant():
    planned = Planned(WRITTEN)
    assert planned.pruned(col("k") < 2**70) == planned.whole or planned.pruned(col("k") < 2**70).num_rows == ROWS
    assert planned.pruned(col("k") == 0.5).num_rows == 0
    assert planned.planner.pruned(planned.whole, Constant(True)) == planned.whole
    assert planned.planner.may_match_row_groups([1, 0, 1], Constant(True)) == [1, 0]
    assert planned.planner.may_match_row_groups([1, 0, 1], Constant(False)) == []


def test_what_a_bloom_filter_is_read_for():
    data = WRITERS["numparq, Bloom filters"](None)
    planned = Planned(data)
    planned.file.source = CountingSource(planned.file.source)
    plan = planned.pruned(col("s") == "v00400x")
    assert plan.num_rows == 0
    assert "Bloom filter" in levels(plan)
    chunk = planned.file.metadata.row_groups[1].columns[3].meta_data
    (start, stop), (block, end) = sorted(planned.file.source.ranges)
    assert start == chunk.bloom_filter_offset
    assert stop - start < 32
    assert end - block == 32
    assert chunk.bloom_filter_offset < block < chunk.bloom_filter_offset + chunk.bloom_filter_length
    assert planned.file.source.trips == 1
    assert planned.pruned((col("s") == "v00400x") | (col("k") == 1500.0)).num_rows == 128


def test_a_bloom_filter_is_asked_by_several_tests():
    data = WRITERS["numparq, Bloom filters"](None)
    absent = col("s") == "v00400x"
    for number in range(340, 660, 20):  # all in the second row group
        there, neither = ((col("s") == f"v{number:05}{end}") & (col("k") >= 1010) for end in ("", "x"))
        assert Planned(data).pruned(absent | neither).num_rows == 0
        assert Planned(data).pruned(absent | there).num_rows in (64, 128)


def test_a_bloom_filter_that_is_asked_much_is_read_at_once():
    data = numparq.to_parquet(FRAME, bloom_filter_options={"s": True})
    asked = [f"v{number:05d}x" for number in range(0, 1333, 20)]
    planned = Planned(data)
    planned.file.source = CountingSource(planned.file.source)
    assert planned.pruned(col("s").isin(asked)).num_rows in (0, ROWS)
    assert len(planned.file.source.ranges) == 1  # header and blocks lie beside each other
    requests = planned.file.source.trips
    planned.pruned(col("s") == "v00007")
    assert planned.file.source.trips - requests <= 1
    few = Planned(data)
    few.file.source = CountingSource(few.file.source)
    for text in asked:
        few.pruned(col("s") == text)
    assert all(stop - start <= 64 for start, stop in few.file.source.ranges[:10])


class CountingSource:
    """Notes what is read of a source, and in how many calls."""

    is_remote = False

    def __init__(self, source) -> None:
        self._source, self.ranges, self.trips = source, [], 0

    def read_ranges(self, ranges):
        ranges = [tuple(map(int, pair)) for pair in ranges]
        self.ranges += ranges
        self.trips += 1
        return self._source.read_ranges(ranges)

    def __getattr__(self, name):
        return getattr(self._source, name)


def test_a_remote_file_has_all_its_indexes_read_in_one_trip():
    planned = Planned(WRITTEN)
    source = planned.file.source = CountingSource(planned.file.source)
    source.is_remote = True
    plan = planned.pruned((col("k") == 1234) & (col("s") > "a"))
    assert plan.num_rows == 100
    assert source.trips == 1
    assert all(chunk.is_indexed for chunk in plan[1].chunks)
    for start, stop in source.ranges:
        assert all(not (start < c.end and c.start < stop) for group in planned.whole for c in group.chunks)


# --- files whose indexes are not what they should be ------------------------------------------------------------------


def changed(change, data=WRITTEN, **more) -> bytes:
    """Change indexes in place: `change` is called with the footer and, by chunk, its indexes; None takes one away."""
    (length,) = struct.unpack("<I", data[-8:-4])
    body = bytearray(data[: -8 - length])
    footer, _ = from_bytes("FileMetaData", data[-8 - length : -8])
    names = {"column_index": "ColumnIndex", "offset_index": "OffsetIndex"}
    for group in footer.row_groups:
        for place, chunk in enumerate(group.columns):
            found = {
                name: from_bytes(struct_name, bytes(body[getattr(chunk, f"{name}_offset") :]))[0]
                for name, struct_name in names.items()
            }
            change(place, found)
            for name, index in found.items():
                written = index if isinstance(index, (bytes, type(None))) else to_bytes(index)
                setattr(chunk, f"{name}_offset", None if written is None else len(body))
                setattr(chunk, f"{name}_length", None if written is None else len(written))
                body += written or b""
    for name, value in more.items():
        setattr(footer, name, value)
    return with_footer(bytes(body), footer)


def the_keys_column_index(change):
    """Change the column index of the first column."""

    def apply(place, found):
        if place == 0:
            change(found["column_index"])

    return apply


def check(data: bytes, expected_rows: int, question="point"):
    expression, truth = QUESTIONS[question]
    planned = Planned(data)
    plan = planned.pruned(expression)
    assert set(np.flatnonzero(truth(FRAME).astype(bool)).tolist()) <= planned.rows(plan)
    assert plan.num_rows == expected_rows
    return plan


def set_to(**fields):
    return the_keys_column_index(lambda index: [setattr(index, name, value) for name, value in fields.items()])


@pytest.mark.parametrize("order", [0, 1, 2])
def test_pages_in_another_order_than_the_index_declares(order):
    check(changed(set_to(boundary_order=order)), 100)
    check(changed(set_to(boundary_order=order)), 300, "several")


def reverse(index):
    index.min_values.reverse()
    index.max_values.reverse()


UNHELPFUL = {
    "an unknown boundary order": set_to(boundary_order=7),
    "too few bounds": the_keys_column_index(lambda index: index.min_values.pop()),
    "too many null pages": the_keys_column_index(lambda index: index.null_pages.append(True)),
    "too few null counts": the_keys_column_index(lambda index: index.null_counts.pop()),
    "fewer pages than the offset index": the_keys_column_index(
        lambda index: [part.pop() for part in (index.min_values, index.max_values, index.null_pages, index.null_counts)]
    ),
    "no struct": lambda place, found: found.update(column_index=b"\x99\x99\x99"),
    "none": lambda place, found: found.update(column_index=None),
    "bounds of another length": the_keys_column_index(
        lambda index: [setattr(index, name, [b"\1" for _ in index.null_pages]) for name in ("min_values", "max_values")]
    ),
    "bounds that contradict each other": the_keys_column_index(
        lambda index: setattr(index, "min_values", [b"\xff" * 7 + b"\x7f" for _ in index.null_pages])
    ),
}


@pytest.mark.parametrize("what", UNHELPFUL)
def test_a_column_index_that_cannot_help(what):
    plan = check(changed(UNHELPFUL[what]), STEP)
    assert levels(plan) == {"statistics"}


def test_counts_that_are_missing_or_cannot_be():
    check(changed(set_to(null_counts=None)), 100)
    check(changed(set_to(null_counts=[-1] * 10)), 100)
    check(changed(set_to(null_counts=[10**9] * 10)), 100)


def test_null_counts_of_a_writer_that_counts_them_wrong():
    def change(place, found):
        if FRAME.columns[place] == "e":
            found["column_index"].null_counts = [0] * len(found["column_index"].null_counts)

    question = col("e").is_null() & (col("k") < STEP)
    assert Planned(changed(change)).pruned(question).num_rows == 0
    assert Planned(changed(change, created_by="Polars")).pruned(question).num_rows == STEP


def test_bounds_of_a_column_index_that_do_not_tell():
    """Those of a writer that compared bytes wrong; and equal ones of strings, which may both be cut."""

    def change(place, found):
        if FRAME.columns[place] == "s":
            index = found["column_index"]
            index.min_values = index.max_values = [b"v00400"] * len(index.null_pages)

    point, other = (col("s") == "v00401") & (col("k") >= 1000), (col("s") != "v00400") & (col("k") < STEP)
    assert Planned(changed(change)).pruned(point).num_rows == 0
    assert Planned(changed(change, created_by="parquet-mr version 1.7.0")).pruned(point).num_rows == 3 * STEP
    assert Planned(changed(change)).pruned(other).num_rows == STEP


def test_null_pages_that_have_values_by_their_null_counts():
    lying = set_to(null_pages=[True] * 10, min_values=[b""] * 10, max_values=[b""] * 10, null_counts=[0] * 10)
    check(changed(lying), STEP)


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
def test_an_offset_index_that_cannot_be_right(change):
    plan = check(changed(change_locations(change)), STEP)
    assert not any(chunk.is_indexed for chunk in plan[1].chunks)
    plan = check(changed(change_locations(change, [3])), 100)  # of a column that the filter does not ask
    assert [chunk.is_indexed for chunk in plan[1].chunks] == [True, True, True, False, True, True]


def test_an_offset_index_alone():
    data = changed(lambda place, found: found.update(column_index=None))
    planned = Planned(data)
    plan = planned.planner.located(planned.planner.whole({1: RowRanges([(5, 6)])}), planned.leaves)
    assert [len(group.needed(0)) for group in plan] == [1]
    assert all(chunk.is_indexed for chunk in plan[1].chunks)


def test_an_offset_index_of_no_column_index():
    plan = check(changed(lambda place, found: found.update(offset_index=None)), STEP)
    assert levels(plan) == {"statistics"}


@pytest.mark.parametrize("where", [(1 << 60, 50), (4, 1 << 31), (-7, 50), (0, 50), (1000, -1), (1000, 0), (None, 50)])
@pytest.mark.parametrize("which", ["column_index", "offset_index"])
def test_indexes_that_lie_nowhere(where, which):
    (length,) = struct.unpack("<I", WRITTEN[-8:-4])
    footer, _ = from_bytes("FileMetaData", WRITTEN[-8 - length : -8])
    for group in footer.row_groups:
        setattr(group.columns[0], f"{which}_offset", where[0])
        setattr(group.columns[0], f"{which}_length", min(where[1], 2**31 - 1))
    check(with_footer(WRITTEN[: -8 - length], footer), STEP)


def test_indexes_that_claim_more_than_the_file_has():
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
def test_row_groups_that_only_column_indexes_leave_out(data, question):
    expression, truth = QUESTIONS[question]
    planned = Planned(without_statistics(data))
    plan = planned.pruned(expression)
    assert set(np.flatnonzero(truth(FRAME).astype(bool)).tolist()) <= planned.rows(plan)
    by_statistics = Planned(data).pruned(expression)
    assert plan.num_rows == by_statistics.num_rows
    assert "statistics" not in levels(plan)
    for group in planned.whole:  # one by one they say what they say together
        rows = {group.ordinal: group.rows}
        assert planned.pruned(expression, planned.planner.whole(rows)).row_groups == (plan[group.ordinal],)


def test_some_row_groups_without_an_index():
    turn = iter(range(100))

    def change(place, found):
        if place == 0 and next(turn) % 2:
            found["column_index"] = None

    planned = Planned(without_statistics(changed(change)))
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
def test_an_offset_index_of_one_page_that_is_not_all_of_the_chunk(what):
    data = changed(change_locations(ONE_PAGE_WRONG[what]), ONE_PAGE)
    assert Planned(without_statistics(data)).pruned(col("k") == 1234).num_rows == ROWS


def test_writers_whose_indexes_are_not_trusted():
    keep = changed(lambda place, found: None, created_by="parquet-rs version 52.0.0")
    plan = check(keep, STEP)
    assert levels(plan) == {"statistics"}
    old = changed(lambda place, found: None, created_by="parquet-rs version 42.0.0")
    planned = Planned(old)
    plan = planned.planner.located(planned.planner.whole({1: RowRanges([(5, 6)])}), planned.leaves)
    assert not any(chunk.is_indexed for chunk in plan[1].chunks)
    assert planned.pruned(col("k") == 1234).num_rows == STEP


# --- Bloom filters that are not what they should be -------------------------------------------------------------------


def with_bloom(change, data=None) -> bytes:
    data = bytearray(data or WRITERS["numparq, Bloom filters"](None))
    (length,) = struct.unpack("<I", data[-8:-4])
    footer, _ = from_bytes("FileMetaData", bytes(data[-8 - length : -8]))
    body = data[: -8 - length]
    for group in footer.row_groups:
        change(body, group.columns[3].meta_data)
    return with_footer(bytes(body), footer)


def set_length(length):
    return lambda body, chunk: setattr(chunk, "bloom_filter_length", length)


def set_header(**fields):
    def change(body, chunk):
        start = chunk.bloom_filter_offset
        header, size = from_bytes("BloomFilterHeader", bytes(body[start : start + 64]))
        for name, value in fields.items():
            setattr(header, name, value)
        written = to_bytes(header)
        bits = body[start + size : start + chunk.bloom_filter_length]
        chunk.bloom_filter_offset = len(body)
        body += written + bits
        chunk.bloom_filter_length = len(written) + len(bits)

    return change


@pytest.mark.parametrize("length", [None, 0, 7, 33, 100, 10_000, -4])
def test_a_bloom_filter_whose_length_is_not_told_or_wrong(length):
    planned = Planned(with_bloom(set_length(length)))
    assert planned.pruned(col("s") == "v00400x").num_rows == 0
    assert planned.pruned(col("s") == "v00400").num_rows == 64


@pytest.mark.parametrize(
    "change",
    [
        set_header(numBytes=33),
        set_header(numBytes=0),
        set_header(numBytes=-32),
        set_header(numBytes=1 << 30),
        set_header(numBytes=(1 << 31) - 32),
        set_header(algorithm=None),
        set_length(2**31 - 1),
        lambda body, chunk: setattr(chunk, "bloom_filter_offset", 1 << 60),
        lambda body, chunk: setattr(chunk, "bloom_filter_offset", 2),
    ],
)
def test_a_bloom_filter_that_cannot_help(change):
    planned = Planned(with_bloom(change))
    plan = planned.pruned(col("s") == "v00400x")
    assert "Bloom filter" not in levels(plan)
    assert set(np.flatnonzero(FRAME.s == "v00400").tolist()) <= planned.rows(planned.pruned(col("s") == "v00400"))


def with_row_groups_again(data: bytes, times: int, change=lambda group, number: None) -> bytes:
    """Have the footer list the first row group many times."""
    (length,) = struct.unpack("<I", data[-8:-4])
    footer, _ = from_bytes("FileMetaData", data[-8 - length : -8])
    footer.row_groups = [copy.deepcopy(footer.row_groups[0]) for _ in range(times)]
    for number, group in enumerate(footer.row_groups):
        group.ordinal = None
        change(group, number)
    footer.num_rows = sum(group.num_rows for group in footer.row_groups)
    return with_footer(data[: -8 - length], footer)


MANY = [f"v{number:05d}x" for number in range(0, 1333, 20)]


def one_filter() -> bytes:
    return numparq.to_parquet(
        FRAME[["s"]],
        bloom_filter_options={"s": True},
        write_statistics=False,
        write_page_index=False,
        use_dictionary=False,
    )


def test_bloom_filters_at_the_same_place_are_read_once():
    planned = Planned(with_row_groups_again(one_filter(), 50))
    planned.file.source = source = CountingSource(planned.file.source)
    assert planned.pruned(col("s").isin(MANY)).num_rows in (0, 50 * ROWS)
    assert sum(stop - start for start, stop in source.ranges) < planned.file.source.size


def test_bloom_filters_that_claim_more_than_the_file_has():
    def move(group, number):
        group.columns[0].meta_data.bloom_filter_offset -= number

    data = with_row_groups_again(one_filter(), 50, move)
    planned = Planned(data)
    planned.file.source = source = CountingSource(planned.file.source)
    assert planned.pruned(col("s") == "v00400x").num_rows == 50 * ROWS
    assert not source.ranges

    def forget(group, number):  # ... by their headers
        group.columns[0].meta_data.bloom_filter_length = None
        group.columns[0].meta_data.bloom_filter_offset = headers + 16 * number

    body = data[: -8 - struct.unpack("<I", data[-8:-4])[0]]
    footer, _ = from_bytes("FileMetaData", data[len(body) : -8])
    start = footer.row_groups[0].columns[0].meta_data.bloom_filter_offset
    header, size = from_bytes("BloomFilterHeader", body[start : start + 64])
    headers = len(body)
    body += (body[start : start + size].ljust(16, b"\0")) * 50 + bytes(header.numBytes)
    planned = Planned(with_row_groups_again(with_footer(body, footer), 50, forget))
    assert planned.pruned(col("s") == "v00400x").num_rows == 50 * ROWS
    assert planned.pruned(col("s").isin(MANY)).num_rows == 50 * ROWS


@pytest.mark.parametrize("count", [1, 3, 4096])
def test_one_hash_is_looked_up_as_several_are(count):
    rng = np.random.default_rng(count)
    hashes = rng.integers(0, 1 << 64, 200, np.uint64)
    hashes[:2] = 0, (1 << 64) - 1
    bits = rng.integers(0, 256, count * bloom_filter.BLOCK_BYTES, np.uint8) | 0xB7
    blocks = bloom_blocks.BloomFilterBlocks(0, count)
    found = []
    for each in hashes:
        alone, twice = np.array([each]), np.array([each, each])
        assert alone.size == 1
        assert blocks.missing(alone) == blocks.missing(twice)
        for first, several in blocks.missing(alone):
            start = first * bloom_filter.BLOCK_BYTES
            blocks.take(first, several, bits[start : start + several * bloom_filter.BLOCK_BYTES])
        assert blocks.missing(alone) == [] == blocks.missing(twice)
        found += blocks.might_contain(alone).tolist()
        assert blocks.might_contain(twice).tolist() == [found[-1]] * 2
    assert found == BloomFilter(bits).might_contain(hashes).tolist()
    assert {*found} == {True, False}


@pytest.mark.parametrize("length", ["told", "not told"])
def test_bloom_filters_are_read_in_turns_and_few_are_kept(length, monkeypatch):
    wide = numparq.to_parquet(FRAME, row_group_size=STEP, bloom_filter_options={"s": True, "x": True})
    wide = wide if length == "told" else with_bloom(set_length(None), wide)
    question = col("s").isin(MANY) & ~col("x").is_null()
    plan = Planned(wide).pruned(question)
    monkeypatch.setattr(bloom_blocks, "_AT_ONCE", 1)
    monkeypatch.setattr(bloom_blocks, "_MOST_KEPT", 1500)
    planned = Planned(wide)
    planned.file.source = source = CountingSource(planned.file.source)
    assert planned.pruned(question) == plan
    assert "Bloom filter" in levels(plan)
    assert source.trips >= 4
    (store,) = [kept for kept in planned.file.indexes.values() if isinstance(kept, bloom_blocks.BloomFilterCache)]
    assert store.num_bytes <= 1500
    planned.pruned(col("s") == "v00007x")
    trips = source.trips
    planned.pruned(col("s") == "v00007x")
    assert source.trips == trips
    assert 0 < store.num_bytes <= 1500


# --- dictionaries that are none ---------------------------------------------------------------------------------------


def test_a_dictionary_is_not_asked_of_nulls_and_of_what_a_list_lacks():
    rows = np.arange(4000)
    made = pd.DataFrame(
        {
            "pad": np.random.default_rng(1).random(4000),
            "c": np.where(rows % 3, "a", "c"),
            "e": pd.array([None if row % 5 == 0 else row % 2 * 100 for row in rows], "Int64"),
            "l": [[5] if row % 4 else [1, 9] for row in rows],
        }
    )
    data = numparq.to_parquet(made, row_group_size=2000, use_dictionary=["c", "e", "l"])
    question = ((col("c") == "a") & col("e").is_null()) | (col("e") == 50)
    assert "dictionary" in levels(Planned(data).pruned(col("e") == 50))
    assert Planned(data).pruned(question).num_rows == 4000
    assert len(numparq.read_parquet(data, filters=question)) == np.count_nonzero((rows % 3 > 0) & (rows % 5 == 0))
    question = (col("l").contains(5) & ~col("l").contains(7)) | (col("e") == 50)
    assert len(numparq.read_parquet(data, filters=question)) == 3000


def test_a_dictionary_that_was_given_up_has_not_all_values():
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    numbers = [0, 1 << 40, *np.random.default_rng(2).integers(0, 1 << 40, 9998).tolist()]
    out = io.BytesIO()
    pq.write_table(
        pa.table({"n": numbers, "pad": np.random.default_rng(3).random(10_000)}),
        out,
        dictionary_pagesize_limit=2000,
        data_page_size=4000,
    )
    for row in (3, 9999):
        assert numparq.read_parquet(out.getvalue(), filters=col("n") == numbers[row])["n"].tolist() == [numbers[row]]


def test_encoding_stats_of_a_dictionary_where_none_is():
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    out, table = io.BytesIO(), pa.table({"s": [f"v{row % 5}" for row in range(ROWS)], "k": range(ROWS)})
    pq.write_table(
        table,
        out,
        use_dictionary=False,
        write_statistics=False,
        data_page_size=1,
        write_batch_size=100,
        data_page_version="2.0",
    )
    data = out.getvalue()
    (length,) = struct.unpack("<I", data[-8:-4])
    footer, _ = from_bytes("FileMetaData", data[-8 - length : -8])
    for chunk, question in zip(footer.row_groups[0].columns, (col("s") == "v1", col("k") == 1), strict=True):
        meta = chunk.meta_data
        first, size = from_bytes("PageHeader", data[meta.data_page_offset :])
        meta.dictionary_page_offset = meta.data_page_offset
        meta.data_page_offset += size + first.compressed_page_size
        for stat in meta.encoding_stats:
            stat.encoding = 8
        lying = Planned(with_footer(data[: -8 - length], footer))
        assert lying.pruned(question).num_rows == ROWS


# --- lists and structs ------------------------------------------------------------------------------------------------


def nested_table():
    pa = pytest.importorskip("pyarrow")
    lists = [None if row % 50 == 7 else [row] * (row % 4) + [None] * (row % 2) for row in range(ROWS)]
    structs = [None if row % 40 == 3 else {"a": None if row % 30 == 5 else row} for row in range(ROWS)]
    return pa.table({"l": pa.array(lists, pa.list_(pa.int64())), "s": structs, "k": range(ROWS)})


NESTED = {
    "contains": (col("l").contains(1234), lambda row: row["l"] is not None and 1234 in row["l"], 100),
    "contains nothing there": (col("l").contains(10**6), lambda row: False, 0),
    "does not contain": (~col("l").contains(1234), lambda row: row["l"] is not None and 1234 not in row["l"], ROWS),
    "field": (col("s.a") == 1234, lambda row: row["s"] is not None and row["s"]["a"] == 1234, 100),
    "null field": (col("s.a").is_null(), lambda row: row["s"] is None or row["s"]["a"] is None, ROWS),
    "null struct": (col("s").is_null(), lambda row: row["s"] is None, ROWS),
    "both": (
        col("l").contains(1233) & (col("s.a") >= 1230) & (col("k") < 1290),
        lambda row: row["k"] == 1233 and 1233 in (row["l"] or ()),
        100,
    ),
}


@pytest.mark.parametrize("question", NESTED)
@pytest.mark.parametrize("writer", ["numparq", "pyarrow", "pyarrow without dictionaries"])
def test_rows_of_lists_and_structs(writer, question):
    pq, table = pytest.importorskip("pyarrow.parquet"), nested_table()
    expression, truth, most = NESTED[question]
    if writer == "numparq":
        data = numparq.to_parquet(table.to_pandas(), schema=table.schema, row_group_size=STEP, max_rows_per_page=100)
    else:
        out = io.BytesIO()
        pq.write_table(
            table,
            out,
            row_group_size=STEP,
            data_page_size=256,
            write_page_index=True,
            write_batch_size=20,
            data_page_version="2.0",
            use_dictionary=writer == "pyarrow",
        )
        data = out.getvalue()
    planned = Planned(data)
    plan = planned.pruned(expression)
    rows = table.to_pylist()
    assert {number for number, row in enumerate(rows) if truth(row)} <= planned.rows(plan)
    assert plan.num_rows <= most


def test_bytes_of_indexes_and_bloom_filters_that_are_damaged_never_stop_a_read():
    data = numparq.to_parquet(FRAME[:600], row_group_size=300, max_rows_per_page=40, bloom_filter_options={"s": True})
    with numparq.ParquetFile(data) as file:
        last = max(chunk.meta_data.data_page_offset for chunk in file.metadata.row_groups[1].columns)
        end = file.footer_start
    rng = np.random.default_rng(8)
    questions = [QUESTIONS[name][0] for name in ("point", "nulls", "not", "prefix", "like", "gap", "several")]
    for _ in range(80):
        damaged = bytearray(data)
        for place in rng.integers(last + 200, end, rng.integers(1, 6)).tolist():
            damaged[place] = rng.integers(256)
        planned = Planned(bytes(damaged))
        for question in [*questions, col("s") == "v00100", (col("s") == "v00100x") | (col("k") == 150)]:
            plan = planned.pruned(question)
            assert plan.num_rows <= 600


def test_round_trips_of_planning_on_an_object_store():
    pytest.importorskip("fsspec")
    from object_store import ObjectStore

    rows = 100_000
    rng = np.random.default_rng(4)
    made = pd.DataFrame({"s": [f"v{n}" for n in rng.permutation(rows)], "k": np.arange(rows), "x": rng.random(rows)})
    data = numparq.to_parquet(made, row_group_size=rows // 4, max_rows_per_page=100, bloom_filter_options={"s": True})
    store = ObjectStore()
    store.pipe("/b.parquet", data)
    with numparq.ParquetFile("/b.parquet", filesystem=store) as file:
        store.reset()
        plan = file.plan(filters=col("s") == "v777777")
        assert plan.num_rows == 0
        assert store.round_trips == 1
        assert store.num_bytes < 4 * (32 + 32)
        store.reset()
        plan = file.plan(filters=(col("s") == made.s[33_333]) & (col("k") == 33_333))
        assert plan.num_rows == 100
        assert store.round_trips <= 2
        assert all(chunk.is_indexed for chunk in plan[1].chunks)
        store.reset()
        assert file.plan(filters=(col("s") == made.s[33_333]) & (col("k") == 33_333)).num_rows == 100
        assert not store.requests
