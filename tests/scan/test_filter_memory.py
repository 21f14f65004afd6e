"""``memory_limit`` of filters: little is needed for values matched where pages are decompressed."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq import col
from numparq.column.jobs.match_sink import MatchSink
from numparq.scan.filter_rows import RowFilter

ROWS = 1_000_000


@pytest.fixture(scope="module")
def data():
    numbers = np.random.default_rng(0).permutation(ROWS)
    texts = np.array([f"text number {number:08}" for number in range(ROWS)])[numbers]
    keys = np.array([f"key {number:04}" for number in range(1000)])[numbers % 1000]
    table = pa.table({"a": numbers, "b": numbers / ROWS, "s": texts, "k": keys, "l": [[1]] * ROWS})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, row_group_size=ROWS // 2, use_dictionary=["k"])
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("filters", "mebibytes"),
    [
        (col("a") < 100, 3),
        (col("s") == "text number 00000077", 3),  # whose row groups take 30 MiB as strings
        (col("k") == "key 0007", 3),
        ((col("a") < 100) & (col("b") < 0.5), 12),
    ],
    ids=["numbers", "strings", "dictionary", "conjuncts"],
)
def test_filters_that_fit_are_read(data, filters, mebibytes):
    found = numparq.read_parquet(data, ["b"], filters, memory_limit=mebibytes << 20, threads=1)
    pd.testing.assert_frame_equal(found, numparq.read_parquet(data, ["b"], filters))


@pytest.mark.parametrize(
    ("filters", "mebibytes"),
    [
        (col("a") < col("b"), 8),  # 17 bytes a row
        ((col("a") < 100) | (col("b") < 0.5), 8),
        ((col("a") < 100) & (col("s") < "text"), 16),
    ],
    ids=["comparison", "or", "conjuncts"],
)
def test_filters_whose_columns_are_decoded_count_them(data, filters, mebibytes):
    with pytest.raises(numparq.LimitError, match=r"a filter of row groups of 500,000 rows would take about") as caught:
        numparq.read_parquet(data, ["b"], filters, memory_limit=mebibytes << 20, threads=1)
    enough = caught.value.message.split("raise it to ")[1].split(" MiB")[0]
    assert len(numparq.read_parquet(data, ["b"], filters, memory_limit=int(float(enough) * (1 << 20)) * 2)) >= 0


@pytest.mark.parametrize("column", ["a", "s", "k"])
def test_values_in_the_predicate_cache_keep_the_limit(data, column, monkeypatch):
    """Values of matching rows that exceed their share of the limit are decoded again."""
    kept = []
    finish = MatchSink.finish
    monkeypatch.setattr(MatchSink, "finish", lambda sink, task: (finish(sink, task), kept.append(sink.keeps_values))[0])
    filters = col(column) >= {"a": 1000, "s": "text number 00001000", "k": "key 0001"}[column]
    expected = numparq.read_parquet(data, [column], filters)
    assert all(kept)
    kept.clear()
    found = numparq.read_parquet(data, [column], filters, memory_limit=(40 if column == "a" else 70) << 20, threads=2)
    pd.testing.assert_frame_equal(found, expected)
    assert not any(kept) or column == "k"


def test_predicate_caches_of_many_row_groups_share_the_limit(monkeypatch):
    """Each fits by itself; columns of row groups beyond their common share are decoded again."""
    table = pa.table({"a": np.arange(ROWS)[::-1] % 1000, "b": np.arange(ROWS) % 7})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, row_group_size=ROWS // 40)
    cached = []
    filter_row_groups = RowFilter.filter_row_groups

    def record(*arguments):
        filtered = filter_row_groups(*arguments)
        cached.append([sum(column.num_bytes for column in some.cached.values()) for some in filtered.values()])
        return filtered

    monkeypatch.setattr(RowFilter, "filter_row_groups", record)
    limit, filters = 24 << 20, (col("a") > 5) | (col("b") < 3)
    found = numparq.read_parquet(buffer.getvalue(), filters=filters, memory_limit=limit, threads=1)
    pd.testing.assert_frame_equal(found, table.to_pandas().query("a > 5 or b < 3").reset_index(drop=True))
    assert 0 < sum(cached[0]) < limit // 3


def test_row_groups_that_cache_different_columns():
    """All rows match; of each row group, the column that is too large for the limit is decoded again."""
    short = [f"{row % 10}" for row in range(20_000)]
    long = [text + "x" * 300 for text in short]
    table = pa.table({"a": long + short, "b": short + long})
    buffer = io.BytesIO()
    options = {"use_dictionary": False, "write_statistics": False, "compression": "none", "data_page_size": 100_000}
    pq.write_table(table, buffer, row_group_size=len(short), **options)
    filters = (col("a") != "q") & (col("b") != "z")
    found = numparq.read_parquet(buffer.getvalue(), filters=filters, memory_limit=35 << 20, threads=1)
    assert found["a"].tolist() == long + short
    assert found["b"].tolist() == short + long
