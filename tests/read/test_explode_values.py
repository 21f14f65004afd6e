"""Values of exploded columns: comparison with Python loops, dtypes, annotated types, damage."""

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
from numparq import ParquetError, SchemaError, read_parquet, variant
from numparq.column.nested.nested_type import resolve_nested_type
from numparq.to_pandas.nested.explode_path import collection_paths
from support.compare import BACKENDS, assert_frames_equal, backend_options, read_by_pandas, write_by_pyarrow
from support.data.nested_columns import ARROW
from support.files.edited_footers import THRIFT, write_with_footer
from support.oracles.explode import explode_column, explode_paths, frame_to_python

OPTIONS = [
    {"compression": "none", "use_dictionary": False},
    {"row_group_size": 2, "data_page_version": "2.0", "compression": "zstd"},
    {"data_page_size": 8, "write_batch_size": 1, "compression": "snappy"},
]


def assert_every_path(data, name, **options):
    """Explode a column by each of its paths and compare with Python loops. Return the number of paths."""
    array = pq.read_table(io.BytesIO(data), columns=[name]).column(name).combine_chunks()
    with numparq.ParquetFile(data) as file:
        paths = list(collection_paths(resolve_nested_type(file.schema, file.schema.columns.index(name))))
        expected_paths = list(explode_paths(array.type, ()))
        assert len(paths) == len(expected_paths)
        for path, expected_path in zip(paths, expected_paths, strict=True):
            got = file.read(columns=[name], explode=path, include=["row_number"], **options)
            expected = explode_column(array, expected_path)
            columns = frame_to_python(got)
            assert (columns[-1:] + columns[:-1] == expected) if expected else not len(got), path
    return len(paths)


def scalars():
    numbers, texts = st.integers(-1000, 1000), st.text("ab", max_size=3)
    return st.sampled_from([(pa.int64(), numbers), (pa.string(), texts), (pa.bool_(), st.booleans())])


@st.composite
def types_and_values(draw, depth):
    """Draw a type and a strategy for its values."""
    kind = draw(st.sampled_from(["scalar", "list", "list", "struct", "map"])) if depth else "scalar"
    if kind == "scalar":
        data_type, values = draw(scalars())
        return data_type, st.none() | values
    if kind == "struct":
        fields = {name: draw(types_and_values(depth - 1)) for name in draw(st.sampled_from(["a", "ab"]))}
        values = st.fixed_dictionaries({name: values for name, (_, values) in fields.items()})
        return pa.struct([(name, data_type) for name, (data_type, _) in fields.items()]), st.none() | values
    data_type, values = draw(types_and_values(depth - 1))
    if kind == "list":
        return pa.list_(data_type), st.none() | st.lists(values, max_size=3)
    entries = st.tuples(st.text("xy", max_size=2), values)
    return pa.map_(pa.string(), data_type), st.none() | st.lists(entries, max_size=3)


@given(data=st.data())
def test_random_collections(data):
    data_type, values = data.draw(types_and_values(4))
    array = pa.array(data.draw(st.lists(values, min_size=1, max_size=6)), data_type)
    options = data.draw(st.sampled_from(OPTIONS))
    assert_every_path(
        write_by_pyarrow(pa.table({"c": array, "n": range(len(array))}), **options),
        "c",
        dtype_backend=data.draw(st.sampled_from(["numpy", "numpy_nullable", "pyarrow"])),
    )


def test_rows_that_span_pages():
    values = [[list(range(n)) for n in range(k)] for k in range(12)]
    data = write_by_pyarrow(pa.table({"c": values}), data_page_size=8, write_batch_size=1, use_dictionary=False)
    with numparq.ParquetFile(data) as file:
        read = read_parquet(data, explode="c.list.element.list.element", include=["position", "row_number"])
        assert file.num_rows == 12
        assert len(read) == sum(n for k in range(12) for n in range(k))
    expected = [(n, n, k) for k in range(12) for m in range(k) for n in range(m)]
    assert list(zip(*frame_to_python(read), strict=True)) == expected


def test_files_of_other_writers(parquet_testing):
    names = {
        "nested_lists.snappy.parquet": ["a"],
        "nested_maps.snappy.parquet": ["a"],
        "nonnullable.impala.parquet": ["Int_Array", "int_array_array", "Int_Map", "int_map_array", "nested_Struct"],
        "nullable.impala.parquet": ["int_array", "int_array_Array", "int_map", "int_Map_Array", "nested_struct"],
        "repeated_no_annotation.parquet": ["phoneNumbers"],
        "datapage_v2.snappy.parquet": ["e"],
        "null_list.parquet": ["emptylist"],
        "list_columns.parquet": ["int64_list", "utf8_list"],
        "old_list_structure.parquet": ["a"],
        "repeated_primitive_no_list.parquet": ["Int32_list", "String_list", "group_of_lists"],
    }
    count = 0
    for name, columns in names.items():
        path = parquet_testing / "data" / name
        if path.exists():
            count += sum(assert_every_path(path.read_bytes(), column) for column in columns)
    assert count >= 17
    with pytest.raises(SchemaError, match="not a list or map"):
        read_parquet(parquet_testing / "data" / "nulls.snappy.parquet", explode="b_struct")


# --- dtypes -----------------------------------------------------------------------------------------------------

_NO_LISTS = ("list of views", "dictionaries")  # pyarrow cannot convert views; dictionaries are read as values
_LISTS = [name for name, (_, kind) in ARROW.items() if not pa.types.is_struct(kind) and name not in _NO_LISTS]


def flat_table(array):
    """Return the columns that pyarrow flattens a list to, with its structs or entries."""
    if pa.types.is_map(array.type):
        array = array.drop_null()
        return pa.table({"key": array.keys, "value": array.items})
    array = array.flatten()
    if pa.types.is_struct(array.type):
        return pa.table(array.flatten(), names=[field.name for field in array.type])
    return pa.table({"c": array})


@pytest.mark.parametrize("dtype_backend", BACKENDS)
@pytest.mark.parametrize("name", _LISTS)
def test_items_read_as_flat_columns(name, dtype_backend):
    """List items are read as pandas with pyarrow reads a flat column of them."""
    values, kind = ARROW[name]
    array = pa.array(values, kind)
    for options in ({}, OPTIONS[1]):
        got = read_parquet(
            write_by_pyarrow(pa.table({"c": array}), **options), explode="c", **backend_options(dtype_backend)
        )
        assert_frames_equal(got, read_by_pandas(write_by_pyarrow(flat_table(array)), **backend_options(dtype_backend)))


@pytest.mark.parametrize("dtype_backend", BACKENDS)
def test_parents_are_repeated(dtype_backend):
    table = pa.table(
        {
            "n": [1, None, 3, 4],
            "s": ["x", "y", None, "z"],
            "c": [[1, 2], None, [], [3]],
            "d": [[1], None, [2], []],
            "k": pa.array(["b", "a", "b", None]).dictionary_encode(),
            "t": pa.array([1, 2, 3, 4], pa.timestamp("us", "UTC")),
            "o": [{"a": 1}, None, {"a": 2}, {"a": 3}],
        }
    )
    data = write_by_pyarrow(table, row_group_size=3)
    whole = read_by_pandas(data, **backend_options(dtype_backend))
    got = read_parquet(data, explode="c", **backend_options(dtype_backend))
    others = [name for name in table.column_names if name != "c"]
    assert got.columns.tolist() == table.column_names
    assert_frames_equal(got[others], whole[others].take([0, 0, 3]).reset_index(drop=True))
    assert got["c"].tolist() == [1, 2, 3]


def test_large_integers_stay_exact():
    big = (1 << 60) + 1
    got = read_parquet(write_by_pyarrow(pa.table({"c": [[big, None], None]})), explode="c")
    assert got["c"].dtype == "Int64"
    assert got["c"][0] == big
    assert got["c"][1] is pd.NA
    assert read_parquet(write_by_pyarrow(pa.table({"c": [[big], None, []]})), explode="c")["c"].dtype == "int64"


def test_categories():
    table = pa.table({"p": ["x", "y", "z"], "c": [["b", "a"], ["b", None], []], "n": [[1], [], [2]]})
    data = write_by_pyarrow(table)
    got = read_parquet(data, explode="c", categories=["c", "p"])
    assert got["c"].cat.categories.tolist() == ["b", "a"]
    assert got["c"].cat.codes.tolist() == [0, 1, 0, -1]
    assert got["p"].tolist() == ["x", "x", "y", "y"]
    assert got["p"].dtype == "category"
    got = read_parquet(data, explode="n", categories=["n.list.element"])
    assert got["n"].cat.categories.dtype == "int64"
    assert got["n"].tolist() == [1, 2]


# --- annotated structs --------------------------------------------------------------------------------------------


def test_variants_are_not_expanded():
    """A VARIANT is one value, though it is stored as a struct."""
    fields = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])
    items = [dict(zip(("metadata", "value"), variant.encode(value), strict=True)) for value in ({"a": 1}, [2])]

    def edit(footer):
        footer.schema[3].logicalType = THRIFT.LogicalType(VARIANT=THRIFT.VariantType(specification_version=1))

    data = write_with_footer(pa.table({"c": pa.array([[items[0], None], [], [items[1]]], pa.list_(fields))}), edit)
    got = read_parquet(data, explode="c")
    assert got.columns.tolist() == ["c"]
    assert got["c"].tolist() == [{"a": 1}, None, [2]]
    assert read_parquet(data, explode="c", variants="bytes")["c"].tolist() == [items[0], None, items[1]]
    for path in ("c.list.element.value", "c.list.element.metadata"):
        with pytest.raises(SchemaError, match=r"the path is not a list or map; .* of the column: 'c\.list\.element'"):
            read_parquet(data, explode=path)


def test_file_references_are_not_expanded():
    fields = pa.struct([("uri", pa.string()), ("inline", pa.binary())])
    items = [{"uri": None, "inline": b"one"}, None, {"uri": None, "inline": b"two"}]

    def edit(footer):
        footer.schema[3].logicalType = THRIFT.LogicalType(FILE=THRIFT.FileType())

    data = write_with_footer(pa.table({"c": pa.array([items[:2], None, items[2:]], pa.list_(fields))}), edit)
    assert read_parquet(data, explode="c")["c"].tolist() == items
    got = read_parquet(data, explode="c", files="bytes", include=["row_number"])
    assert frame_to_python(got) == [[b"one", None, b"two"], [0, 0, 2]]


def test_exploded_geometries():
    """List items become geometries, too."""
    pytest.importorskip("geopandas")
    shapely = pytest.importorskip("shapely")
    points = [shapely.Point(1, 2), shapely.Point(3, 4)]

    def edit(footer):
        footer.schema[3].logicalType = THRIFT.LogicalType(GEOMETRY=THRIFT.GeometryType())

    data = write_with_footer(pa.table({"c": [[points[0].wkb, None], [], [points[1].wkb]]}), edit)
    got = read_parquet(data, explode="c", geometries="geopandas")
    assert got.geometry.name == "c"
    assert got["c"].tolist() == [points[0], None, points[1]]
    assert read_parquet(data, explode="c")["c"].tolist() == [points[0].wkb, None, points[1].wkb]


# --- damage -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_damaged_files_are_read_or_refused():
    """Any damage ends in a frame or a ParquetError."""
    rng = np.random.default_rng(3)
    values = [[[{"x": n, "y": [str(n)] * (n % 3)}] * (n % 4)] * (n % 3) for n in range(60)]
    data = write_by_pyarrow(
        pa.table({"n": range(60), "c": values}),
        row_group_size=25,
        data_page_size=64,
        compression="none",
        store_schema=False,
    )
    paths = ["c", "c.list.element.list.element", "c.list.element.list.element.y.list.element"]
    outcomes = {"read": 0, "refused": 0}
    for number in range(400):
        damaged = bytearray(data)
        end = len(data) if number % 4 == 0 else 3 * len(data) // 5
        for place in rng.integers(4, end, rng.integers(1, 4)):
            damaged[place] = rng.integers(0, 256)
        try:
            read_parquet(bytes(damaged), explode=paths[number % 3], verify_crc=False)
            outcomes["read"] += 1
        except ParquetError:
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 40


def test_on_error_skip_with_explode():
    """Damaged rows are dropped before exploding, as are columns without any rows left."""
    table = pa.table({"n": range(6), "c": [[k] * k for k in range(6)], "t": ["x"] * 6})
    data = write_by_pyarrow(table, row_group_size=3, compression="none", use_dictionary=False)
    chunks = pq.ParquetFile(io.BytesIO(data)).metadata

    def damaged(*places):
        changed = bytearray(data)
        for group, column in places:
            chunk = chunks.row_group(group).column(column)
            changed[chunk.data_page_offset : chunk.data_page_offset + chunk.total_compressed_size] = bytes(
                chunk.total_compressed_size
            )
        return bytes(changed)

    got = read_parquet(damaged((0, 1)), explode="c", on_error="skip", include=["row_number"])
    assert frame_to_python(got) == [
        [3] * 3 + [4] * 4 + [5] * 5,
        [3] * 3 + [4] * 4 + [5] * 5,
        ["x"] * 12,
        [3] * 3 + [4] * 4 + [5] * 5,
    ]
    assert len(got.attrs["numparq.lost"]) == 1
    got = read_parquet(damaged((0, 0), (1, 0)), explode="c", on_error="skip", include=["position"])
    assert got.columns.tolist() == ["c", "t", "position"]
    assert frame_to_python(got)[0] == [k for k in range(6) for _ in range(k)]
    with pytest.raises(ParquetError):
        read_parquet(damaged((0, 1)), explode="c")
