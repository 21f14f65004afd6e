"""Casts of a file's columns to the dataset's types equal a read from a file of the wider type."""

from __future__ import annotations

import datetime
import io
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.column.projection import projection_of, select_columns
from numparq.dataset.cast.columns import cast_column
from numparq.dataset.schema_merge.dataset_schema import DatasetSchema
from numparq.file.reader import ParquetFile
from numparq.format.logical_type import LogicalType
from numparq.format.open_file import OpenFile
from numparq.format.physical_type import BYTE_ARRAY, INT64
from numparq.format.schema import OPTIONAL, REQUIRED
from numparq.format.schema_node import SchemaNode
from numparq.scan.file_reader import FileReader
from numparq.scan.options import ScanOptions
from numparq.scan.projected_columns import ProjectedColumns
from numparq.scan.scan_file import ScanFile
from numparq.to_pandas.frame import allocate_blocks
from numparq.util.worker_pool import WorkerPool

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def open_values(values: Any, kind: Any = None, name: str = "a") -> ParquetFile:
    buffer = io.BytesIO()
    pq.write_table(pa.table({name: values if kind is None else pa.array(values, kind)}), buffer)
    return ParquetFile(buffer)


def array_of(file: ParquetFile, **options: Any) -> Any:
    series = file.read(**options).iloc[:, 0]
    return series.to_numpy() if isinstance(series.dtype, np.dtype) else series.array


def cast_as(file: ParquetFile, schema_file: OpenFile, dtype: Any, **options: Any) -> Any:
    """Return a file's column cast to the dataset schema of another file."""
    schema = DatasetSchema.from_files([file], schema=schema_file.schema)
    (column,) = select_columns(schema_file.schema, None)
    (match,) = schema.map_columns(file, select_columns(schema.schema, None))
    array = array_of(file, **options)
    return cast_column(array, match.column, column, dtype, num_rows=len(array), file="here")


def assert_same(first: Any, second: Any) -> None:
    """Check that values, dtypes and nested value types are equal."""
    assert first.dtype == second.dtype
    assert len(first) == len(second)
    if first.dtype != object:
        pd.testing.assert_series_equal(pd.Series(first), pd.Series(second))
        return
    for one, other in zip(first, second, strict=True):
        assert_same_value(one, other)


def assert_same_value(one: Any, other: Any) -> None:
    assert type(one) is type(other), (one, other)
    if isinstance(one, np.ndarray):
        assert_same(one, other)
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key, value in one.items():
            assert_same_value(value, other[key])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for first, second in zip(one, other, strict=True):
            assert_same_value(first, second)
    elif isinstance(one, Decimal):
        assert one.as_tuple() == other.as_tuple()
    else:
        assert one == other or (one != one and other != other)


DAY, LATE = datetime.date(2024, 2, 29), datetime.date(1901, 1, 1)
MOMENT = datetime.datetime(2024, 2, 29, 12, 30, 1, 5000)
TIME = datetime.time(12, 30, 1, 5000)
UTC = MOMENT.replace(tzinfo=datetime.UTC)

SCALARS = [
    ([1, -5, 127], pa.int8(), pa.int64()),
    ([1, -5, 127], pa.int8(), pa.float64()),
    ([1, 255], pa.uint8(), pa.int16()),
    ([1, 2**32 - 1], pa.uint32(), pa.int64()),
    ([1, 2**31 - 1], pa.int32(), pa.float64()),
    ([1.5, -2.25], pa.float32(), pa.float64()),
    ([1.5, float("nan")], pa.float16(), pa.float32()),
    ([True, False], pa.bool_(), pa.bool_()),
    ([1, -128], pa.int8(), pa.decimal128(6, 2)),
    ([2**63 - 1, -(2**63)], pa.int64(), pa.decimal128(25, 4)),
    ([Decimal("1.20"), Decimal("-9999999.99")], pa.decimal128(9, 2), pa.decimal128(12, 5)),
    ([DAY, LATE], pa.date32(), pa.timestamp("ms")),
    ([DAY, LATE], pa.date32(), pa.timestamp("us")),
    ([DAY, LATE], pa.date32(), pa.timestamp("ns")),
    ([MOMENT], pa.timestamp("ms"), pa.timestamp("us")),
    ([MOMENT], pa.timestamp("us"), pa.timestamp("ns")),
    ([UTC], pa.timestamp("ms", "UTC"), pa.timestamp("ns", "UTC")),
    ([TIME], pa.time32("ms"), pa.time64("us")),
    ([TIME], pa.time64("us"), pa.time64("ns")),
    (["x", "ü"], pa.string(), pa.large_string()),
    ([b"abcd", b"    "], pa.binary(4), pa.binary()),
]


def narrow_and_wide(values: list, kind: Any, wide_type: Any, nulls: bool = False) -> tuple[ParquetFile, ParquetFile]:
    """Return two files with the same values, in the narrow and the wide type."""
    narrow = pa.array(np.array(values, np.float16) if kind == pa.float16() else values, kind)
    wide = pa.array(map(Decimal, values), wide_type) if pa.types.is_decimal(wide_type) else narrow.cast(wide_type)
    more = 2 if nulls else 0
    return tuple(open_values(pa.concat_arrays([array, pa.nulls(more, array.type)])) for array in (narrow, wide))


@pytest.mark.parametrize("nulls", [False, True], ids=["whole", "nulls"])
@pytest.mark.parametrize("backend", ["numpy", "numpy_nullable", "pyarrow"])
@pytest.mark.parametrize(("values", "kind", "wide_type"), SCALARS, ids=str)
def test_flat_columns_are_cast_to_wider_type(
    values: list, kind: Any, wide_type: Any, backend: str, nulls: bool
) -> None:
    narrow, wide = narrow_and_wide(values, kind, wide_type, nulls)
    expected = array_of(wide, dtype_backend=backend)
    assert_same(cast_as(narrow, wide, expected.dtype, dtype_backend=backend), expected)


@pytest.mark.parametrize("backend", ["numpy", "pyarrow"])
@pytest.mark.parametrize(("values", "kind", "wide_type"), SCALARS, ids=str)
def test_nested_columns_are_cast_to_wider_type(values: list, kind: Any, wide_type: Any, backend: str) -> None:
    """Cast lists, structs and maps, and nestings of these."""
    if pa.types.is_decimal(wide_type) and pa.types.is_integer(kind):
        pytest.skip("pyarrow does not cast these")
    if kind == pa.float16():
        values = [np.float16(value) for value in values]
    for wrap, fill in WRAPPED:
        narrow = pa.array(fill(values), wrap(kind))
        wide = pa.array(fill(narrow_values(values, kind, wide_type)), wrap(wide_type))
        expected = array_of(open_values(wide), dtype_backend=backend)
        assert_same(cast_as(open_values(narrow), open_values(wide), expected.dtype, dtype_backend=backend), expected)


def narrow_values(values: list, kind: Any, wide_type: Any) -> list:
    """Return the values in a form that pyarrow accepts for the wider type."""
    if kind == pa.float16():
        return [float(value) for value in values]
    return [datetime.datetime(day.year, day.month, day.day) for day in values] if kind == pa.date32() else values


def struct(*fields: tuple[str, Any]) -> Any:
    return pa.struct(list(fields))


WRAPPED = [
    (lambda kind: pa.list_(kind), lambda values: [values, [], None, [*values, *values]]),
    (lambda kind: pa.list_(kind), lambda values: [[*values, None], values]),
    (
        lambda kind: struct(("x", kind), ("y", pa.int64())),
        lambda values: [*({"x": value, "y": 1} for value in values), {"x": None, "y": None}, None],
    ),
    (lambda kind: pa.map_(pa.string(), kind), lambda values: [[("k", values[0]), ("l", None)], None, []]),
    (lambda kind: pa.list_(struct(("x", kind))), lambda values: [[{"x": value} for value in values], None, [None]]),
    (lambda kind: struct(("l", pa.list_(kind))), lambda values: [{"l": values}, {"l": None}, None]),
    (lambda kind: struct(("l", pa.list_(kind))), lambda values: [{"l": [*values, None]}]),
    (lambda kind: pa.list_(pa.list_(kind)), lambda values: [[values, None, values], None]),
]


# --- missing columns and fields ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["numpy", "pyarrow"])
def test_missing_fields_are_none_in_dataset_order(backend: str) -> None:
    inner = struct(("x", pa.int32()), ("gone", pa.string()))
    file = open_values(
        [{"s": {"x": 1, "gone": "a"}, "b": 1}, None, {"s": None, "b": None}], struct(("s", inner), ("b", pa.int8()))
    )
    dataset_type = struct(
        ("b", pa.int64()), ("c", pa.string()), ("s", struct(("y", pa.list_(pa.int8())), ("x", pa.int64())))
    )
    wide = open_values(
        [{"b": 1, "c": None, "s": {"y": None, "x": 1}}, None, {"b": None, "c": None, "s": None}], dataset_type
    )
    expected = array_of(wide, dtype_backend=backend)
    assert_same(cast_as(file, wide, expected.dtype, dtype_backend=backend), expected)


MISSING = [
    "float64",
    "float32",
    "object",
    "datetime64[us]",
    "timedelta64[ns]",
    "complex128",
    "Int64",
    "boolean",
    "Float32",
    "str",
    "string",
    "datetime64[ms, Europe/Berlin]",
    "period[D]",
    "interval[float64, right]",
    "interval[Int64, left]",
    "Sparse[float64]",
    "int64[pyarrow]",
    "category",
]


@pytest.mark.parametrize("name", MISSING)
def test_missing_columns_are_null_in_every_dtype(name: str) -> None:
    column = select_columns(open_values([1]).schema, None)[0]
    array = cast_column(None, None, column, pandas_dtype(name), num_rows=3)
    assert len(array) == 3
    assert pd.isna(array).all()
    assert array.dtype == pandas_dtype(name) or name == "category"
    assert len(cast_column(None, None, column, pandas_dtype(name), num_rows=0)) == 0


def test_missing_columns_of_arrow_types_are_null() -> None:
    column = select_columns(open_values([1]).schema, None)[0]
    kinds = [
        pa.list_(struct(("x", pa.int8()))),
        pa.map_(pa.string(), pa.int8()),
        pa.uuid(),
        pa.decimal256(50, 3),
        pa.dictionary(pa.int8(), pa.string()),
    ]
    for kind in kinds:
        array = cast_column(None, None, column, pd.ArrowDtype(kind), num_rows=2)
        assert array.dtype == pd.ArrowDtype(kind)
        assert array.isna().all()
        assert len(array) == 2


def test_missing_column_of_non_nullable_dtype_raises() -> None:
    column = select_columns(open_values([1]).schema, None)[0]
    with pytest.raises(numparq.SchemaError, match="cannot hold nulls") as raised:
        cast_column(None, None, column, np.dtype("int64"), num_rows=1, file="here")
    assert raised.value.where == {"file": "here", "column": "a"}
    assert cast_column(None, None, column, np.dtype("int64"), num_rows=0).dtype == "int64"


# --- different dtypes of one type -------------------------------------------------------------------------------------


def pandas_dtype(name: str) -> Any:
    return pd.api.types.pandas_dtype(name)


@pytest.mark.parametrize("dtype", ["Int64", "int64", "float64", "Float64"])
@pytest.mark.parametrize("backend", ["numpy", "numpy_nullable"])
def test_integers_are_cast_to_requested_dtype(dtype: str, backend: str) -> None:
    file = open_values([1, 2, -3], pa.int32())
    cast = cast_as(file, open_values([1], pa.int64()), pandas_dtype(dtype), dtype_backend=backend)
    assert_same(cast, pd.array([1, 2, -3], dtype=dtype) if dtype[0] in "IF" else np.array([1, 2, -3], dtype))


@pytest.mark.parametrize("dtype", ["Int64", "float64", "Float64"])
@pytest.mark.parametrize("backend", ["numpy", "numpy_nullable"])
def test_integers_with_nulls_are_cast_to_requested_dtype(dtype: str, backend: str) -> None:
    file = open_values([1, None, -3], pa.int32())
    cast = cast_as(file, open_values([1], pa.int64()), pandas_dtype(dtype), dtype_backend=backend)
    expected = pd.array([1, None, -3], dtype=dtype) if dtype[0] in "IF" else np.array([1, np.nan, -3])
    assert_same(cast, expected)
    with pytest.raises(numparq.SchemaError, match="nulls"):
        cast_as(file, open_values([1], pa.int64()), np.dtype("int64"), dtype_backend=backend)


@pytest.mark.parametrize(
    "dtype",
    [
        pd.StringDtype("python"),
        pd.StringDtype("pyarrow"),
        pd.StringDtype(na_value=np.nan),
        pd.StringDtype("python", na_value=np.nan),
        np.dtype(object),
    ],
    ids=str,
)
@pytest.mark.parametrize("options", [{}, {"dtype_backend": "numpy_nullable"}, {"categories": ["a"]}], ids=str)
def test_strings_are_cast_to_requested_dtype(dtype: Any, options: dict[str, Any]) -> None:
    cast = cast_as(open_values(["x", None, "y", "x"]), open_values(["x"]), dtype, **options)
    assert cast.dtype == dtype
    assert pd.isna(cast).tolist() == [False, True, False, False]
    assert [cast[0], cast[2], cast[3]] == ["x", "y", "x"]
    assert isinstance(dtype, pd.StringDtype) or cast[1] is None


@pytest.mark.parametrize("dtype", ["Int64", "float64"])
def test_categories_are_cast_to_values(dtype: str) -> None:
    cast = cast_as(
        open_values([7, None, 7, 2], pa.int32()), open_values([7], pa.int64()), pandas_dtype(dtype), categories=["a"]
    )
    assert cast.dtype == dtype
    assert pd.Series(cast).fillna(0).tolist() == [7, 0, 7, 2]


def test_categories_are_cast_to_wider_dtype() -> None:
    wide = open_values([7, 1], pa.int64())
    dtype = array_of(wide, categories=["a"]).dtype
    cast = cast_as(open_values([7, None, 2], pa.int8()), wide, dtype, categories=["a"])
    assert cast.categories.tolist() == [7, 2]
    assert cast.categories.dtype == "int64"
    column = select_columns(wide.schema, None)[0]
    missing = cast_column(None, None, column, dtype, num_rows=2)
    joined = pd.api.types.union_categoricals([cast, missing, array_of(wide, categories=["a"])])
    assert joined.astype("Int64").fillna(0).tolist() == [7, 0, 2, 0, 0, 7, 1]
    words = open_values(["x"])
    dtype = array_of(words, categories=["a"]).dtype
    missing = cast_column(None, None, select_columns(words.schema, None)[0], dtype, num_rows=1)
    assert pd.isna(pd.api.types.union_categoricals([array_of(words, categories=["a"]), missing])).tolist() == [
        False,
        True,
    ]


def test_sparse_columns_are_cast_to_values() -> None:
    file = ParquetFile(numparq.to_parquet(pd.DataFrame({"a": pd.arrays.SparseArray([0.0, 1.5, 0.0])})))
    assert isinstance(array_of(file), pd.arrays.SparseArray)
    assert_same(
        cast_column(array_of(file), *[select_columns(file.schema, None)[0]] * 2, np.dtype("f8"), num_rows=3),
        np.array([0, 1.5, 0]),
    )


def test_time_zone_cast_keeps_instants() -> None:
    berlin = open_values([UTC, None], pa.timestamp("ms", "Europe/Berlin"))
    cast = cast_as(berlin, open_values([UTC], pa.timestamp("us", "UTC")), pd.DatetimeTZDtype("us", "UTC"))
    assert cast.dtype == "datetime64[us, UTC]"
    assert cast[0] == pd.Timestamp(UTC)
    assert cast[1] is pd.NaT


def test_int96_is_cast_to_timestamps() -> None:
    buffer = io.BytesIO()
    pq.write_table(
        pa.table({"a": pa.array([MOMENT], pa.timestamp("us"))}), buffer, use_deprecated_int96_timestamps=True
    )
    file, wide = ParquetFile(buffer), open_values([MOMENT], pa.timestamp("us"))
    schema = DatasetSchema.from_files([file, wide])
    (match,) = schema.map_columns(file, select_columns(schema.schema, None))
    columns = ProjectedColumns(file, projection_of([match.column]), ScanOptions())
    assert columns.schema_only_types([True])[0].dtype == "M8[us]"
    assert_same(cast_as(file, wide, np.dtype("M8[us]")), np.array([MOMENT], "M8[us]"))


@pytest.mark.parametrize(
    ("frame", "dtype", "expected"),
    [
        (pd.DataFrame({"a": pd.IntervalIndex.from_breaks([0, 2**60, 2**61])}), "interval[Int64, right]", None),
        (pd.DataFrame({"a": np.array([1 + 2j], "c8")}), "complex128", np.array([1 + 2j])),
        (pd.DataFrame({"a": pd.Categorical(["x", "y", None])}), "str", pd.array(["x", "y", None], "str")),
        (pd.DataFrame({"a": pd.Categorical([DAY, None])}), "datetime64[us]", np.array([DAY, None], "M8[us]")),
        (pd.DataFrame({"a": pd.Categorical(pd.to_datetime(["2024-02-29"]))}), "M8[ns]", np.array([DAY], "M8[ns]")),
        (pd.DataFrame({"a": pd.array([1, None], "int8[pyarrow]")}), "Int64", pd.array([1, None], "Int64")),
        (pd.DataFrame({"a": pd.array([DAY], pd.ArrowDtype(pa.date32()))}), "M8[ms]", np.array([DAY], "M8[ms]")),
        (pd.DataFrame({"a": np.array([True, None], object)}), "boolean", pd.array([True, None], "boolean")),
        (pd.DataFrame({"a": np.array([1, None], "M8[s]")}), "M8[us]", np.array([1, None], "M8[s]").astype("M8[us]")),
    ],
    ids=str,
)
def test_dtypes_of_numparq_files_are_cast(frame: pd.DataFrame, dtype: str, expected: Any) -> None:
    file = ParquetFile(numparq.to_parquet(frame))
    wide = file if expected is None or expected.dtype.kind == "c" else open_values(expected)
    file_column, dataset_column = (select_columns(item.schema, None)[0] for item in (file, wide))
    cast = cast_column(array_of(file), file_column, dataset_column, pandas_dtype(dtype), num_rows=len(frame))
    if expected is None:
        assert cast.dtype == dtype
        assert [item.left for item in cast] == [0, 2**60]
    else:
        assert_same(cast, expected)


VARIANT = LogicalType("VARIANT")


def test_shredded_and_unshredded_variants_are_equal() -> None:
    parts = SchemaNode("metadata", REQUIRED, BYTE_ARRAY), SchemaNode("value", OPTIONAL, BYTE_ARRAY)
    plain = SchemaNode("v", OPTIONAL, None, 0, VARIANT, parts)
    shredded = SchemaNode("v", OPTIONAL, None, 0, VARIANT, (*parts, SchemaNode("typed_value", OPTIONAL, INT64)))
    stored = {"metadata": b"\x01\x00\x00", "value": None, "typed_value": 5}
    first = ParquetFile(numparq.to_parquet(pd.DataFrame({"v": [{"k": [1]}, None]}), schema={"v": plain}))
    second = ParquetFile(numparq.to_parquet(pd.DataFrame({"v": [stored]}), schema={"v": shredded}))
    for files in ([first, second], [second, first]):
        schema = DatasetSchema.from_files(files)
        assert [leaf.name for leaf in schema.schema] == ["v.metadata", "v.value"]
        (column,) = select_columns(schema.schema, None)
        for file, values in ((first, [{"k": [1]}, None]), (second, [5])):
            (match,) = schema.map_columns(file, [column])
            assert match.is_same == (file is first)
            assert len(match.column.leaves) == 2 + (file is second)
            array = cast_column(array_of(file), match.column, column, np.dtype(object), num_rows=len(values))
            assert array.tolist() == values
    other = open_values([{"metadata": b"", "value": b""}], None, "v")
    with pytest.raises(numparq.SchemaError, match="VARIANT"):
        DatasetSchema.from_files([first, other])


def test_nested_null_type_is_cast_to_null_values() -> None:
    for wrap, value, expected in (
        (lambda kind: pa.map_(pa.string(), kind), [("k", None)], [("k", None)]),
        (lambda kind: struct(("x", kind), ("y", pa.int8())), {"x": None, "y": 1}, {"x": None, "y": 1}),
        (lambda kind: pa.list_(struct(("x", kind))), [{"x": None}, None], np.array([{"x": None}, None], object)),
    ):
        file = open_values([value], wrap(pa.null()))
        for inner in (pa.string(), pa.list_(pa.int8()), struct(("z", pa.int8()))):
            cast = cast_as(file, open_values(pa.nulls(1, wrap(inner))), np.dtype(object))
            assert_same_value(cast[0], expected)
            arrow = cast_as(
                file, open_values(pa.nulls(1, wrap(inner))), pd.ArrowDtype(wrap(inner)), dtype_backend="pyarrow"
            )
            assert arrow.__arrow_array__().to_pylist() == [value]
    numbers = cast_as(
        open_values([[None]], pa.list_(pa.null())), open_values(pa.nulls(1, pa.list_(pa.int8()))), np.dtype(object)
    )
    assert_same_value(numbers[0], np.array([np.nan]))


# --- values that do not fit -------------------------------------------------------------------------------------------


def test_dates_and_timestamps_beyond_nanoseconds_raise() -> None:
    old = datetime.date(1500, 1, 1)
    nanoseconds = pa.timestamp("ns")
    for values, kind in (([old], pa.date32()), ([datetime.datetime(1500, 1, 1)], pa.timestamp("us"))):
        for wrap, value in (
            (lambda item: item, values),
            (pa.list_, [values]),
            (lambda item: struct(("x", item)), [{"x": values[0]}]),
        ):
            wide = open_values(pa.nulls(1, wrap(nanoseconds)))
            with pytest.raises(numparq.SchemaError, match="beyond what 64 bits hold") as raised:
                cast_as(open_values(value, wrap(kind)), wide, array_of(wide).dtype)
            assert raised.value.where == {"file": "here", "column": "a"}
            arrow = array_of(wide, dtype_backend="pyarrow").dtype
            with pytest.raises(numparq.SchemaError):
                cast_as(open_values(value, wrap(kind)), wide, arrow, dtype_backend="pyarrow")


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([2**53 + 1], "float64"),
        ([300], "int8"),
        ([-1], "uint64"),
        ([2**63 - 1], "Float64"),
        ([1], "str"),
        ([1], "datetime64[us]"),
        ([1.5], "int64"),
        ([float("inf")], "Int64"),
        ([1e300], "float32"),
        (["x"], "Int64"),
    ],
)
def test_values_outside_target_dtype_raise(values: list, dtype: str) -> None:
    file = open_values(values)
    column = select_columns(file.schema, None)[0]
    with pytest.raises(numparq.SchemaError):
        cast_column(array_of(file), column, column, pandas_dtype(dtype), num_rows=1)


def test_decimal_cast_that_loses_digits_raises() -> None:
    file, coarse = (
        open_values([Decimal("1.25")], pa.decimal128(9, 2)),
        open_values([Decimal("1.2")], pa.decimal128(9, 1)),
    )
    fine_column, coarse_column = (select_columns(item.schema, None)[0] for item in (file, coarse))
    with pytest.raises(numparq.SchemaError, match="more than 1 digits"):
        cast_column(array_of(file), fine_column, coarse_column, np.dtype(object), num_rows=1)
    assert_same(
        cast_column(array_of(coarse), coarse_column, fine_column, np.dtype(object), num_rows=1),
        np.array([Decimal("1.20")], object),
    )


# --- columns with other names ----------------------------------------------------------------------------------------


def test_fields_by_position_take_dataset_names() -> None:
    first = open_values([{"x": 1, "y": "a"}], struct(("x", pa.int64()), ("y", pa.string())))
    second = open_values(
        [{"y": 2, "x": "b", "z": 1.5}], struct(("y", pa.int32()), ("x", pa.string()), ("z", pa.float64())), "b"
    )
    schema = DatasetSchema.from_files([first, second], resolve="position")
    (column,) = select_columns(schema.schema, None)
    for file, expected in ((first, {"x": 1, "y": "a", "z": None}), (second, {"x": 2, "y": "b", "z": 1.5})):
        (match,) = schema.map_columns(file, [column])
        assert_same_value(read_row(file, match, column), expected)


def read_row(file: ParquetFile, match: Any, column: Any) -> Any:
    """Read the one row of a matched column."""
    columns = ProjectedColumns(file, projection_of([match.column]), ScanOptions())
    output_types = columns.schema_only_types([True] * len(columns.leaves))
    reader = FileReader([ScanFile(file, 0, columns=columns.identity)])
    with WorkerPool(1) as pool:
        reader.open(output_types, pool)
        decoded = reader.decode(allocate_blocks(output_types, 1), range(len(output_types)))
        (array,) = columns.to_arrays(output_types, decoded, 1)
    return cast_column(array, match.column, column, np.dtype(object), num_rows=1)[0]
