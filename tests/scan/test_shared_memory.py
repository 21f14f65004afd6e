"""Many files read into one frame have the dtypes of one file with all their rows, in whatever file a value decides."""

from __future__ import annotations

import gc
import itertools
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq import col
from numparq.column.buffers import DecodedColumn
from numparq.scan import joined_files
from numparq.scan.shared_memory import FileMemory, SharedMemory
from numparq.to_pandas.frame import BlockLayout
from support.files.edited_footers import write_with_footer

BIG = (1 << 53) + 1


def write_files(folder: Path, tables: list[pa.Table], **options: Any) -> list[str]:
    paths = [str(folder / f"{number}.parquet") for number in range(len(tables))]
    for path, table in zip(paths, tables, strict=True):
        pq.write_table(table, path, **options)
    return paths


def check(folder: Path, tables: list[pa.Table], write: dict[str, Any] | None = None, **options: Any) -> pd.DataFrame:
    """Compare a read of the files with a read of one file of all rows."""
    paths = write_files(folder, tables, **(write or {}))
    pq.write_table(pa.concat_tables(tables), folder / "whole", **(write or {}))
    found = numparq.read_parquet(paths, **options)
    pd.testing.assert_frame_equal(found, numparq.read_parquet(folder / "whole", **options))
    return found


PARTS = {"plain": [1, 2], "null": [3, None], "big": [BIG, 4]}


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("order", list(itertools.permutations(PARTS)), ids=" ".join)
def test_integers_widened_by_any_file(tmp_path, monkeypatch, order, statistics, batched):
    if not batched:
        monkeypatch.setattr(joined_files, "MAX_JOINED_BYTES", 0)
    small = {name: [value and value % 100 for value in values] for name, values in PARTS.items()}
    tables = [
        pa.table(
            {
                "a": PARTS[name],
                "b": pa.array(small[name], "int8"),
                "c": pa.array(small[name], "uint32"),
                "d": [None if value is None else value > 2 for value in PARTS[name]],
                "e": [0.5, 1.5],
                "f": pa.array([7, 8], "int32"),
            }
        )
        for name in order
    ]
    found = check(tmp_path, tables, {"write_statistics": statistics})
    assert found.dtypes.map(str).tolist() == ["Int64", "float64", "float64", "object", "float64", "int32"]
    check(tmp_path, tables, {"write_statistics": statistics}, filters=col("e") > 1)
    check(tmp_path, tables[:2], {"write_statistics": statistics}, nrows=3)


def test_types_change_while_files_are_read_side_by_side():
    memory = fsspec.filesystem("memory")
    for number in range(40):
        values = [number, None if number % 7 == 5 else 1, BIG if number == 33 else 2]
        table = pa.table({"a": values, "s": [str(number)] * 3, "b": pa.array([1, 2, 3], "int32")})
        with memory.open(f"/side/{number:02}.parquet", "wb") as sink:
            pq.write_table(table, sink, write_statistics=False)
    found = numparq.read_parquet("memory://side")
    assert found.dtypes.map(str).tolist() == ["Int64", "str", "int32"]
    assert found["a"].isna().sum() == sum(number % 7 == 5 for number in range(40))
    assert found["a"][99] == 33
    assert found["a"][101] == BIG
    assert found["s"].tolist() == [str(number) for number in range(40) for _ in range(3)]
    memory.rm("/side", recursive=True)


@pytest.mark.parametrize("batched", [True, False])
def test_nulls_denied_by_statistics(tmp_path, monkeypatch, batched):
    if not batched:
        monkeypatch.setattr(joined_files, "MAX_JOINED_BYTES", 0)

    def edit(footer: Any) -> None:
        for chunk in footer.row_groups[0].columns:
            chunk.meta_data.statistics.null_count = 0

    lying = write_with_footer(pa.table({"a": [1, None], "b": [True, None], "n": [{"x": 1}, {"x": None}]}), edit)
    paths = write_files(tmp_path, [pa.table({"a": [4, 5], "b": [False, True], "n": [{"x": 2}, None]})] * 2)
    Path(paths[1]).write_bytes(lying)
    found = numparq.read_parquet(paths, ["a", "b", "n.x"])
    expected = {"a": [4, 5, 1, None], "b": [False, True, True, None], "x": [2, None, 1, None]}
    pd.testing.assert_frame_equal(found, pd.DataFrame(expected))
    with numparq.Dataset(paths) as dataset, pytest.raises(numparq.ParquetError, match=r"exclude nulls.*column 'a'"):
        list(dataset.iter_batches(["a"]))


def test_int96_beyond_nanoseconds_in_one_file(tmp_path):
    def written(years: list[str]) -> pa.Table:
        return pa.table({"t": pa.array(np.array(years, "M8[us]"))})

    tables = [written(["2020", "2021"]), written(["1000", "2022"]), written(["2023-01-01T00:00:00.000001"])]
    write = {"use_deprecated_int96_timestamps": True}
    assert check(tmp_path, tables, write)["t"].dtype == "M8[us]"
    assert check(tmp_path, tables[::2], write)["t"].dtype == "M8[ns]"


@pytest.mark.parametrize("values", [[1, 2], [1, None], [BIG, None]])
def test_converted_and_missing_columns(tmp_path, values):
    narrow = pa.table({"a": pa.array([7, 8], "int32"), "s": [{"x": 1}, None], "b": [True, False]})
    wide = pa.table({"a": pa.array(values, "int64"), "s": [{"x": value, "y": "u"} for value in values]})
    found = numparq.read_parquet(write_files(tmp_path, [narrow, wide]), ["a", "s.x", "b"])
    kind = "Int64" if BIG in values else "float64"
    assert found.dtypes.map(str).tolist() == ["int64" if None not in values else kind, kind, "object"]
    assert found["a"].astype(object).where(found["a"].notna(), None).tolist() == [7, 8, *values]
    assert found["b"].tolist() == [True, False, None, None]


def test_many_files_read_like_pandas(tmp_path):
    table = pa.table(
        {
            "i": [1, None, 3, 4],
            "i8": pa.array([None, 2, 3, 4], "int8"),
            "b": [True, None, False, True],
            "t": pa.array(np.array(["2020", "NaT", "2021", "2022"], "M8[ns]")),
            "s": ["a", None, "b", "c"],
            "l": [[1, 2], None, [], [3]],
            "full": [1, 2, 3, 4],
        }
    )
    for options in ({}, {"use_deprecated_int96_timestamps": True}, {"write_statistics": False}):
        write_files(tmp_path, [table[:2], table[2:]], **options)
        for backend in ("numpy_nullable", "pyarrow", None):
            given = {} if backend is None else {"dtype_backend": backend}
            expected = pd.read_parquet(tmp_path, engine="pyarrow", **given)
            pd.testing.assert_frame_equal(numparq.read_parquet(tmp_path, **given), expected)


def memory_objects() -> list:
    # By type: isinstance would look behind weak proxies, of which some are dead.
    kinds = SharedMemory, FileMemory, BlockLayout, DecodedColumn
    return [one for one in gc.get_objects() if type(one) in kinds]


@pytest.mark.parametrize("options", [{}, {"filters": "a >= 0"}, {"on_error": "skip"}, {"categories": ["s"]}])
def test_memory_is_freed_without_garbage_collection(tmp_path, options):
    """A cycle of references would keep the memory of earlier batches beyond `memory_limit`."""
    write_files(tmp_path, [pa.table({"a": [1, 2], "s": ["x", "y"]}), pa.table({"a": [3, None], "s": ["x", "z"]})])
    numparq.read_parquet(tmp_path, **options)
    gc.collect()
    gc.disable()
    before = memory_objects()  # of other tests
    try:
        numparq.read_parquet(tmp_path, **options)
        for _ in numparq.Dataset(tmp_path).iter_batches(batch_rows=1, **options):
            pass
        assert len(memory_objects()) == len(before)
    finally:
        gc.enable()
