"""Row groups that are encoded together: the same chunks as one by one, in few calls; errors name their row group."""

from __future__ import annotations

import io
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.tools.verify.file import verify


def count_calls(function: Any) -> int:
    """Return how many Python functions a call runs."""
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize(("rows", "columns", "size", "limit"), [(50_000, 2, 500, 40), (500, 60, None, 86)])
def test_few_calls_per_column_chunk(rows, columns, size, limit):
    frame = pd.DataFrame({f"c{number}": np.arange(rows) * number % 1000 for number in range(columns)})
    numparq.to_parquet(frame, row_group_size=size, threads=1)
    chunks = columns * -(-rows // (size or rows))
    assert count_calls(lambda: numparq.to_parquet(frame, row_group_size=size, threads=1)) < limit * chunks


def test_nullable_columns_are_encoded_together():
    """Also those without nulls, and with equal values of different masks."""
    masked = pd.array([None if row % 3 == 0 else row for row in range(100)], dtype="Int64")
    frame = pd.DataFrame(
        {f"i{number}": masked if number % 2 else masked.fillna(number) for number in range(60)}
        | {f"x{number}": pd.array([number, None, np.nan] * 33 + [None], dtype="Float32") for number in range(3)}
        | {f"b{number}": pd.array([True, None, False, None] * 25, dtype="boolean") for number in range(3)}
    )
    numparq.to_parquet(frame, threads=1)
    assert count_calls(lambda: numparq.to_parquet(frame, threads=1)) < 140 * frame.shape[1]
    written = numparq.read_parquet(numparq.to_parquet(frame), dtype_backend="numpy_nullable")
    pd.testing.assert_frame_equal(written, frame)
    for name in frame:
        alone = numparq.read_parquet(numparq.to_parquet(frame[[name]]), dtype_backend="numpy_nullable")
        pd.testing.assert_frame_equal(alone, written[[name]])


def test_equal_to_row_groups_written_one_by_one():
    frame = pd.DataFrame(
        {
            "i": np.arange(1000) // 3,
            "x": [None if row % 7 == 0 or 300 <= row < 400 else row / 2 for row in range(1000)],
            "s": [None if row % 5 == 0 else f"v{row % 90}" for row in range(1000)],
            "c": pd.Categorical.from_codes(np.arange(1000) % 4 - 1, ["a", "b", "c"]),
            "l": [[row, None] if row % 3 else [] for row in range(1000)],
        }
    )
    options = {"max_rows_per_page": 33, "bloom_filter_options": {"s": True}}
    together = numparq.to_parquet(frame, row_group_size=100, **options)
    with numparq.ParquetWriter(None, checkpoint_row_groups=1, row_group_size=100, **options) as writer:
        writer.write(frame)
    one_by_one = writer.getvalue()
    pd.testing.assert_frame_equal(numparq.read_parquet(together), numparq.read_parquet(one_by_one))
    with numparq.ParquetFile(together) as left, numparq.ParquetFile(one_by_one) as right:
        for name in ("i", "x", "s", "c"):
            assert left.statistics(name) == right.statistics(name)


def test_chunks_of_different_numbers_of_pages_are_valid():
    """Metadata of chunks that are written together, and share words that are equal, describe each one's own pages."""
    frame = pd.DataFrame(
        {
            "i": np.arange(430) // 3,
            "s": [f"v{row % 90}" if row < 200 else f"unique {row}" for row in range(430)],
            "l": [[row] * (row % 9) for row in range(430)],
        }
    )
    for options in ({"max_rows_per_page": 33}, {"data_page_size": 200}, {"row_group_alignment": 512}):
        data = numparq.to_parquet(frame, row_group_size=100, **options)
        assert verify(data) == []
        pd.testing.assert_frame_equal(pd.read_parquet(io.BytesIO(data), engine="pyarrow"), numparq.read_parquet(data))


def test_second_file_of_a_schema_takes_fewer_calls():
    frame = pd.DataFrame({f"c{number}": np.arange(10) + number for number in range(100)})
    whole = count_calls(lambda: numparq.to_parquet(frame, use_dictionary=[f"c{number}" for number in range(100)]))
    numparq.to_parquet(frame)
    assert count_calls(lambda: numparq.to_parquet(frame)) < whole - 20 * frame.shape[1]


def test_options_by_column_of_equal_schemas():
    frame = pd.DataFrame({"a": [1, 1, 1], "b": [2, 2, 2]})
    for name in ("a", "b"):
        with numparq.ParquetFile(numparq.to_parquet(frame, compression={name: "zstd"})) as file:
            codecs = {
                chunk.meta_data.path_in_schema[0]: str(chunk.meta_data.codec)
                for chunk in file.metadata.row_groups[0].columns
            }
        assert codecs == {"a": "SNAPPY", "b": "SNAPPY", name: "ZSTD"}


def test_errors_name_the_row_group():
    frame = pd.DataFrame({"a": pd.Series(["x"] * 250 + ["\ud800"] + ["y"] * 49, dtype=object)})
    with pytest.raises(numparq.SchemaError, match=r"row 250.*row group 2, column 'a'"):
        numparq.to_parquet(frame, row_group_size=100)
