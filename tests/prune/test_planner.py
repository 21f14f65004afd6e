"""Read plans pruned by statistics, Bloom filters, page indexes and dictionaries: no row lost, few bytes read."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import col
from numparq.expr.bind import bind
from numparq.expr.expression import Constant
from numparq.plan.plan_change import PlanCut
from numparq.plan.row_ranges import RowRanges
from numparq.prune import planner as planner_module
from numparq.prune import statistics
from numparq.prune.planner import ReadPlanner
from support.planned_file import (
    FRAME,
    QUESTIONS,
    ROWS,
    STEP,
    WRITERS,
    WRITTEN,
    PlannedFile,
    pruning_steps,
)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("writer", WRITERS)
def test_pruning_keeps_every_matching_row(writer, question, tmp_path):
    expression, truth = QUESTIONS[question]
    planned = PlannedFile(WRITERS[writer](tmp_path))
    plan = planned.pruned(expression)
    expected = set(np.flatnonzero(truth(FRAME).astype(bool)).tolist())
    assert expected <= planned.rows(plan)
    matched = planned.fully_matched(expression)
    for group in plan.left:
        if group.ordinal in matched:
            start = sum(planned.counts[: group.ordinal])
            assert set(range(start, start + group.num_rows)) <= expected


@pytest.mark.parametrize(
    ("question", "rows", "steps"),
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
def test_rows_left_and_pruning_steps(question, rows, steps):
    planned = PlannedFile(WRITTEN)
    plan = planned.pruned(QUESTIONS[question][0])
    assert plan.num_rows <= rows
    assert pruning_steps(plan) == steps
    for group in plan.left:
        assert all(chunk.is_indexed for chunk in group.chunks) == (group.rows.count < group.num_rows)


def test_statistics_that_decide_skip_indexes():
    planned = PlannedFile(WRITTEN)
    for expression in (col("k") >= 0, col("k") < 2 * STEP, col("k") > ROWS, col("e").is_not_null() & (col("k") < STEP)):
        planned.pruned(expression)
    assert not planned.file.entry
    assert not planned.file.bloom_filters
    assert planned.fully_matched(col("k") < 2 * STEP) == {0, 1}


def test_row_groups_match_by_statistics(monkeypatch):
    planned = PlannedFile(WRITTEN)
    decoded: list[int] = []

    def counted(file, leaf, row_groups):
        decoded.extend(row_groups)
        return statistics.row_group_statistics(file, leaf, row_groups)

    monkeypatch.setattr(planner_module, "row_group_statistics", counted)
    bound = bind(col("k") < 2500, planned.file.schema)
    assert planned.planner.match_row_groups([3, 1, 0, 2], bound) == ([1, 0, 2], {0, 1})
    assert planned.planner.match_row_groups([3], bound) == ([], set())
    assert decoded == [3, 1, 0, 2, 3]
    assert planned.pruned(col("k") < 2500).cuts[0].num_rows == STEP
    assert planned.pruned((col("k") < 2500) & (col("s") >= "v00400")).cuts[:2] == (
        PlanCut("statistics", "(col('k') < 2500)", STEP, planned.whole[3].num_bytes),
        PlanCut("statistics", "(col('s') >= 'v00400')", STEP, planned.whole[0].num_bytes),
    )


def test_indexes_are_read_once():
    planned = PlannedFile(WRITTEN)
    plan = planned.pruned(col("k") == 1234)
    requests = planned.file.source.num_requests
    assert planned.pruned(col("k") == 1234) == plan
    assert planned.pruned(col("k").isin([1234, 1999])).num_rows == 200
    planned.planner = ReadPlanner(planned.file, planned.leaves, planned.planner._tables)
    assert planned.pruned(col("k") == 1234) == plan
    assert planned.file.source.num_requests == requests


def test_selected_rows_limit_the_plan():
    planned = PlannedFile(WRITTEN)
    rows = {2: RowRanges([(150, 250)]), 0: RowRanges.all(STEP)}
    plan = planned.planner.plan_rows(rows).build()
    assert [group.ordinal for group in plan] == [2, 0]
    assert plan.cuts[0].num_rows == 900
    plan = planned.located(rows, 2)
    assert [chunk.is_indexed for chunk in plan[2].chunks] == [True, True, False, False, False, False]
    assert not any(chunk.is_indexed for chunk in plan[0].chunks)
    assert plan[2].pages_with_rows(0).tolist() == [1, 2]
    plan = planned.located(rows, 2, 6)
    assert all(chunk.is_indexed for chunk in plan[2].chunks)
    assert planned.pruned(col("k") == 2160, rows)[2].rows == RowRanges([(150, 200)])


def test_constant_predicates():
    planned = PlannedFile(WRITTEN)
    assert planned.pruned(col("k") < 2**70) == planned.whole or planned.pruned(col("k") < 2**70).num_rows == ROWS
    assert planned.pruned(col("k") == 0.5).num_rows == 0
    for value, matches in ((True, ([1, 0], {0, 1})), (False, ([], set()))):
        plan = planned.planner.plan_rows({0: RowRanges.all(STEP), 1: RowRanges.all(STEP)})
        assert planned.planner.prune(plan, Constant(value)) == {0, 1}
        assert plan.build().num_rows == 2 * STEP * value
        assert planned.planner.match_row_groups([1, 0], Constant(value)) == matches


def test_bloom_filter_read_is_header_and_one_block():
    data = WRITERS["numparq, Bloom filters"](None)
    planned = PlannedFile(data)
    planned.count_requests()
    plan = planned.pruned(col("s") == "v00400x")
    assert plan.num_rows == 0
    assert "Bloom filter" in pruning_steps(plan)
    chunk = planned.file.metadata.row_groups[1].columns[3].meta_data
    (start, stop), (block, end) = sorted(planned.file.source.ranges)
    assert start == chunk.bloom_filter_offset
    assert stop - start < 32
    assert end - block == 32
    assert chunk.bloom_filter_offset < block < chunk.bloom_filter_offset + chunk.bloom_filter_length
    assert planned.file.source.trips == 1
    assert planned.pruned((col("s") == "v00400x") | (col("k") == 1500.0)).num_rows == 128


def test_bloom_filter_with_several_predicates():
    data = WRITERS["numparq, Bloom filters"](None)
    absent = col("s") == "v00400x"
    for number in range(340, 660, 20):  # all in the second row group
        there, neither = ((col("s") == f"v{number:05}{end}") & (col("k") >= 1010) for end in ("", "x"))
        assert PlannedFile(data).pruned(absent | neither).num_rows == 0
        assert PlannedFile(data).pruned(absent | there).num_rows in (64, 128)


def test_bloom_filter_with_many_probes_is_read_whole():
    data = numparq.to_parquet(FRAME, bloom_filter_options={"s": True})
    decoded = [f"v{number:05d}x" for number in range(0, 1333, 20)]
    planned = PlannedFile(data)
    planned.count_requests()
    assert planned.pruned(col("s").isin(decoded)).num_rows in (0, ROWS)
    assert len(planned.file.source.ranges) == 1  # header and blocks are adjacent
    requests = planned.file.source.trips
    planned.pruned(col("s") == "v00007")
    assert planned.file.source.trips - requests <= 1
    few = PlannedFile(data)
    few.count_requests()
    for text in decoded:
        few.pruned(col("s") == text)
    assert all(stop - start <= 64 for start, stop in few.file.source.ranges[:10])


def test_remote_indexes_take_one_round_trip():
    planned = PlannedFile(WRITTEN)
    source = planned.count_requests()
    source.is_remote = True
    plan = planned.pruned((col("k") == 1234) & (col("s") > "a"))
    assert plan.num_rows == 100
    assert source.trips == 1
    assert all(chunk.is_indexed for chunk in plan[1].chunks)
    for start, stop in source.ranges:
        assert all(not (start < c.end and c.start < stop) for group in planned.whole for c in group.chunks)


def reverse(index):
    index.min_values.reverse()
    index.max_values.reverse()


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
def test_pruning_of_lists_and_structs(writer, question):
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
    planned = PlannedFile(data)
    plan = planned.pruned(expression)
    rows = table.to_pylist()
    assert {number for number, row in enumerate(rows) if truth(row)} <= planned.rows(plan)
    assert plan.num_rows <= most


def test_damaged_indexes_and_bloom_filters_never_raise():
    data = numparq.to_parquet(FRAME[:600], row_group_size=300, max_rows_per_page=40, bloom_filter_options={"s": True})
    with numparq.ParquetFile(data) as file:
        last = max(chunk.meta_data.data_page_offset for chunk in file.metadata.row_groups[1].columns)
        end = file._file.footer_start
    rng = np.random.default_rng(8)
    questions = [QUESTIONS[name][0] for name in ("point", "nulls", "not", "prefix", "like", "gap", "several")]
    for _ in range(80):
        damaged = bytearray(data)
        for place in rng.integers(last + 200, end, rng.integers(1, 6)).tolist():
            damaged[place] = rng.integers(256)
        planned = PlannedFile(bytes(damaged))
        for question in [*questions, col("s") == "v00100", (col("s") == "v00100x") | (col("k") == 150)]:
            plan = planned.pruned(question)
            assert plan.num_rows <= 600


def test_planning_round_trips_on_an_object_store():
    pytest.importorskip("fsspec")
    from support.io.object_store import ObjectStore

    rows = 100_000
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"s": [f"v{n}" for n in rng.permutation(rows)], "k": np.arange(rows), "x": rng.random(rows)})
    data = numparq.to_parquet(frame, row_group_size=rows // 4, max_rows_per_page=100, bloom_filter_options={"s": True})
    store = ObjectStore()
    store.pipe("/b.parquet", data)
    with numparq.ParquetFile("/b.parquet", filesystem=store) as file:
        store.reset()
        plan = file.plan(filters=col("s") == "v777777")
        assert plan.num_rows == 0
        assert store.round_trips == 1
        assert store.num_bytes < 4 * (32 + 32)
        store.reset()
        plan = file.plan(filters=(col("s") == frame.s[33_333]) & (col("k") == 33_333))
        assert plan.num_rows == 100
        assert store.round_trips <= 2
        assert all(chunk.is_indexed for chunk in plan[1].chunks)
        store.reset()
        assert file.plan(filters=(col("s") == frame.s[33_333]) & (col("k") == 33_333)).num_rows == 100
        assert not store.requests
