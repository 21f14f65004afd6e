"""Row groups, row ranges, row counts and explode over many files: the rows of one file that holds all of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq import col

ROWS = [7, 0, 5, 9]
GROUP = 3
TYPES = {"a": pa.int64(), "s": pa.string(), "l": pa.list_(pa.struct([("x", pa.int32()), ("y", pa.string())]))}


def table_of(number: int) -> pa.Table:
    rows = range(ROWS[number])
    lists = [None if n % 4 == 3 else [{"x": n, "y": f"{number} {k}"} for k in range(n % 3)] for n in rows]
    values = {"a": [100 * number + n for n in rows], "s": [f"s{n}" if n % 5 else None for n in rows], "l": lists}
    return pa.table({name: pa.array(values[name], kind) for name, kind in TYPES.items()})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Write files, one of them without a row group, and one file with all their rows in the same row groups."""
    folder = tmp_path_factory.mktemp("rows")
    (folder / "many").mkdir()
    schema = pa.schema(list(TYPES.items()))
    with pq.ParquetWriter(folder / "one.parquet", schema) as one:
        for number in range(len(ROWS)):
            table = table_of(number)
            with pq.ParquetWriter(folder / "many" / f"{number}.parquet", schema) as own:
                for start in range(0, len(table), GROUP):
                    own.write_table(table.slice(start, GROUP))
                    one.write_table(table.slice(start, GROUP))
    return folder


SELECTIONS = {
    "row groups": {"row_groups": [1, 2, 3]},
    "one row group": {"row_groups": [4]},
    "row groups in another order": {"row_groups": [6, 0, 3, 1, 0]},
    "no row group": {"row_groups": []},
    "row groups and range": {"row_groups": [5, 3, 2], "row_range": (7, 17)},
    "range": {"row_range": (5, 14)},
    "row groups, first rows": {"row_groups": [6, 1], "nrows": 4},
    "row groups and filter": {"row_groups": [6, 1, 2], "filters": col("a") > 4, "nrows": 3},
}
EXPLODED = {
    "all": {},
    "columns": {"columns": ["l.list.element.y", "a"]},
    "rows only": {"columns": []},
    "position": {"include": ["position", "row_group"]},
    "filter": {"filters": col("a") > 203, "columns": ["l"]},
}


def spelled(folder, way):
    many = folder / "many"
    return {"folder": many, "glob": f"{many}/*.parquet", "list": [many / f"{n}.parquet" for n in range(len(ROWS))]}[way]


@pytest.mark.parametrize("way", ["folder", "glob", "list"])
@pytest.mark.parametrize("selection", SELECTIONS)
def test_rows_by_position_count_over_all_files(files, selection, way):
    options = SELECTIONS[selection]
    expected = numparq.read_parquet(files / "one.parquet", **options)
    pd.testing.assert_frame_equal(numparq.read_parquet(spelled(files, way), **options), expected)


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
@pytest.mark.parametrize("selection", SELECTIONS)
def test_batches_of_rows_by_position(files, selection, backend):
    options = {**SELECTIONS[selection], "dtype_backend": backend}
    expected = numparq.read_parquet(files / "one.parquet", **options)
    for path in ("one.parquet", "many"):
        with numparq.Dataset(files / path) as dataset:
            batches = list(dataset.iter_batches(**options, batch_rows=2))
        assert all(len(batch) == 2 for batch in batches[:-1])
        pd.testing.assert_frame_equal(pd.concat(batches), expected)


@pytest.mark.parametrize("selection", ["all rows", *SELECTIONS])
@pytest.mark.parametrize("exploded", EXPLODED)
def test_exploded_list_of_many_files(files, exploded, selection):
    chosen = SELECTIONS.get(selection, {})
    if "filters" in chosen and "filters" in EXPLODED[exploded]:
        pytest.skip("two filters")
    options = {**EXPLODED[exploded], **chosen, "explode": "l"}
    expected = numparq.read_parquet(files / "one.parquet", **options)
    found = numparq.read_parquet(files / "many", **options)
    if "row_group" in expected:
        numbers = np.concatenate([np.arange(-(-count // GROUP)) for count in ROWS])  # within each file
        expected["row_group"] = numbers[expected["row_group"]]
    pd.testing.assert_frame_equal(found, expected)


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_batches_of_an_exploded_list(files, backend):
    options = {"explode": "l", "dtype_backend": backend}
    expected = numparq.read_parquet(files / "one.parquet", **options)
    with numparq.Dataset(files / "many") as dataset:
        for sizes in ({"batch_rows": 4}, {"batch_bytes": 1}, {"batch_bytes": 400}):
            batches = list(dataset.iter_batches(**options, **sizes))
            assert len(batches) > 1
            pd.testing.assert_frame_equal(pd.concat(batches), expected)


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("columns", [None, ["a", "l"], ["l", "s", "a"]])
def test_exploded_list_beside_columns_of_several_types(tmp_path, columns, on_error):
    lists = [[1, None], [3]]
    for number, kind in enumerate([pa.int32(), pa.int64()]):
        a, s = pa.array([1, 2], kind), pa.array([{"x": [5]}, None], pa.struct({"x": pa.list_(kind)}))
        table = pa.table({"a": a, "l": pa.array(lists, pa.list_(pa.int8())), "s": s})
        pq.write_table(table, tmp_path / f"{number}.parquet")
    pq.write_table(pa.concat_tables([table, table]), tmp_path / "one")
    options = {"columns": columns, "explode": "l", "on_error": on_error}
    paths = sorted(tmp_path.glob("*.parquet"))
    for filters in (None, col("a") > 1):
        found = numparq.read_parquet(paths, filters=filters, **options)
        pd.testing.assert_frame_equal(found, numparq.read_parquet(tmp_path / "one", filters=filters, **options))


def test_explode_repeats_partition_columns(tmp_path):
    frame = pd.DataFrame({"a": range(6), "k": [1, 2] * 3, "l": [[0], [1, 2], [], None, [3], [4, 5]]})
    numparq.to_parquet(frame, tmp_path, partition_cols=["k"])
    found = numparq.read_parquet(tmp_path, explode="l", partitioning={"k": "int64"})
    assert found.to_dict("list") == {"a": [0, 4, 1, 1, 5, 5], "l": [0, 3, 1, 2, 4, 5], "k": [1, 1, 2, 2, 2, 2]}
    found = numparq.read_parquet(tmp_path, ["k", "l"], explode="l", filters=col("k") == 2)
    assert found.astype(int).to_dict("list") == {"k": [2] * 4, "l": [1, 2, 4, 5]}
    numparq.to_parquet(pd.DataFrame({"k": [[1]]}), tmp_path / "k=1" / "0.parquet")
    with pytest.raises(numparq.SchemaError, match="the column is a partition column"):
        numparq.read_parquet(tmp_path, explode="k")


def test_files_without_the_exploded_list_have_no_elements(tmp_path):
    numparq.to_parquet(pd.DataFrame({"a": [1, 2]}), tmp_path / "0.parquet")
    numparq.to_parquet(pd.DataFrame({"a": [3, 4], "l": [[5, 6], None]}), tmp_path / "1.parquet")
    assert numparq.read_parquet(tmp_path, explode="l").to_dict("list") == {"a": [3, 3], "l": [5, 6]}


def test_nested_columns_that_a_file_lacks_are_null(tmp_path):
    """Levels of 0 stand in the same memory as the levels of other files."""
    tables = [table_of(0), table_of(2).drop_columns(["l"]), table_of(3)]
    for number, table in enumerate(tables):
        pq.write_table(table, tmp_path / f"{number}.parquet")
    for backend in (None, "pyarrow"):
        found = numparq.read_parquet(tmp_path, dtype_backend=backend)["l"]
        expected = [
            value
            for table in tables
            for value in (table["l"].to_pylist() if "l" in table.column_names else [None] * len(table))
        ]
        assert [
            list(value) if isinstance(value, (list, np.ndarray)) else None for value in found.astype(object)
        ] == expected


def test_row_group_that_no_file_has(files):
    with pytest.raises(ValueError, match="row group 8 does not exist; there are 8, counted from 0"):
        numparq.read_parquet(files / "many", row_groups=[0, 8])


def test_files_without_the_filter_column_are_not_read(tmp_path):
    """Their categories are not those of the result."""
    numparq.to_parquet(pd.DataFrame({"c": pd.Categorical(["x", "y"])}), tmp_path / "0.parquet")
    numparq.to_parquet(pd.DataFrame({"c": pd.Categorical(["z", "x"]), "f": [1, 2]}), tmp_path / "1.parquet")
    found = numparq.read_parquet(tmp_path, ["c"], filters=col("f") == 1)
    assert found["c"].tolist() == ["z"]
    assert set(found["c"].cat.categories) == {"x", "z"}
