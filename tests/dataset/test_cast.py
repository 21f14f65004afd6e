"""Columns of one file as the dataset has them: what a file of the wider type would have given."""

from __future__ import annotations

import datetime
import io
from contextlib import closing
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.column.projection import projection_of, select_columns
from numparq.column.read.row_selection import RowSlice
from numparq.dataset.cast.columns import cast_column
from numparq.dataset.schema_merge.dataset_schema import DatasetSchema
from numparq.file.reader import ParquetFile
from numparq.format.logical_type import LogicalType
from numparq.format.open_file import OpenFile
from numparq.format.physical_type import BYTE_ARRAY, INT64
from numparq.format.schema import OPTIONAL, REQUIRED
from numparq.format.schema_node import SchemaNode
from numparq.scan.file_rows import FileRowReader
from numparq.scan.options import ScanOptions
from numparq.scan.projected_columns import ProjectedColumns
from numparq.to_pandas.frame import allocate_blocks
from numparq.util.worker_pool import WorkerPool

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def opened(values: Any, kind: Any = None, name: str = "a") -> ParquetFile:
    buffer = io.BytesIO()
    pq.write_table(pa.table({name: values if kind is None else pa.array(values, kind)}), buffer)
    return ParquetFile(buffer)


def array_of(file: ParquetFile, **options: Any) -> Any:
    series = file.read(**options).iloc[:, 0]
    return series.to_numpy() if isinstance(series.dtype, np.dtype) else series.array


def as_in(file: ParquetFile, wanted: OpenFile, dtype: Any, **options: Any) -> Any:
    """A file's column as that of a dataset with the schema of another."""
    schema = DatasetSchema.from_files([file], schema=wanted.schema)
    (column,) = select_columns(wanted.schema, None)
    (match,) = schema.map_columns(file, select_columns(schema.schema, None))
    array = array_of(file, **options)
    return cast_column(array, match.column, column, dtype, num_rows=len(array), file="here")


def same(first: Any, second: Any) -> None:
    """Compare all: values, their types, and those of what is in them."""
    assert first.dtype == second.dtype
    assert len(first) == len(second)
    if first.dtype != object:
        pd.testing.assert_series_equal(pd.Series(first), pd.Series(second))
        return
    for one, other in zip(first, second, strict=True):
        same_value(one, other)


def same_value(one: Any, other: Any) -> None:
    assert type(one) is type(other), (one, other)
    if isinstance(one, np.ndarray):
        same(one, other)
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key, value in one.items():
            same_value(value, other[key])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for first, second in zip(one, other, strict=True):
            same_value(first, second)
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


def in_both(values: list, kind: Any, wanted: Any, nulls: bool = False) -> tuple[ParquetFile, ParquetFile]:
    """Files with the same values, of both types."""
    narrow = pa.array(np.array(values, np.float16) if kind == pa.float16() else values, kind)
    wide = pa.array(map(Decimal, values), wanted) if pa.types.is_decimal(wanted) else narrow.cast(wanted)
    more = 2 if nulls else 0
    return tuple(opened(pa.concat_arrays([array, pa.nulls(more, array.type)])) for array in (narrow, wide))


@pytest.mark.parametrize("nulls", [False, True], ids=["whole", "nulls"])
@pytest.mark.parametrize("backend", ["numpy", "numpy_nullable", "pyarrow"])
@pytest.mark.parametrize(("values", "kind", "wanted"), SCALARS, ids=str)
def test_flat_columns(values: list, kind: Any, wanted: Any, backend: str, nulls: bool) -> None:
    narrow, wide = in_both(values, kind, wanted, nulls)
    expected = array_of(wide, dtype_backend=backend)
    same(as_in(narrow, wide, expected.dtype, dtype_backend=backend), expected)


@pytest.mark.parametrize("backend", ["numpy", "pyarrow"])
@pytest.mark.parametrize(("values", "kind", "wanted"), SCALARS, ids=str)
def test_nested_columns(values: list, kind: Any, wanted: Any, backend: str) -> None:
    """Lists, structs, maps, and each of these in another."""
    if pa.types.is_decimal(wanted) and pa.types.is_integer(kind):
        pytest.skip("pyarrow does not cast these")
    if kind == pa.float16():
        values = [np.float16(value) for value in values]
    for wrap, fill in WRAPPED:
        narrow = pa.array(fill(values), wrap(kind))
        wide = pa.array(fill(narrow_values(values, kind, wanted)), wrap(wanted))
        expected = array_of(opened(wide), dtype_backend=backend)
        same(as_in(opened(narrow), opened(wide), expected.dtype, dtype_backend=backend), expected)


def narrow_values(values: list, kind: Any, wanted: Any) -> list:
    """The values as pyarrow takes them for the wider type."""
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


# --- what one of the dataset's columns has, and a file has not --------------------------------------------------------


@pytest.mark.parametrize("backend", ["numpy", "pyarrow"])
def test_fields_that_are_missing_are_none_and_come_in_the_dataset_s_order(backend: str) -> None:
    inner = struct(("x", pa.int32()), ("gone", pa.string()))
    file = opened(
        [{"s": {"x": 1, "gone": "a"}, "b": 1}, None, {"s": None, "b": None}], struct(("s", inner), ("b", pa.int8()))
    )
    asked = struct(("b", pa.int64()), ("c", pa.string()), ("s", struct(("y", pa.list_(pa.int8())), ("x", pa.int64()))))
    wide = opened([{"b": 1, "c": None, "s": {"y": None, "x": 1}}, None, {"b": None, "c": None, "s": None}], asked)
    expected = array_of(wide, dtype_backend=backend)
    same(as_in(file, wide, expected.dtype, dtype_backend=backend), expected)


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
    wanted = select_columns(opened([1]).schema, None)[0]
    array = cast_column(None, None, wanted, pandas_dtype(name), num_rows=3)
    assert len(array) == 3
    assert pd.isna(array).all()
    assert array.dtype == pandas_dtype(name) or name == "category"
    assert len(cast_column(None, None, wanted, pandas_dtype(name), num_rows=0)) == 0


def test_missing_columns_of_arrow_types_are_null() -> None:
    wanted = select_columns(opened([1]).schema, None)[0]
    kinds = [
        pa.list_(struct(("x", pa.int8()))),
        pa.map_(pa.string(), pa.int8()),
        pa.uuid(),
        pa.decimal256(50, 3),
        pa.dictionary(pa.int8(), pa.string()),
    ]
    for kind in kinds:
        array = cast_column(None, None, wanted, pd.ArrowDtype(kind), num_rows=2)
        assert array.dtype == pd.ArrowDtype(kind)
        assert array.isna().all()
        assert len(array) == 2


def test_what_cannot_be_null_cannot_be_missing() -> None:
    wanted = select_columns(opened([1]).schema, None)[0]
    with pytest.raises(numparq.SchemaError, match="cannot hold nulls") as raised:
        cast_column(None, None, wanted, np.dtype("int64"), num_rows=1, file="here")
    assert raised.value.where == {"file": "here", "column": "a"}
    assert cast_column(None, None, wanted, np.dtype("int64"), num_rows=0).dtype == "int64"


# --- dtypes that differ, not types ------------------------------------------------------------------------------------


def pandas_dtype(name: str) -> Any:
    return pd.api.types.pandas_dtype(name)


@pytest.mark.parametrize("dtype", ["Int64", "int64", "float64", "Float64"])
@pytest.mark.parametrize("backend", ["numpy", "numpy_nullable"])
def test_integers_become_what_is_asked(dtype: str, backend: str) -> None:
    file = opened([1, 2, -3], pa.int32())
    made = as_in(file, opened([1], pa.int64()), pandas_dtype(dtype), dtype_backend=backend)
    same(made, pd.array([1, 2, -3], dtype=dtype) if dtype[0] in "IF" else np.array([1, 2, -3], dtype))


@pytest.mark.parametrize("dtype", ["Int64", "float64", "Float64"])
@pytest.mark.parametrize("backend", ["numpy", "numpy_nullable"])
def test_integers_beside_nulls_become_what_is_asked(dtype: str, backend: str) -> None:
    file = opened([1, None, -3], pa.int32())
    made = as_in(file, opened([1], pa.int64()), pandas_dtype(dtype), dtype_backend=backend)
    wanted = pd.array([1, None, -3], dtype=dtype) if dtype[0] in "IF" else np.array([1, np.nan, -3])
    same(made, wanted)
    with pytest.raises(numparq.SchemaError, match="nulls"):
        as_in(file, opened([1], pa.int64()), np.dtype("int64"), dtype_backend=backend)


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
def test_strings_become_what_is_asked(dtype: Any, options: dict[str, Any]) -> None:
    made = as_in(opened(["x", None, "y", "x"]), opened(["x"]), dtype, **options)
    assert made.dtype == dtype
    assert pd.isna(made).tolist() == [False, True, False, False]
    assert [made[0], made[2], made[3]] == ["x", "y", "x"]
    assert isinstance(dtype, pd.StringDtype) or made[1] is None


@pytest.mark.parametrize("dtype", ["Int64", "float64"])
def test_categories_become_values(dtype: str) -> None:
    made = as_in(opened([7, None, 7, 2], pa.int32()), opened([7], pa.int64()), pandas_dtype(dtype), categories=["a"])
    assert made.dtype == dtype
    assert pd.Series(made).fillna(0).tolist() == [7, 0, 7, 2]


def test_categories_get_the_dtype_of_the_wider_type() -> None:
    wide = opened([7, 1], pa.int64())
    dtype = array_of(wide, categories=["a"]).dtype
    made = as_in(opened([7, None, 2], pa.int8()), wide, dtype, categories=["a"])
    assert made.categories.tolist() == [7, 2]
    assert made.categories.dtype == "int64"
    column = select_columns(wide.schema, None)[0]
    missing = cast_column(None, None, column, dtype, num_rows=2)
    joined = pd.api.types.union_categoricals([made, missing, array_of(wide, categories=["a"])])
    assert joined.astype("Int64").fillna(0).tolist() == [7, 0, 2, 0, 0, 7, 1]
    words = opened(["x"])
    dtype = array_of(words, categories=["a"]).dtype
    missing = cast_column(None, None, select_columns(words.schema, None)[0], dtype, num_rows=1)
    assert pd.isna(pd.api.types.union_categoricals([array_of(words, categories=["a"]), missing])).tolist() == [
        False,
        True,
    ]


def test_sparse_columns_become_values() -> None:
    file = ParquetFile(numparq.to_parquet(pd.DataFrame({"a": pd.arrays.SparseArray([0.0, 1.5, 0.0])})))
    assert isinstance(array_of(file), pd.arrays.SparseArray)
    same(
        cast_column(array_of(file), *[select_columns(file.schema, None)[0]] * 2, np.dtype("f8"), num_rows=3),
        np.array([0, 1.5, 0]),
    )


def test_moments_of_a_zone_stay_the_same_moments() -> None:
    berlin = opened([UTC, None], pa.timestamp("ms", "Europe/Berlin"))
    made = as_in(berlin, opened([UTC], pa.timestamp("us", "UTC")), pd.DatetimeTZDtype("us", "UTC"))
    assert made.dtype == "datetime64[us, UTC]"
    assert made[0] == pd.Timestamp(UTC)
    assert made[1] is pd.NaT


def test_int96_becomes_timestamps() -> None:
    buffer = io.BytesIO()
    pq.write_table(
        pa.table({"a": pa.array([MOMENT], pa.timestamp("us"))}), buffer, use_deprecated_int96_timestamps=True
    )
    file, wide = ParquetFile(buffer), opened([MOMENT], pa.timestamp("us"))
    schema = DatasetSchema.from_files([file, wide])
    (match,) = schema.map_columns(file, select_columns(schema.schema, None))
    columns = ProjectedColumns(file, projection_of([match.column]), ScanOptions())
    assert columns.schema_only_types([True])[0].dtype == "M8[us]"
    same(as_in(file, wide, np.dtype("M8[us]")), np.array([MOMENT], "M8[us]"))


@pytest.mark.parametrize(
    ("frame", "dtype", "wanted"),
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
def test_dtypes_of_our_own_files_become_others(frame: pd.DataFrame, dtype: str, wanted: Any) -> None:
    file = ParquetFile(numparq.to_parquet(frame))
    wide = file if wanted is None or wanted.dtype.kind == "c" else opened(wanted)
    have, asked = (select_columns(item.schema, None)[0] for item in (file, wide))
    made = cast_column(array_of(file), have, asked, pandas_dtype(dtype), num_rows=len(frame))
    if wanted is None:
        assert made.dtype == dtype
        assert [item.left for item in made] == [0, 2**60]
    else:
        same(made, wanted)


VARIANT = LogicalType("VARIANT")


def test_variants_are_the_same_however_they_are_shredded() -> None:
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
    other = opened([{"metadata": b"", "value": b""}], None, "v")
    with pytest.raises(numparq.SchemaError, match="VARIANT"):
        DatasetSchema.from_files([first, other])


def test_what_is_nothing_but_null_in_a_file_becomes_null_within_others() -> None:
    for wrap, value, wanted in (
        (lambda kind: pa.map_(pa.string(), kind), [("k", None)], [("k", None)]),
        (lambda kind: struct(("x", kind), ("y", pa.int8())), {"x": None, "y": 1}, {"x": None, "y": 1}),
        (lambda kind: pa.list_(struct(("x", kind))), [{"x": None}, None], np.array([{"x": None}, None], object)),
    ):
        file = opened([value], wrap(pa.null()))
        for inner in (pa.string(), pa.list_(pa.int8()), struct(("z", pa.int8()))):
            made = as_in(file, opened(pa.nulls(1, wrap(inner))), np.dtype(object))
            same_value(made[0], wanted)
            arrow = as_in(file, opened(pa.nulls(1, wrap(inner))), pd.ArrowDtype(wrap(inner)), dtype_backend="pyarrow")
            assert arrow.__arrow_array__().to_pylist() == [value]
    numbers = as_in(opened([[None]], pa.list_(pa.null())), opened(pa.nulls(1, pa.list_(pa.int8()))), np.dtype(object))
    same_value(numbers[0], np.array([np.nan]))


# --- what does not fit ------------------------------------------------------------------------------------------------


def test_dates_and_moments_beyond_nanoseconds_are_refused() -> None:
    old = datetime.date(1500, 1, 1)
    nanoseconds = pa.timestamp("ns")
    for values, kind in (([old], pa.date32()), ([datetime.datetime(1500, 1, 1)], pa.timestamp("us"))):
        for wrap, value in (
            (lambda item: item, values),
            (pa.list_, [values]),
            (lambda item: struct(("x", item)), [{"x": values[0]}]),
        ):
            wide = opened(pa.nulls(1, wrap(nanoseconds)))
            with pytest.raises(numparq.SchemaError, match="beyond what 64 bits hold") as raised:
                as_in(opened(value, wrap(kind)), wide, array_of(wide).dtype)
            assert raised.value.where == {"file": "here", "column": "a"}
            arrow = array_of(wide, dtype_backend="pyarrow").dtype
            with pytest.raises(numparq.SchemaError):
                as_in(opened(value, wrap(kind)), wide, arrow, dtype_backend="pyarrow")


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
def test_a_value_that_does_not_fit_is_an_error(values: list, dtype: str) -> None:
    file = opened(values)
    column = select_columns(file.schema, None)[0]
    with pytest.raises(numparq.SchemaError):
        cast_column(array_of(file), column, column, pandas_dtype(dtype), num_rows=1)


def test_a_decimal_keeps_all_its_digits() -> None:
    file, coarse = opened([Decimal("1.25")], pa.decimal128(9, 2)), opened([Decimal("1.2")], pa.decimal128(9, 1))
    have, wanted = (select_columns(item.schema, None)[0] for item in (file, coarse))
    with pytest.raises(numparq.SchemaError, match="more than 1 digits"):
        cast_column(array_of(file), have, wanted, np.dtype(object), num_rows=1)
    same(cast_column(array_of(coarse), wanted, have, np.dtype(object), num_rows=1), np.array([Decimal("1.20")], object))


# --- columns under other names ---------------------------------------------------------------------------------------


def test_fields_by_position_have_the_dataset_s_names() -> None:
    first = opened([{"x": 1, "y": "a"}], struct(("x", pa.int64()), ("y", pa.string())))
    second = opened(
        [{"y": 2, "x": "b", "z": 1.5}], struct(("y", pa.int32()), ("x", pa.string()), ("z", pa.float64())), "b"
    )
    schema = DatasetSchema.from_files([first, second], resolve="position")
    (column,) = select_columns(schema.schema, None)
    for file, wanted in ((first, {"x": 1, "y": "a", "z": None}), (second, {"x": 2, "y": "b", "z": 1.5})):
        (match,) = schema.map_columns(file, [column])
        same_value(read(file, match, column), wanted)


def read(file: ParquetFile, match: Any, column: Any) -> Any:
    """Read the one row of a matched column."""
    columns = ProjectedColumns(file, projection_of([match.column]), ScanOptions())
    targets = columns.schema_only_types([True] * len(columns.leaves))
    rows = FileRowReader(file, columns.leaves, [RowSlice(0, 0, 1, 0)])
    with WorkerPool(1) as crew, closing(rows):
        rows.open(crew, True)
        rows.select(targets, None)
        (array,) = columns.to_arrays(targets, rows.decode(allocate_blocks(targets, 1), range(len(targets))), 1)
    return cast_column(array, match.column, column, np.dtype(object), num_rows=1)[0]
