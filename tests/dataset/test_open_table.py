"""One file is the same table however its path is spelled: name, list, folder, glob, URL or file system."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq

BACKENDS = [None, *(pytest.param(name, marks=pytest.mark.slow) for name in ("numpy_nullable", "pyarrow"))]

# Columns of four rows; the last row is left out for frames without nulls.
COLUMNS: dict[str, Any] = {
    **{name: pd.array([1, 2, 3, None], dtype=name) for name in ("Int8", "UInt16", "Int32", "Int64", "UInt64")},
    **{name: pd.array([0.5, 1.5, -2, None], dtype=name) for name in ("Float32", "Float64")},
    "boolean": pd.array([True, False, True, None], dtype="boolean"),
    "str": pd.array(["a", "b", "", None], dtype="str"),
    "string": pd.array(["a", "b", "", None], dtype="string"),
    "float": np.array([0.5, -0.0, np.inf, np.nan]),
    "half": np.array([0.5, -0.0, np.inf, np.nan], np.float16),
    "datetime": pd.to_datetime(["2020-01-01", "2021-01-01", "1960-01-01", None]),
    "zoned": pd.to_datetime(["2020-01-01", "2021-01-01", "1960-01-01", None]).tz_localize("Europe/Paris"),
    "duration": pd.to_timedelta([1, 2, 3, None], "s"),
    "category": pd.Categorical(["x", "y", "x", None], ["y", "x", "unused"]),
    "ordered": pd.Categorical(["x", "y", "x", None], ["y", "x"], ordered=True),
    "period": pd.PeriodIndex(["2020-01", "2020-02", "2020-03", None], freq="M"),
    "interval": pd.arrays.IntervalArray.from_tuples([(0, 1), (1, 2), (2, 3), None]),
    "sparse": pd.arrays.SparseArray([0.0, 0.0, 1.0, np.nan]),
    "dates": pd.Series([datetime.date(2020, 1, 1)] * 3 + [None], dtype=object),
    "times": pd.Series([datetime.time(1, 2, 3)] * 3 + [None], dtype=object),
    "decimals": pd.Series([decimal.Decimal("1.50")] * 3 + [None], dtype=object),
    "bytes": pd.Series([b"a", b"", b"b", None], dtype=object),
    "bools": pd.Series([True, False, True, None], dtype=object),
    "lists": pd.Series([[1, 2], [], [3], None], dtype=object),
    "structs": pd.Series([{"a": 1}, {"a": 2}, {"a": 3}, None], dtype=object),
    "arrow": pd.array([1, 2, 3, None], dtype="int64[pyarrow]"),
}
INDEXES: dict[str, Any] = {
    "default": None,
    "range": pd.RangeIndex(5, 13, 2, name="r"),
    "named": pd.Index(["p", "q", "r", "s"], name="key"),
    "unnamed": pd.Index([4, 3, 2, 1]),
    "levels": pd.MultiIndex.from_arrays([[1, 1, 2, 2], list("abab")], names=["one", None]),
    "moments": pd.date_range("2020", periods=4, name="t"),
}


def make_frame(nulls: bool, index: str = "default") -> pd.DataFrame:
    frame = pd.DataFrame(COLUMNS, index=INDEXES[index])
    frame.columns = frame.columns.rename("columns")
    frame.attrs["unit"] = "m"
    return frame if nulls else frame.iloc[:3]


def arrow_table() -> pa.Table:
    """Return columns as other writers have them: no pandas metadata, integers with nulls, beyond 2**53 as well."""
    big = (1 << 53) + 1
    return pa.table(
        {
            **{f"i{bits}": pa.array([1, None, 3], f"int{bits}") for bits in (8, 16, 32, 64)},
            "u64": pa.array([1, None, 3], "uint64"),
            "big": [1, None, big],
            "full": [1, 2, big],
            "b": [True, None, False],
            "nothing": pa.nulls(3),
            "n": [{"x": 1, "l": [1, None]}, None, {"x": None, "l": None}],
            "d": pa.array(["a", None, "a"]).dictionary_encode(),
        }
    )


def write_tables() -> dict[str, bytes]:
    def written(table: pa.Table, **options: Any) -> bytes:
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, **options)
        return sink.getvalue().to_pybytes()

    files = {}
    for nulls in (False, True):
        frame, kind = make_frame(nulls), "nulls" if nulls else "no nulls"
        files |= {f"numparq, {kind}": numparq.to_parquet(frame)}
        files |= {f"pandas, {kind}": frame.drop(columns="sparse").to_parquet()}
    files |= {index: make_frame(True, index)[["Int8", "str"]].to_parquet() for index in INDEXES}
    table = arrow_table()
    return files | {
        "arrow": written(table),
        "row groups": written(table, row_group_size=1),
        "no statistics": written(table, write_statistics=False),
        "INT96": written(pa.table({"t": COLUMNS["datetime"]}), use_deprecated_int96_timestamps=True),
        "empty": numparq.to_parquet(make_frame(True)[:0]),
        "no row groups": written(table.schema.empty_table()),
        "no columns": written(table.select([])),
    }


FILES = write_tables()


@pytest.fixture
def spellings(tmp_path: Path) -> Any:
    """Return a function from a file's bytes to all spellings of its path, as arguments of `read_parquet`."""
    memory = fsspec.filesystem("memory")

    def spell(data: bytes) -> dict[str, dict[str, Any]]:
        path = tmp_path / "only" / "x.parquet"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        memory.pipe_file("/only/x.parquet", data)
        paths = {
            "name": str(path),
            "list": [str(path)],
            "list of Path": (path,),
            "folder": path.parent,
            "list of folder": [path.parent],
            "glob": str(tmp_path / "*" / "*.parquet"),
            "file URL": path.as_uri(),
            "memory URL": "memory://only/x.parquet",
            "memory folder": "memory://only",
            "list of URL": ["memory://only/x.parquet"],
        }
        return {name: {"path": path} for name, path in paths.items()} | {
            "file system": {"path": "/only/*.parquet", "filesystem": memory}
        }

    yield spell
    memory.store.pop("/only/x.parquet", None)


def assert_same_frame(found: pd.DataFrame, expected: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(found, expected, check_freq=True)
    assert type(found.index) is type(expected.index)
    assert found.attrs == expected.attrs


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("file", FILES)
def test_spelling_of_path_does_not_change_frame(spellings, file, backend):
    expected = numparq.read_parquet(FILES[file], dtype_backend=backend)
    for place in spellings(FILES[file]).values():
        assert_same_frame(numparq.read_parquet(**place, dtype_backend=backend), expected)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("file", FILES)
def test_dataset_of_one_file_reads_as_the_file(tmp_path, file, backend):
    (tmp_path / "x.parquet").write_bytes(FILES[file])
    with numparq.Dataset(tmp_path) as dataset:
        found = dataset.read(dtype_backend=backend or "numpy")
    assert_same_frame(found, numparq.read_parquet(FILES[file], dtype_backend=backend))


@pytest.mark.parametrize(
    "options",
    [
        {"row_groups": [2, 0]},
        {"columns": ["n.l"], "explode": "n.l.list.element"},
        {"on_error": "skip"},
        {"filters": numparq.col("i64") > 1, "categories": ["d"]},
        {"columns": ["i64"], "row_range": (1, 3), "include": ["row_group", "row_number"]},
        {"nrows": 1},
    ],
)
def test_options_of_single_file(spellings, options):
    expected = numparq.read_parquet(FILES["row groups"], **options)
    for place in spellings(FILES["row groups"]).values():
        assert_same_frame(numparq.read_parquet(**place, **options), expected)


def test_errors_and_file_column(spellings):
    for place in spellings(FILES["arrow"]).values():
        assert numparq.read_parquet(**place, include=["file"])["file"].str.endswith("only/x.parquet").all()
        with pytest.raises(numparq.SchemaError, match=r"the file has no column 'nope'.*x\.parquet"):
            numparq.read_parquet(**place, columns=["nope"])
    for place in spellings(FILES["arrow"][:-4]).values():
        with pytest.raises(numparq.InvalidFileError, match=r"x\.parquet"):
            numparq.read_parquet(**place, on_error="skip")


def test_partition_columns_are_added_to_one_file(tmp_path):
    folder = tmp_path / "year=2024"
    folder.mkdir()
    (folder / "x.parquet").write_bytes(FILES["arrow"])
    found = numparq.read_parquet(tmp_path)
    assert found.pop("year").tolist() == [2024] * 3
    assert_same_frame(found, numparq.read_parquet(FILES["arrow"]))
    assert_same_frame(numparq.read_parquet(tmp_path, partitioning=None), found)
    with pytest.raises(numparq.UnsupportedError, match="partitioning=None"):
        numparq.read_parquet(tmp_path, external_files=True)


def test_file_replaced_while_folder_is_opened(tmp_path, monkeypatch):
    """A folder's only file may be replaced between its listing and its opening."""
    from numparq.dataset.discover.snapshot import DatasetSnapshot

    (tmp_path / "old.parquet").write_bytes(FILES["arrow"])
    single_source = DatasetSnapshot.single_source

    def replaced(self: DatasetSnapshot) -> Any:
        if (tmp_path / "old.parquet").exists():
            (tmp_path / "old.parquet").rename(tmp_path / "new.parquet")
        return single_source(self)

    monkeypatch.setattr(DatasetSnapshot, "single_source", replaced)
    assert len(numparq.read_parquet(tmp_path)) == 3
