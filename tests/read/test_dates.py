"""``dates="datetime64"``: datetime64[ms] wherever a frame has dates, as pyarrow's ``date_as_object=False``."""

from __future__ import annotations

import datetime
import io

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.dataset.small_files import read_small_files
from numparq.dataset.splits.table import split_table

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

FIRST, NEXT = datetime.date(1969, 12, 31), datetime.date(2020, 2, 29)
DTYPE = np.dtype("datetime64[ms]")
TABLE = pa.table(
    {
        "plain": pa.array([FIRST, None, NEXT]),
        "required": pa.array([FIRST, FIRST, NEXT]),
        "coded": pa.array([NEXT, None, NEXT]).dictionary_encode(),
        "list": pa.array([[FIRST, None], None, []], pa.list_(pa.date32())),
        "struct": pa.array([{"x": FIRST}, {"x": None}, None]),
        "lists": pa.array([{"x": [NEXT, None]}, {"x": None}, None]),
        "map": pa.array([[("a", NEXT)], None, [("b", None)]], pa.map_(pa.string(), pa.date32())),
        "structs": pa.array([[{"x": FIRST}], None, []]),
    }
)


def file_of(table, **options):
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **options)
    return buffer.getvalue()


FILE = file_of(
    TABLE.cast(pa.schema([TABLE.schema.field(n).with_nullable(n != "required") for n in TABLE.column_names]))
)


def expected(data=FILE):
    return pd.read_parquet(io.BytesIO(data), engine="pyarrow", to_pandas_kwargs={"date_as_object": False})


def test_columns_are_those_of_pyarrow():
    found = numparq.read_parquet(FILE, dates="datetime64")
    assert found.dtypes.to_dict() == expected().dtypes.to_dict()
    for name in TABLE.column_names:
        assert list(map(repr, found[name])) == list(map(repr, expected()[name]))


@pytest.mark.parametrize("use_dictionary", [True, False])
def test_every_day_is_exact(use_dictionary):
    days = pa.array([-(1 << 31), 0, None, (1 << 31) - 1], pa.int32()).cast(pa.date32())
    data = file_of(pa.table({"d": days}), use_dictionary=use_dictionary)
    found = numparq.read_parquet(data, dates="datetime64")
    assert found["d"].dtype == DTYPE
    assert found["d"].isna().tolist() == [False, False, True, False]
    assert found["d"].dropna().to_numpy().astype("M8[D]").astype(int).tolist() == [-(1 << 31), 0, (1 << 31) - 1]


def test_objects_remain_the_default():
    assert numparq.read_parquet(FILE, ["plain"])["plain"].tolist() == [FIRST, None, NEXT]
    with pytest.raises(ValueError, match="dates must be one of 'objects', 'datetime64', not 'date'"):
        numparq.read_parquet(FILE, dates="date")


def test_dtype_backends():
    nullable = numparq.read_parquet(FILE, ["plain"], dtype_backend="numpy_nullable", dates="datetime64")
    assert nullable["plain"].dtype == DTYPE
    arrow = numparq.read_parquet(FILE, ["plain", "list"], dtype_backend="pyarrow", dates="datetime64")
    assert arrow["plain"].dtype == pd.ArrowDtype(pa.date32())
    assert arrow["list"].dtype == pd.ArrowDtype(pa.list_(pa.date32()))


@pytest.mark.parametrize("filters", [[("plain", "==", NEXT)], numparq.col("plain") >= "2020-02-29"])
def test_filters(filters):
    found = numparq.read_parquet(FILE, ["plain", "required"], filters, dates="datetime64")
    assert found.dtypes.tolist() == [DTYPE, DTYPE]
    assert found["plain"].tolist() == [pd.Timestamp(NEXT)]


def test_categories_and_exploded_lists():
    coded = numparq.read_parquet(FILE, ["plain"], categories=["plain"], dates="datetime64")["plain"]
    assert coded.cat.categories.dtype == DTYPE
    assert coded.cat.codes.tolist() == [0, -1, 1]
    rows = numparq.read_parquet(FILE, ["list.list.element"], explode="list", dates="datetime64").iloc[:, 0]
    assert rows.dtype == DTYPE
    assert rows.isna().tolist() == [False, True]


def test_batches():
    with numparq.ParquetFile(FILE) as file:
        made = pd.concat(file.iter_batches(["plain", "required"], batch_rows=2, dates="datetime64"))
        assert made.equals(file.read(["plain", "required"], dates="datetime64"))
        assert made.dtypes.tolist() == [DTYPE, DTYPE]


def test_repeated_key_look_ups():
    data = numparq.to_parquet(pd.DataFrame({"key": range(9), "day": [NEXT] * 9}), max_rows_per_page=3)
    with numparq.ParquetFile(data) as file:
        for dates, dtype in [("objects", object), ("datetime64", DTYPE)] * 3:
            assert file.read(["day"], [("key", "==", 4)], dates=dates)["day"].dtype == dtype


def test_frames_written_by_numparq():
    days = [FIRST, None, NEXT]
    sparse = pd.arrays.SparseArray(np.array(days, object))
    frame = pd.DataFrame(
        {"plain": days, "coded": pd.Categorical(days), "sparse": sparse}, index=pd.Index([FIRST, NEXT, NEXT], name="i")
    )
    found = numparq.read_parquet(numparq.to_parquet(frame), dates="datetime64")
    assert [found["plain"].dtype, found["sparse"].dtype, found.index.dtype] == [DTYPE] * 3
    assert found["coded"].cat.categories.dtype == DTYPE
    again = numparq.read_parquet(numparq.to_parquet(found))  # timestamps now, no dates
    pd.testing.assert_frame_equal(again, found)


@pytest.fixture
def folder(tmp_path):
    """A dataset of dates, one of its files with timestamps instead, partitioned by a date."""
    for number, day in enumerate([FIRST, NEXT]):
        part = tmp_path / f"day={day}"
        part.mkdir()
        kind = pa.timestamp("us") if number else pa.date32()
        table = pa.table({"d": [NEXT, None], "moment": pa.array([NEXT, None]).cast(kind), "l": [[NEXT], None]})
        pq.write_table(table, part / "0.parquet")
    return tmp_path


@pytest.mark.parametrize("partitioning", [{"day": "date"}, [("day", "date")]])
def test_datasets(folder, partitioning):
    if isinstance(partitioning, list):
        for part in list(folder.iterdir()):
            part.rename(folder / part.name.removeprefix("day="))
    with numparq.Dataset(folder, partitioning=partitioning) as dataset:
        found = dataset.read(dates="datetime64")
        assert found.dtypes.astype(str).tolist() == ["datetime64[ms]", "datetime64[us]", "object", "datetime64[ms]"]
        assert found["day"].tolist() == [*[pd.Timestamp(FIRST)] * 2, *[pd.Timestamp(NEXT)] * 2]
        assert found["moment"].dropna().tolist() == [pd.Timestamp(NEXT)] * 2
        assert found["l"].dropna().map(lambda values: values.dtype).tolist() == [DTYPE] * 2
        for batch in dataset.iter_batches(batch_rows=3, dates="datetime64"):
            assert batch.dtypes.tolist() == found.dtypes.tolist()
        assert dataset.read(["day"], [("day", "==", NEXT)])["day"].tolist() == [NEXT, NEXT]


def test_categorical_partitions(folder):
    with numparq.Dataset(folder, partitioning={"day": "date"}, categories=["day"]) as dataset:
        assert dataset.read(["day"], dates="datetime64")["day"].cat.categories.dtype == DTYPE


def test_nested_dates_beside_timestamps(tmp_path):
    for number, kind in enumerate([pa.date32(), pa.timestamp("us")]):
        days = pa.array([datetime.datetime(2020, 2, 29)]).cast(kind)
        columns = {"s": pa.StructArray.from_arrays([days], ["x"]), "l": pa.ListArray.from_arrays([0, 1], days)}
        pq.write_table(pa.table(columns), tmp_path / f"{number}.parquet")
    for dates in ("objects", "datetime64"):
        found = numparq.read_parquet(tmp_path, dates=dates)
        assert found["s"].tolist() == [{"x": datetime.datetime(2020, 2, 29)}] * 2
        assert [str(values.dtype) for values in found["l"]] == ["datetime64[us]"] * 2


def test_splits_and_small_files(folder):
    table = split_table(folder, partitioning={"day": "date"}, dates="datetime64")
    assert pd.concat(map(table.frame, table.splits)).dtypes[["d", "day"]].tolist() == [DTYPE, DTYPE]
    frame, _ = read_small_files([FILE, FILE], ["plain"], dates="datetime64")
    assert frame["plain"].dtype == DTYPE
