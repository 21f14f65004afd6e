"""Costs grow no faster than what is asked for: Python calls by number of row groups and of columns."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import numparq
from numparq.cli import main
from numparq.format.footer.file_metadata import KeyValues
from numparq.prune.planner import ReadPlanner


def _meta(path) -> None:
    with redirect_stdout(StringIO()):
        main(["meta", str(path)])


OPERATIONS: dict[str, Callable] = {
    "read": numparq.read_parquet,
    "Arrow": lambda path: pa.table(numparq.ParquetFile(path)),
    "skip": lambda path: numparq.read_parquet(path, on_error="skip"),
    "skip and filter": lambda path: numparq.read_parquet(path, on_error="skip", filters="c0 < 50"),
    "batches": lambda path: list(numparq.ParquetFile(path).iter_batches()),
    "filtered batches": lambda path: list(numparq.ParquetFile(path).iter_batches(filters="c0 < 50")),
    "filter": lambda path: numparq.read_parquet(path, filters="c0 < 50"),
    "verify": numparq.verify,
    "meta": _meta,
}
NARROW: dict[str, Callable] = {
    "columns": lambda path: numparq.read_parquet(path, columns=["c0"]),
    "filter": lambda path: numparq.read_parquet(path, columns=["c0"], filters="c0 == 5"),
}


def calls(operation: Callable, path) -> int:
    """Return the calls of Python functions in all threads, of a second run."""
    counts: list[int] = []

    def on_event(frame, event, argument) -> None:
        if event == "call":
            counts.append(1)

    operation(path)
    threading.setprofile(on_event)
    sys.setprofile(on_event)
    try:
        operation(path)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return len(counts)


def write(path, row_groups: int, columns: int):
    rows = 10 * row_groups
    frame = pd.DataFrame(np.arange(rows * columns).reshape(rows, columns), columns=[f"c{i}" for i in range(columns)])
    frame["s"] = frame["c0"].astype("str")
    numparq.to_parquet(frame, path, row_group_size=10)
    return path


# Small footers and single jobs are cached, steps that 4.2 allows for; a quadratic cost is 9 times as high.
CASES = {
    f"{axis}, {name}": pytest.param(
        operation, sizes, marks=[] if axis + name == "row groupsbatches" else pytest.mark.slow
    )
    for axis, sizes in {"row groups": [(240, 1), (720, 1)], "columns": [(1, 600), (1, 1800)]}.items()
    for name, operation in OPERATIONS.items()
}


@pytest.mark.parametrize(("operation", "sizes"), CASES.values(), ids=CASES)
def test_calls_are_proportional(tmp_path, operation, sizes):
    """Three times the row groups or columns: at most 4.2 times the calls."""
    few, many = (calls(operation, write(tmp_path / f"{size}.parquet", *size)) for size in sizes)
    assert many < 4.2 * few


@pytest.mark.slow
@pytest.mark.parametrize("name", NARROW)
def test_columns_that_are_not_read_cost_no_calls(tmp_path, name):
    few, many = (calls(NARROW[name], write(tmp_path / f"{columns}.parquet", 1, columns)) for columns in (1000, 3000))
    assert many < 1.05 * few


FEW_ROWS: dict[str, Callable] = {
    "row group": lambda path: numparq.read_parquet(path, row_groups=[1]),
    "row range": lambda path: numparq.read_parquet(path, row_range=(3, 17)),
    "nrows": lambda path: numparq.read_parquet(path, nrows=5),
    "batches": lambda path: list(numparq.ParquetFile(path).iter_batches(row_groups=[0, 1])),
}


@pytest.mark.parametrize("name", FEW_ROWS)
def test_row_groups_that_are_not_read_cost_no_calls(tmp_path, name):
    few, many = (calls(FEW_ROWS[name], write(tmp_path / f"{groups}.parquet", groups, 1)) for groups in (900, 2700))
    assert many < 1.05 * few


def test_planning_of_a_filter_costs_no_calls_for_other_columns(tmp_path, monkeypatch):
    """Columns without a filter have no part in pruning, however many are read."""
    counts: list[int] = []
    prune = ReadPlanner.prune_by_indexes

    def counted(*arguments):
        calls: list[int] = []
        sys.setprofile(lambda frame, event, argument: calls.append(1) if event == "call" else None)
        try:
            return prune(*arguments)
        finally:
            sys.setprofile(None)
            counts.append(len(calls))

    monkeypatch.setattr(ReadPlanner, "prune_by_indexes", counted)
    for columns in (100, 900):
        path = write(tmp_path / f"{columns}.parquet", 2, columns)
        assert numparq.read_parquet(path, filters="c0 == 5 or c1 == 5", threads=1)["c0"].tolist() == []
        counts.clear()
        assert len(numparq.read_parquet(path, filters=f"c0 > {5 * columns}", threads=1)) == 14
        (many,) = counts
        assert many < 450


@pytest.mark.parametrize("dtype", ["int64", "int64[pyarrow]"])
def test_key_values_are_copied_once(tmp_path, monkeypatch, dtype):
    """The metadata grow with the columns, so a copy for each column would be quadratic."""
    frame = pd.DataFrame(np.zeros((3, 100)), columns=[f"c{i}" for i in range(100)]).astype(dtype)
    path = tmp_path / "a.parquet"
    numparq.to_parquet(frame, path)
    copies: list[str] = []

    def counted(self, key, get=KeyValues.__getitem__):
        copies.append(key)
        return get(self, key)

    monkeypatch.setattr(KeyValues, "__getitem__", counted)
    assert numparq.read_parquet(path).equals(frame)
    assert len(copies) < 10


def test_small_row_groups_are_filtered_together_with_skip(tmp_path):
    """As many calls a row group as without filters, within a factor of two."""
    path = write(tmp_path / "a.parquet", 240, 1)
    assert calls(OPERATIONS["skip and filter"], path) < 2 * calls(OPERATIONS["skip"], path)
