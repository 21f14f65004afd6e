"""Pruning by dictionaries."""

from __future__ import annotations

import io
import struct

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import col
from support.files.builder import from_bytes, with_footer
from support.planned_file import ROWS, PlannedFile, pruning_steps


def test_dictionary_ignores_nulls_and_negated_contains():
    rows = np.arange(4000)
    frame = pd.DataFrame(
        {
            "pad": np.random.default_rng(1).random(4000),
            "c": np.where(rows % 3, "a", "c"),
            "e": pd.array([None if row % 5 == 0 else row % 2 * 100 for row in rows], "Int64"),
            "l": [[5] if row % 4 else [1, 9] for row in rows],
        }
    )
    data = numparq.to_parquet(frame, row_group_size=2000, use_dictionary=["c", "e", "l"])
    expression = ((col("c") == "a") & col("e").is_null()) | (col("e") == 50)
    assert "dictionary" in pruning_steps(PlannedFile(data).pruned(col("e") == 50))
    assert PlannedFile(data).pruned(expression).num_rows == 4000
    assert len(numparq.read_parquet(data, filters=expression)) == np.count_nonzero((rows % 3 > 0) & (rows % 5 == 0))
    expression = (col("l").contains(5) & ~col("l").contains(7)) | (col("e") == 50)
    assert len(numparq.read_parquet(data, filters=expression)) == 3000


def test_dictionary_with_plain_fallback_does_not_prune():
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


def test_false_encoding_stats_do_not_prune():
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
    for chunk, expression in zip(footer.row_groups[0].columns, (col("s") == "v1", col("k") == 1), strict=True):
        meta = chunk.meta_data
        first, size = from_bytes("PageHeader", data[meta.data_page_offset :])
        meta.dictionary_page_offset = meta.data_page_offset
        meta.data_page_offset += size + first.compressed_page_size
        for stat in meta.encoding_stats:
            stat.encoding = 8
        false_stats = PlannedFile(with_footer(data[: -8 - length], footer))
        assert false_stats.pruned(expression).num_rows == ROWS
