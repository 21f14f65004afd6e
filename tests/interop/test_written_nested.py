"""Nested columns in numparq's files: pyarrow, polars and duckdb read the values that were written."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numparq
from numparq.errors import SchemaError
from support.data.nested_columns import ARROW, COLUMNS, nested_strategies, object_series
from support.oracles.nested import levels_by_pyarrow

OPTIONS = [
    {},
    {"row_group_size": 2},
    {"data_page_version": "2.0", "compression": "zstd"},
    {"use_dictionary": False, "max_rows_per_page": 1, "compression": None},
    {"data_page_size": 8, "data_page_version": "2.0"},
]


def expected_array(values: list) -> pa.Array:
    return pa.array([sorted(item) if isinstance(item, set) else item for item in values], from_pandas=True)


def write_and_read(frame: pd.DataFrame, **options) -> pa.Table:
    return pq.read_table(io.BytesIO(numparq.to_parquet(frame, **options)))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_object_columns(options):
    columns = {name: values for name, values in COLUMNS.items() if values}
    rows = max(map(len, columns.values()))
    full = {name: values + [None] * (rows - len(values)) for name, values in columns.items()}
    frame = pd.DataFrame({name: pd.Series(object_series(values)) for name, values in full.items()})
    table = write_and_read(frame, **options)
    for name, values in full.items():
        expected = expected_array(values)
        assert table[name].type == expected.type, name
        assert table[name].combine_chunks().to_pylist() == expected.to_pylist(), name


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_arrow_columns(options):
    rows = max(len(values) for values, _ in ARROW.values())
    arrays = {
        name: pa.array(values + [None] * (rows - len(values)), data_type) for name, (values, data_type) in ARROW.items()
    }
    twice = {name: pa.chunked_array([array, array.slice(1)]) for name, array in arrays.items()}
    frame = pd.DataFrame({name: pd.arrays.ArrowExtensionArray(array) for name, array in twice.items()})
    table = write_and_read(frame, **options)
    by_pyarrow = io.BytesIO()
    pq.write_table(pa.table(twice), by_pyarrow)
    again = pq.read_table(by_pyarrow)
    for name in again.column_names:
        assert table[name].type == again[name].type, name
        assert table[name].to_pylist() == twice[name].to_pylist(), name


@given(st.data())
def test_random_object_columns(data):
    values = data.draw(
        st.lists(st.none() | st.lists(data.draw(nested_strategies(3)), max_size=4), min_size=1, max_size=30)
    )
    sizes = {
        "row_group_size": data.draw(st.integers(1, 40)),
        "max_rows_per_page": data.draw(st.integers(1, 40)),
        "data_page_size": data.draw(st.integers(1, 200)),
        "data_page_version": data.draw(st.sampled_from(["1.0", "2.0"])),
        "use_dictionary": data.draw(st.booleans()),
    }
    table = write_and_read(pd.DataFrame({"c": pd.Series(object_series(values))}), **sizes)
    assert table["c"].to_pylist() == values


def test_polars_reads_nested_columns():
    polars = pytest.importorskip("polars")
    names = ["ints", "texts", "structs", "lists of structs", "lists of lists", "structs of lists"]
    frame = pd.DataFrame({name: pd.Series(object_series(COLUMNS[name])) for name in names})
    data = numparq.to_parquet(frame, max_rows_per_page=2)
    table, by_polars = pq.read_table(io.BytesIO(data)), polars.read_parquet(io.BytesIO(data))
    for name in names:
        assert by_polars[name].to_list() == table[name].to_pylist(), name


def test_duckdb_reads_nested_columns(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    names = ["ints", "texts", "structs", "lists of structs", "lists of lists", "structs of lists"]
    path = tmp_path / "nested.parquet"
    numparq.to_parquet(pd.DataFrame({name: pd.Series(object_series(COLUMNS[name])) for name in names}), path)
    rows = duckdb.sql(f"select * from '{path}'").fetchall()
    assert [dict(zip(names, row, strict=True)) for row in rows] == pq.read_table(path).to_pylist()


def test_levels_match_pyarrow():
    """Levels and values are equal byte for byte, without compression and dictionaries."""
    from support.oracles.nested import levels_in_file

    values = COLUMNS["structs of lists"] * 50
    data = numparq.to_parquet(
        pd.DataFrame({"c": pd.Series(object_series(values))}),
        compression=None,
        use_dictionary=False,
        column_encoding="PLAIN",
    )
    assert levels_in_file(data) == levels_by_pyarrow(pa.table({"c": pa.array(values)}))


def test_extension_types_round_trip():
    import uuid

    number = uuid.UUID(int=5)
    frame = pd.DataFrame({"c": pd.Series(object_series([[number, None], None]))})
    frame["i"] = pd.Series(pd.arrays.IntervalArray.from_breaks([1, 2, 3])).astype(
        pd.ArrowDtype(pa.array(pd.arrays.IntervalArray.from_breaks([1, 2])).type)
    )
    table = write_and_read(frame)
    assert table["c"].type.value_type == pa.uuid()
    assert table["c"].to_pylist() == [[number, None], None]
    assert table["i"].type == frame["i"].dtype.pyarrow_dtype


def test_categories_that_are_tuples():
    table = write_and_read(pd.DataFrame({"c": pd.Categorical([(1, 2), None, (3,), (1, 2)])}))
    assert table["c"].to_pylist() == [[1, 2], None, [3], [1, 2]]


def test_list_pages_begin_at_rows():
    values = object_series([list(range(i % 7)) for i in range(500)])
    data = numparq.to_parquet(pd.DataFrame({"c": values}), max_rows_per_page=10, data_page_size=64)
    file = pq.ParquetFile(io.BytesIO(data))
    assert file.read()["c"].to_pylist() == values.tolist()
    assert file.metadata.row_group(0).column(0).has_offset_index


def test_unsupported_values_name_the_column():
    frame = pd.DataFrame({"fine": [1, 2], "odd": [[1], {"a": 1}]})
    with pytest.raises(SchemaError, match="odd"):
        numparq.to_parquet(frame)


def test_statistics_of_elements():
    frame = pd.DataFrame({"c": pd.Series(object_series([[3, None], None, [], [1, 2]]))})
    statistics = pq.ParquetFile(io.BytesIO(numparq.to_parquet(frame))).metadata.row_group(0).column(0).statistics
    assert (statistics.min, statistics.max) == (1, 3)
    assert statistics.null_count == 3  # of all levels: the null element, the null list and the empty one


def test_frames_without_rows():
    table = write_and_read(
        pd.DataFrame({"c": pd.Series(np.empty(0, object)), "d": pd.array([], pd.ArrowDtype(pa.list_(pa.int8())))})
    )
    assert table.num_rows == 0
    assert table["d"].type == pa.list_(pa.field("element", pa.int8()))
