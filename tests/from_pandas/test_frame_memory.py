"""Memory of shredding: no copy of the frame, and only the requested rows of a range."""

from __future__ import annotations

import datetime
import decimal
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

from numparq.from_pandas.frame import shred_frame

ROWS = 400_000
RANGE = (200_000, 200_500)
LIMIT = 1_500_000  # bytes; less than half of the smallest column's pointers


def objects(*values):
    array_ = np.empty(ROWS, object)
    array_[:] = [values[number % len(values)] for number in range(ROWS)]
    return pd.Series(array_, dtype=object)


COLUMNS = {
    "int": lambda: np.arange(ROWS),
    "float": lambda: np.where(np.arange(ROWS) % 3, np.nan, 1.5),
    "nullable": lambda: pd.array(np.arange(ROWS), dtype="Int64"),
    "moments": lambda: np.arange(ROWS).view("M8[s]"),
    "text": lambda: objects("some text", None, "größer"),
    "str": lambda: pd.Series(["some text", None] * (ROWS // 2)),
    "bytes": lambda: objects(b"some bytes", None),
    "ints": lambda: objects(1000, None, 2**40),
    "dates": lambda: objects(datetime.date(2020, 1, 1), None),
    "decimals": lambda: objects(decimal.Decimal("1.5"), decimal.Decimal("2.25")),
    "datetimes": lambda: objects(datetime.datetime(2020, 1, 1), None),
    "category": lambda: pd.Categorical.from_codes(np.arange(ROWS) % 3, [1, 2, 3]),
    "sparse": lambda: pd.arrays.SparseArray(np.arange(ROWS) % 7, fill_value=0),
    "complex": lambda: np.zeros(ROWS, np.complex128),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_memory_of_shredding_a_column(name):
    frame = pd.DataFrame({"a": COLUMNS[name]()})
    shred_frame(frame[:100]).columns[0].read_leaves(0, 100)  # load kernels and import modules first
    tracemalloc.start()
    try:
        shredded = shred_frame(frame)
        _, inferred = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        shredded.columns[0].read_leaves(*RANGE)
        _, converted = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert inferred < 3 * LIMIT
    assert converted < LIMIT // 4


def test_memory_of_shredding_a_multiindex():
    index = pd.MultiIndex.from_product([range(ROWS // 10), range(10)])
    frame = pd.DataFrame(index=index)
    shred_frame(frame[:100])
    tracemalloc.start()
    try:
        shredded = shred_frame(frame)
        for column in shredded.columns:
            column.read_leaves(*RANGE)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < LIMIT


def test_threads_read_the_same_leaves():
    frame = pd.DataFrame({name: make() for name, make in COLUMNS.items()})
    shredded = shred_frame(frame)
    ranges = [(start, start + 700) for start in range(0, 20_000, 500)]
    jobs = [(column, rows) for rows in ranges for column in shredded.columns]

    def contents(job):
        column, (start, stop) = job
        return [
            [
                None if array is None else array.tobytes()
                for array in (leaf.values, leaf.validity, leaf.definition_levels)
            ]
            if leaf.starts is None or name_of(column) != "str"
            else (leaf.ends - leaf.starts).tobytes()
            for leaf in column.read_leaves(start, stop)
        ]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(contents, jobs)) == [contents(job) for job in jobs]


def name_of(column):
    return column.node.name
