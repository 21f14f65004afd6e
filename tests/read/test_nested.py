"""Nested columns: comparison with pyarrow, legacy list and map schemas, paths, row selection, damage."""

from __future__ import annotations

import datetime
import io
import random
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import numparq
from numparq import InvalidFileError, SchemaError, UnsupportedError, read_parquet
from numparq.format.logical_type import LogicalType
from numparq.format.physical_type import BYTE_ARRAY, INT32
from numparq.format.schema import OPTIONAL, REPEATED, REQUIRED
from numparq.format.schema_node import SchemaNode
from support.compare import (
    BACKENDS,
    assert_frames_equal,
    backend_options,
    nested_values_equal,
    read_by_pandas,
    write_by_pyarrow,
)
from support.data.nested_columns import ARROW, COLUMNS, nested_strategies, object_series
from support.files.edited_footers import write_with_footer

LIST, MAP, STRING = map(LogicalType, ("LIST", "MAP", "STRING"))
OPTIONS = [
    {"compression": "none", "use_dictionary": False},
    {"row_group_size": 2, "data_page_version": "2.0", "compression": "zstd"},
    {"data_page_size": 8, "write_batch_size": 1, "compression": "snappy"},
    {"data_page_size": 8, "write_batch_size": 1, "data_page_version": "2.0", "compression": "gzip"},
    {"use_compliant_nested_type": False, "store_schema": False},
]


def as_python(value):
    """Convert arrays to lists and NaN to None, recursively."""
    if isinstance(value, np.ndarray):
        return [as_python(item) for item in value.tolist()]
    if isinstance(value, dict):
        return {key: as_python(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(as_python(item) for item in value)
    return None if isinstance(value, float) and value != value else value


# --- comparison with pyarrow ----------------------------------------------------------------------------------


def arrow_table():
    rows = max(len(values) for values, _ in ARROW.values())
    return pa.table(
        {
            name: pa.array(values + [None] * (rows - len(values)), data_type)
            for name, (values, data_type) in ARROW.items()
            if name != "list of views"  # pyarrow cannot convert list views to pandas
        }
    )


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dtype_backend", BACKENDS)
def test_pyarrow_files_read_as_by_pandas(options, dtype_backend):
    for name, column in zip(arrow_table().column_names, arrow_table().columns, strict=True):
        data = write_by_pyarrow(pa.table({name: column}), **options)
        got = read_parquet(data, **backend_options(dtype_backend))
        if name == "binaries":  # pyarrow cannot convert fixed-size binary in lists
            assert [as_python(item) for item in got[name].tolist()[:2]] == [[b"ab", None], [b"cd"]]
            continue
        expected = read_by_pandas(data, **backend_options(dtype_backend))
        assert_frames_equal(got, expected)
        if dtype_backend == "pyarrow":
            assert got[name].array.__arrow_array__().type == expected[name].array.__arrow_array__().type


@pytest.mark.parametrize("options", [{}, {"row_group_size": 2}, {"data_page_size": 8, "data_page_version": "2.0"}])
def test_object_columns_round_trip(options):
    for name, values in COLUMNS.items():
        data = numparq.to_parquet(pd.DataFrame({"c": pd.Series(object_series(values))}), **options)
        assert_frames_equal(read_parquet(data), read_by_pandas(data))
        arrow = read_parquet(data, dtype_backend="pyarrow")["c"].array.__arrow_array__()
        arrow.validate(full=True)
        assert arrow.to_pylist() == pq.read_table(io.BytesIO(data))["c"].to_pylist(), name


@given(data=st.data())
def test_random_nested_lists_round_trip(data):
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
    written_by_us = numparq.to_parquet(pd.DataFrame({"c": pd.Series(object_series(values))}), **sizes)
    arrow = read_parquet(written_by_us, dtype_backend="pyarrow")["c"].array.__arrow_array__()
    arrow.validate(full=True)
    assert arrow.to_pylist() == pa.array(values).to_pylist()
    first, stop = sorted(data.draw(st.tuples(st.integers(0, len(values)), st.integers(0, len(values)))))
    part = read_parquet(written_by_us, dtype_backend="pyarrow", row_range=(first, stop))["c"].tolist()
    assert part == arrow.slice(first, stop - first).to_pylist() or pd.NA in part
    assert len(part) == stop - first
    assert [as_python(item) for item in read_parquet(written_by_us)["c"]] == arrow.to_pylist()


def test_many_short_and_long_lists():
    """More lists than are sliced one by one."""
    rng = np.random.default_rng(0)
    for longest in (3, 60):
        values = [None if rng.random() < 0.1 else rng.integers(0, 9, rng.integers(0, longest)) for _ in range(2000)]
        data = write_by_pyarrow(pa.table({"a": pa.array(values, pa.list_(pa.int16()))}), row_group_size=700)
        assert_frames_equal(read_parquet(data), read_by_pandas(data))


def test_large_integers_beside_nulls_stay_exact():
    data = write_by_pyarrow(pa.table({"a": [[2**62 + 1, None], [1]], "s": [{"x": 2**62 + 1}, {"x": None}]}))
    got = read_parquet(data)
    assert got["a"][0].tolist() == [2**62 + 1, None]
    assert got["a"][0].dtype == object
    assert got["s"].tolist() == [{"x": 2**62 + 1}, {"x": None}]


def test_struct_with_300_fields():
    rows = [{f"f{number}": number + row for number in range(300)} for row in range(3)]
    data = write_by_pyarrow(pa.table({"s": rows}))
    assert read_parquet(data)["s"].tolist() == rows


def test_flat_columns_beside_nested_columns():
    table = pa.table(
        {"n": [1, None, 3], "l": [[1], None, []], "t": ["a", "b", None], "s": [{"x": 1}] * 3, "b": [True] * 3}
    )
    for options in OPTIONS:
        data = write_by_pyarrow(table, **options)
        for dtype_backend in BACKENDS:
            assert_frames_equal(
                read_parquet(data, **backend_options(dtype_backend)),
                read_by_pandas(data, **backend_options(dtype_backend)),
            )
        assert_frames_equal(read_parquet(data, include=["row_number"]).drop(columns="row_number"), read_by_pandas(data))


# --- row selection --------------------------------------------------------------------------------------------


def test_row_ranges_and_row_groups():
    rng = random.Random(0)
    values = [
        None if rng.random() < 0.2 else [rng.choice(["", "a", None]) for _ in range(rng.randint(0, 4))]
        for _ in range(50)
    ]
    for options in ({}, {"data_page_size": 5, "write_batch_size": 1}, {"data_page_version": "2.0"}):
        data = write_by_pyarrow(
            pa.table({"a": values, "s": [{"l": item, "n": 1} for item in values]}), row_group_size=13, **options
        )
        whole = read_parquet(data)
        for first, stop in ((0, 1), (12, 14), (13, 26), (5, 45), (49, 50), (20, 20), (0, 50)):
            got = read_parquet(data, row_range=(first, stop))
            assert [as_python(item) for item in got["a"]] == [as_python(item) for item in whole["a"][first:stop]]
            assert [as_python(item) for item in got["s"]] == [as_python(item) for item in whole["s"][first:stop]]
        assert [as_python(item) for item in read_parquet(data, row_groups=[3, 0])["a"]] == values[39:] + values[:13]
        assert [as_python(item) for item in read_parquet(data, nrows=3)["a"]] == values[:3]
        assert len(read_parquet(data, nrows=0)) == 0
        texts = pa.list_(pa.string())
        types = [texts, pa.struct([("l", texts), ("n", pa.int64())])]
        empty = read_parquet(data, nrows=0, dtype_backend="pyarrow")
        assert empty.dtypes.tolist() == list(map(pd.ArrowDtype, types))


# --- legacy list and map schemas ------------------------------------------------------------------------------


def leaf(name, repetition=REQUIRED):
    return SchemaNode(name, repetition, INT32)


def text(name, repetition=REQUIRED):
    return SchemaNode(name, repetition, BYTE_ARRAY, logical=STRING)


def group(name, *children, repetition=OPTIONAL, logical=None):
    return SchemaNode(name, repetition, logical=logical, children=children)


def repeated(name, *children, logical=None):
    return group(name, *children, repetition=REPEATED, logical=logical)


def null_leaf(name):
    """Build a leaf that is always null, as Spark writes for ``array()`` and ``map()``."""
    return SchemaNode(name, REQUIRED, INT32, logical=LogicalType("UNKNOWN"))


# Schema, values written, and values read (None: the same).
FORMS = {
    "lists of nothing": (
        group("c", repeated("list", group("e", repeated("list", null_leaf("element")), logical=LIST)), logical=LIST),
        [[[]], None, []],
        None,
    ),
    "maps of nothing": (
        group("c", repeated("key_value", null_leaf("key"), null_leaf("value")), logical=MAP),
        [[], None],
        None,
    ),
    "unannotated": (leaf("c", REPEATED), [[1, 2], [], [3]], None),
    "unannotated group": (repeated("c", leaf("a"), text("b", OPTIONAL)), [[{"a": 1, "b": None}], []], None),
    "unannotated in a group": (group("c", leaf("a", REPEATED)), [{"a": [1]}, {"a": []}, None], None),
    "rule 1": (group("c", leaf("element", REPEATED), logical=LIST), [[1, 2], None, []], None),
    "rule 2": (
        group("c", repeated("element", text("s"), leaf("n")), logical=LIST),
        [[{"s": "x", "n": 1}], None, []],
        None,
    ),
    "rule 3": (
        group("c", repeated("array", leaf("array", REPEATED), logical=LIST), logical=LIST),
        [[[1, 2], []], None, []],
        None,
    ),
    "rule 4, array": (
        group("c", repeated("array", text("s")), logical=LIST),
        [[{"s": "x"}], None, []],
        None,
    ),
    "rule 4, tuple": (
        group("c", repeated("c_tuple", text("s")), logical=LIST),
        [[{"s": "x"}], None, []],
        None,
    ),
    "not rule 4": (group("c", repeated("d_tuple", text("s")), logical=LIST), [["x"], None, []], None),
    "rule 5": (group("c", repeated("element", text("s", OPTIONAL)), logical=LIST), [["x", None], None, []], None),
    "rule 5, required": (group("c", repeated("bag", text("s")), logical=LIST), [["x"], None, []], None),
    "misnamed map": (group("c", repeated("map", text("s"), leaf("n")), logical=MAP), [[("a", 1)], None, []], None),
    "key not required": (
        group("c", repeated("key_value", text("key", OPTIONAL), leaf("value")), logical=MAP),
        [[("a", 1)], None, []],
        None,
    ),
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_legacy_list_and_map_schemas(name, version):
    node, values, expected = FORMS[name]
    frame = pd.DataFrame({"c": pd.Series(object_series(values))})
    data = numparq.to_parquet(frame, schema=[node], data_page_version=version, store_schema=False)
    assert [as_python(item) for item in read_parquet(data)["c"]] == (expected or values)
    arrow = read_parquet(data, dtype_backend="pyarrow")["c"].array.__arrow_array__()
    arrow.validate(full=True)
    assert arrow.to_pylist() == (expected or values)


def test_map_key_value_converted_type():
    node = group("c", repeated("map", text("key"), leaf("value", OPTIONAL)), logical=MAP)
    values = [[("a", None), ("a", 2)], None, []]
    data = numparq.to_parquet(pd.DataFrame({"c": pd.Series(object_series(values))}), schema=[node], store_schema=False)

    def edit(footer):
        footer.schema[1].converted_type, footer.schema[1].logicalType = 2, None

    assert [as_python(item) for item in read_parquet(rewritten(data, edit))["c"]] == values


def test_maps_without_values_are_lists_of_keys():
    data = numparq.to_parquet(
        pd.DataFrame({"c": pd.Series(object_series([["a", "b"], None, []]))}),
        schema=[group("c", repeated("key_value", text("key")), logical=LIST)],
        store_schema=False,
    )

    def edit(footer):
        footer.schema[1].converted_type, footer.schema[1].logicalType = 1, None

    assert [as_python(item) for item in read_parquet(rewritten(data, edit))["c"]] == [["a", "b"], None, []]


def test_list_and_map_annotations_on_structs_are_ignored():
    table = pa.table({"c": [{"x": 1, "y": [2]}, None]})
    for converted in (1, 2, 3):

        def edit(footer, converted=converted):
            footer.schema[1].converted_type = converted

        data = write_with_footer(table, edit)
        assert [as_python(item) for item in read_parquet(data)["c"]] == [{"x": 1, "y": [2]}, None]


def rewritten(data, edit):
    """Edit the footer of a file."""
    from support.files.builder import parse_file

    return parse_file(data).stored(edit)


# --- paths into columns ---------------------------------------------------------------------------------------


def nested_file():
    moment = datetime.datetime(2020, 1, 1)
    return write_by_pyarrow(
        pa.table(
            {
                "a": pa.array(
                    [{"b": 1, "c": {"d": 2, "e": "x"}, "t": moment}, {"b": None, "c": None, "t": None}, None]
                ),
                "l": [[{"x": 1, "y": 2}, None], [], None],
                "m": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
                "a.b": [7, 8, 9],
                "z": [1.5, 2.5, 3.5],
            }
        )
    )


@pytest.mark.parametrize("dtype_backend", BACKENDS)
@pytest.mark.parametrize("columns", [["a.c.d"], ["a.c"], ["z", "a.c.e", "a.t"], ["a.c.d", "a.c.e", "a"]])
def test_struct_fields_are_read_as_columns(columns, dtype_backend):
    """A projected field has the dtype that it would have as a flat column."""
    options = {"columns": columns, **backend_options(dtype_backend)}
    assert_frames_equal(read_parquet(nested_file(), **options), read_by_pandas(nested_file(), **options))


def test_dotted_and_tuple_paths():
    data = nested_file()
    assert read_parquet(data, columns=["a.b"])["a.b"].tolist() == [7, 8, 9]  # the column with this exact name
    assert read_parquet(data, columns=[("a", "b")])["b"].tolist()[0] == 1
    got = read_parquet(data, columns=["l.list.element.x"])
    assert [as_python(item) for item in got["l"]] == [[{"x": 1}, None], [], None]
    got = read_parquet(data, columns=["l.list.element.y", "z", ("l", "list", "element", "x")])
    assert got.columns.tolist() == ["l", "z"]
    assert [as_python(item) for item in got["l"]] == [[{"x": 1, "y": 2}, None], [], None]
    assert [as_python(item) for item in read_parquet(data, columns=["m.key_value.key"])["m"]] == [["k"], None, []]
    with pytest.raises(SchemaError, match=r"did you mean .*'a\.c\.d'"):
        read_parquet(data, columns=["a.c.f"])


def test_only_projected_leaves_are_fetched():
    rows = [{"small": 1, "large": "x" * 100 + str(number)} for number in range(3000)]
    data = write_by_pyarrow(pa.table({"s": rows}), compression="none", use_dictionary=False)
    with numparq.ParquetFile(io.BytesIO(data)) as file:
        before = file._file.source.num_bytes
        assert file.read(columns=["s.small"])["small"].sum() == 3000
        assert file._file.source.num_bytes - before < 50_000 < len(data)


# --- pandas types stored as structs ---------------------------------------------------------------------------

_ARRAYS = pd.arrays.IntervalArray
INTERVALS = {
    "integers": _ARRAYS.from_breaks([0, 1, 2]),
    "nulls": _ARRAYS.from_tuples([(0.0, 1.0), None]),
    "moments": _ARRAYS.from_breaks(
        pd.to_datetime(["2020", "2021", "2022"]).tz_localize("Europe/Berlin"), closed="left"
    ),
    "moments, nulls": _ARRAYS.from_tuples([(pd.Timestamp("2020"), pd.Timestamp("2021")), None]),
    "spans": _ARRAYS.from_breaks(pd.to_timedelta([1, 2, 3], "s"), closed="both"),
}
COMPLEX = {name: np.array([1 + 2j, complex("nan")], name) for name in ("complex64", "complex128")}


@pytest.mark.parametrize("name", [*INTERVALS, *COMPLEX])
def test_intervals_and_complex_numbers_round_trip(name):
    values = {**INTERVALS, **COMPLEX}[name]
    index = pd.Index(values, name="i")
    for frame in (
        pd.DataFrame({"c": values, "n": [1, 2]}),
        pd.DataFrame({"n": [1, 2]}, index=index),
        pd.DataFrame({"n": [1, 2]}, index=pd.MultiIndex.from_arrays([index, [3, 4]])),
    ):
        data = numparq.to_parquet(frame)
        pd.testing.assert_frame_equal(read_parquet(data), frame)
        if name in INTERVALS:
            assert_frames_equal(read_parquet(data), read_by_pandas(data))


def test_lookalike_structs_stay_structs():
    """Structs with the same fields, and intervals that end before they begin, are not converted."""
    rows = [{"real": 1.0, "imag": 2.0}]
    assert read_parquet(write_by_pyarrow(pa.table({"c": rows})))["c"].tolist() == rows
    frame = pd.DataFrame({"c": INTERVALS["integers"]})
    data = numparq.to_parquet(frame)

    def edit(footer):
        for element in footer.schema[2:4]:
            element.name = b"left" if element.name == b"right" else b"right"

    assert isinstance(read_parquet(rewritten(data, edit))["c"][0], dict)


# --- damage -----------------------------------------------------------------------------------------------------


def test_inconsistent_leaves_are_an_error():
    """Every leaf of a group states where the group is null, and all must agree."""
    good = [{"x": 1, "y": 2}, {"x": 1, "y": 2}, None]
    files = [
        write_by_pyarrow(pa.table({"s": rows}), compression="none", use_dictionary=False, store_schema=False)
        for rows in (good, [None, *good[:2]])
    ]
    from support.files.builder import parse_file

    first, second = map(parse_file, files)
    first.chunks[0, 1] = second.chunks[0, 1]
    with pytest.raises(InvalidFileError, match=r"do not agree .*row group 0, column 's'"):
        read_parquet(first.stored())
    lists = [
        write_by_pyarrow(pa.table({"s": rows}), compression="none", use_dictionary=False, store_schema=False)
        for rows in ([[good[0]] * 2, [], None], [[good[0]], [good[0]], None])
    ]
    first, second = map(parse_file, lists)
    first.chunks[0, 1] = second.chunks[0, 1]
    first.footer.row_groups[0].columns[1].meta_data.num_values = 3
    with pytest.raises(InvalidFileError, match="do not agree"):
        read_parquet(first.stored())


def test_row_count_that_contradicts_the_footer():
    data = write_by_pyarrow(pa.table({"a": [[1], [2, 3]]}), store_schema=False)

    def edit(footer):
        footer.num_rows = footer.row_groups[0].num_rows = 3

    with pytest.raises(InvalidFileError, match=r"have 2 rows, but the row group has 3 .*row group 0, column 'a.list"):
        read_parquet(rewritten(data, edit))


def test_nesting_depth_limit():
    deep = pa.int32()
    for _ in range(60):
        deep = pa.list_(deep)
    value = 1
    for _ in range(60):
        value = [value]
    data = write_by_pyarrow(pa.table({"a": pa.array([value, None], deep)}), store_schema=False)
    assert as_python(read_parquet(data)["a"][0]) == value
    node = leaf("x", OPTIONAL)
    for number in range(120):
        node = group(f"g{number}", node)
    data = numparq.to_parquet(
        pd.DataFrame({node.name: pd.Series([None], dtype=object)}), schema=[node], store_schema=False
    )
    with pytest.raises(UnsupportedError, match="nested more than 100 deep"):
        read_parquet(data)


def test_field_names_with_invalid_utf8():
    data = write_by_pyarrow(pa.table({"s": [{"x": 1}]}), store_schema=False)

    def edit(footer):
        footer.schema[2].name = b"\x97"

    damaged = rewritten(data, edit)
    assert list(read_parquet(damaged)["s"][0].values()) == [1]
    assert list(read_parquet(damaged, dtype_backend="pyarrow")["s"][0]) == ["\ufffd"]


def test_timestamps_beyond_datetime_are_integers():
    """The stored integers are returned, as by pyarrow for timestamps without a time zone."""
    far = 9_000_000_000_000_000_000
    kind = pa.struct([("z", pa.timestamp("us", "Europe/Paris")), ("n", pa.timestamp("us"))])
    data = write_by_pyarrow(pa.table({"s": pa.array([{"z": far, "n": far}, None], kind)}))
    assert read_parquet(data)["s"].tolist() == [{"z": far, "n": far}, None]


def test_nested_values_equal_compares_types_and_values():
    assert not nested_values_equal(object_series([{"a": np.array([1])}]), object_series([{"a": np.array([2])}]))
    assert not nested_values_equal(object_series([[1]]), object_series([(1,)]))


def nested_value(depth, kind):
    """Return a type and a value of so many lists or structs around an integer."""
    data_type, value = pa.int64(), 1
    for _ in range(depth):
        is_list = kind == "list"
        data_type = pa.list_(data_type) if is_list else pa.struct([("x", data_type)])
        value = [value] if is_list else {"x": value}
    return data_type, value


@pytest.mark.parametrize("kind", ["list", "struct"])
@pytest.mark.parametrize("depth", [30, 49, 50, 65, 98, 99, 100, 200, 1000])
def test_deep_nesting_is_read_and_written_or_a_parquet_error(depth, kind):
    """Arrow's C interface takes 64 levels, our schemas 100, and Parquet's footers 255."""
    data_type, value = nested_value(depth, kind)
    table = pa.table({"a": pa.array([value], data_type)})
    pq.write_table(table, out := io.BytesIO())
    frame = pd.DataFrame({"a": pd.Series([value], dtype=object)})
    calls = {
        "to_arrow": lambda: numparq.ParquetFile(out).to_arrow() == table,
        "read": lambda: len(read_parquet(out)) == 1,
        "arrow dtypes": lambda: len(read_parquet(out, dtype_backend="pyarrow")) == 1,
        "schema": lambda: bool(str(numparq.ParquetFile(out).schema)),
        "statistics": lambda: numparq.ParquetFile(out).statistics("a")[0].max == 1,
        "table": lambda: numparq.ParquetFile(numparq.to_parquet(table)).to_arrow() == table,
        "frame": lambda: bool(numparq.to_parquet(frame)),
        "schema=": lambda: bool(numparq.to_parquet(frame, schema={"a": data_type})),
    }
    refused = {}
    for name, call in calls.items():
        try:
            assert call(), name
        except numparq.ParquetError as error:
            refused[name] = str(error)
    assert all(re.search("nested (more|deeper) than", message) for message in refused.values())
    assert not refused or depth >= 50
    assert refused.keys().isdisjoint(["to_arrow", "read", "arrow dtypes", "table"]) or depth >= 99
    assert numparq.verify(out) is not None
