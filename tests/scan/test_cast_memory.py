"""Leaves that a file casts into a frame's memory are as in a file of the merged type."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import col
from numparq.format.logical_type import LogicalType
from numparq.format.physical_type import BYTE_ARRAY, INT64
from numparq.format.schema import OPTIONAL, REQUIRED
from numparq.format.schema_node import SchemaNode
from support.files.page_damage import damage_body, data_pages

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

Paths = list[Path]


def write(folder: Path, arrays: list[Any], **options: Any) -> Paths:
    """Write a file of each array as column a, beside row numbers as column n."""
    paths = [folder / f"{number}.parquet" for number in range(len(arrays))]
    for path, array in zip(paths, arrays, strict=True):
        pq.write_table(pa.table({"a": array, "n": np.arange(len(array))}), path, **options)
    return paths


def column_of(path: Path | Paths, **options: Any) -> Any:
    series = numparq.read_parquet(path, **options)["a"]
    return series.to_numpy() if isinstance(series.dtype, np.dtype) else series.array


def check(folder: Path, narrow: Any, wide: Any, **options: Any) -> None:
    """Compare reads of a narrow file beside a wide one, in both orders, with a read of one wide file."""
    nothing = wide[:0]
    for arrays, whole in (([narrow, nothing], wide), ([wide, narrow], pa.concat_arrays([wide, wide]))):
        paths = write(folder, arrays)
        pq.write_table(pa.table({"a": whole, "n": np.arange(len(whole))}), folder / "whole")
        assert_same(column_of(paths, **options), column_of(folder / "whole", **options))
        batches = pd.concat([*numparq.Dataset(paths).iter_batches(batch_rows=3, **options)], ignore_index=True)
        with numparq.ParquetFile(folder / "whole") as file:
            expected = pd.concat([*file.iter_batches(**options)], ignore_index=True)
        assert batches["a"].isna().tolist() == expected["a"].isna().tolist()


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


def values_of(values: list, kind: Any, wide_type: Any) -> tuple[list, list]:
    """Return the values as pyarrow takes them for the narrow and for the wide type."""
    if kind == pa.float16():
        return [np.float16(value) for value in values], values
    if pa.types.is_decimal(wide_type):
        return values, [Decimal(value) for value in values]
    if pa.types.is_date(kind):
        return values, [datetime.datetime(day.year, day.month, day.day) for day in values]
    return values, values


@pytest.mark.parametrize("nulls", [False, True], ids=["whole", "nulls"])
@pytest.mark.parametrize("backend", ["numpy", "numpy_nullable", "pyarrow"])
@pytest.mark.parametrize(("values", "kind", "wide_type"), SCALARS, ids=str)
def test_flat_leaves(tmp_path: Path, values: list, kind: Any, wide_type: Any, backend: str, nulls: bool) -> None:
    more = [None, None] if nulls else []
    narrow, wide = values_of(values, kind, wide_type)
    check(tmp_path, pa.array(narrow + more, kind), pa.array(wide + more, wide_type), dtype_backend=backend)


@pytest.mark.quick_cases(10)
@pytest.mark.parametrize("backend", ["numpy", "pyarrow"])
@pytest.mark.parametrize(("values", "kind", "wide_type"), SCALARS, ids=str)
def test_nested_leaves(tmp_path: Path, values: list, kind: Any, wide_type: Any, backend: str) -> None:
    """Cast within lists, structs and maps, and nestings of these."""
    narrow, wide = values_of(values, kind, wide_type)
    for wrap, fill in WRAPPED:
        check(
            tmp_path, pa.array(fill(narrow), wrap(kind)), pa.array(fill(wide), wrap(wide_type)), dtype_backend=backend
        )


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


DECIMALS = [
    ([Decimal("1.25"), Decimal("-0.01"), None], pa.decimal128(9, 2), pa.decimal128(12, 5)),
    ([Decimal("1.25"), Decimal("-9999999.99")], pa.decimal128(9, 2), pa.decimal128(18, 2)),
    ([Decimal("9" * 16 + ".99"), None], pa.decimal128(18, 2), pa.decimal128(38, 10)),
    ([Decimal(10**37), Decimal(1 - 10**37)], pa.decimal128(38, 0), pa.decimal256(60, 20)),
    ([2**64 - 1, 0], pa.uint64(), pa.decimal128(25, 4)),
]


@pytest.mark.parametrize("as_integers", [(True, True), (True, False), (False, True), (False, False)], ids=str)
@pytest.mark.parametrize("backend", ["numpy", "pyarrow"])
@pytest.mark.parametrize(("values", "kind", "wide_type"), DECIMALS, ids=str)
def test_decimals_of_all_physical_types(
    tmp_path: Path, values: list, kind: Any, wide_type: Any, backend: str, as_integers: tuple[bool, bool]
) -> None:
    wide = pa.array([None if value is None else Decimal(value) for value in values], wide_type)
    paths = [tmp_path / "0.parquet", tmp_path / "1.parquet"]
    for path, array, is_integer in zip(paths, (pa.array(values, kind), wide), as_integers, strict=True):
        pq.write_table(pa.table({"a": array}), path, store_decimal_as_integer=is_integer)
    pq.write_table(pa.table({"a": pa.concat_arrays([wide, wide])}), tmp_path / "whole")
    options = {"dtype_backend": backend}
    assert_same(column_of(paths, **options), column_of(tmp_path / "whole", **options))


# --- nulls, categories, selections ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("values", "dtype"), [([2**60 + 1, None], "Int64"), ([7, None], "float64"), ([7, 8], "int64")])
def test_nulls_decide_the_dtype_as_in_one_file(tmp_path: Path, values: list, dtype: str) -> None:
    paths = write(tmp_path, [pa.array([1, 2], pa.int32()), pa.array(values, pa.int64())])
    assert numparq.read_parquet(paths)["a"].dtype == dtype
    (kept,) = {str(batch["a"].dtype) for batch in numparq.Dataset(paths).iter_batches()}
    assert kept == ("int64" if None not in values else "Int64")


@pytest.mark.parametrize(
    ("narrow", "wide", "categories"),
    [
        (pa.array([7, None, 2], pa.int8()), pa.array([2, 9], pa.int64()), [7, 2, 9]),
        (pa.array([7, None], pa.int8()), pa.array([Decimal("7.00"), Decimal("0.25")]), [7, Decimal("0.25")]),
        (pa.array([b"ab", b"cd"], pa.binary(2)), pa.array([b"cd", b"", None]), [b"ab", b"cd", b""]),
        (pa.array([DAY], pa.date32()), pa.array([MOMENT], pa.timestamp("us")), [pd.Timestamp(DAY), MOMENT]),
    ],
    ids=["integers", "decimals", "bytes", "dates"],
)
def test_categories_are_of_the_merged_type(tmp_path: Path, narrow: Any, wide: Any, categories: list) -> None:
    found = column_of(write(tmp_path, [narrow, wide]), categories=["a"])
    assert found.categories.tolist() == categories
    values = [*narrow.to_pylist(), *wide.to_pylist()]
    assert pd.isna(found).tolist() == [value is None for value in values]


@pytest.mark.parametrize(
    "options",
    [{"row_range": (2, 9)}, {"filters": col("n") > 1}, {"filters": col("a") < 9}, {"nrows": 5}, {"on_error": "skip"}],
    ids=str,
)
def test_selected_rows(tmp_path: Path, options: dict[str, Any]) -> None:
    values = [1, 5, None, 4, 3, 2]
    kinds = [pa.int8(), pa.int64(), pa.int16()]
    paths = write(tmp_path, [pa.array(values, kind) for kind in kinds], row_group_size=4)
    wide = tmp_path / "wide"
    wide.mkdir()
    expected = numparq.read_parquet(write(wide, [pa.array(values, pa.int64())] * 3, row_group_size=4), **options)
    found = numparq.read_parquet(paths, **options)
    pd.testing.assert_frame_equal(found, expected, check_dtype=options.get("filters") is None)


def test_int96_is_cast_to_timestamps(tmp_path: Path) -> None:
    first = write(tmp_path, [pa.array([MOMENT], pa.timestamp("us"))], use_deprecated_int96_timestamps=True)
    pq.write_table(pa.table({"a": pa.array([None, MOMENT], pa.timestamp("us")), "n": [1, 2]}), tmp_path / "other")
    assert_same(column_of([*first, tmp_path / "other"]), np.array([MOMENT, None, MOMENT], "M8[us]"))


def test_time_zones_keep_instants(tmp_path: Path) -> None:
    kinds = [pa.timestamp("ms", "Europe/Berlin"), pa.timestamp("us", "UTC")]
    found = column_of(write(tmp_path, [pa.array([UTC, None], kind) for kind in kinds]))
    assert found.dtype == "datetime64[us, UTC]"
    assert [found[0], found[2]] == [pd.Timestamp(UTC)] * 2


@pytest.mark.parametrize(
    ("arrays", "dtype"),
    [
        ([np.array([1 + 2j], "c8"), np.array([1 + 2j], "c16")], "complex128"),
        ([pd.Categorical([1, 2]), np.array([2**40])], "int64"),
        ([pd.arrays.SparseArray([0.0, 1.5]), np.array([1], "i2")], "float64"),
        ([pd.array([1, None], "int8[pyarrow]"), pd.array([1], "int64[pyarrow]")], "float64"),
    ],
    ids=["complex", "Categorical", "sparse", "pyarrow"],
)
def test_dtypes_of_numparq_files(tmp_path: Path, arrays: list, dtype: str) -> None:
    frames = [pd.DataFrame({"a": array}) for array in arrays]
    for number, frame in enumerate(frames):
        numparq.to_parquet(frame, tmp_path / f"{number}.parquet")
    found = numparq.read_parquet(sorted(tmp_path.glob("*.parquet")))["a"]
    assert found.dtype == dtype
    assert found.dropna().tolist() == [value for array in arrays for value in array if not pd.isna(value)]


# --- structs, lists, VARIANTs -----------------------------------------------------------------------------------------


SHAPES = {
    "fields": (
        pa.array(
            [{"s": {"x": 1, "gone": "a"}, "b": 1}, None, {"s": None, "b": None}],
            struct(("s", struct(("x", pa.int32()), ("gone", pa.string()))), ("b", pa.int8())),
        ),
        struct(
            ("b", pa.int64()),
            ("c", pa.string()),
            ("s", struct(("y", pa.list_(pa.int8())), ("x", pa.int64()), ("gone", pa.string()))),
        ),
        [{"b": 1, "c": None, "s": {"y": None, "x": 1, "gone": "a"}}, None, {"b": None, "c": None, "s": None}],
    ),
    "list of another field": (
        pa.array([[{"y": [3, 4]}, {"y": []}, None], None, []], pa.list_(struct(("y", pa.list_(pa.int16()))))),
        pa.list_(struct(("x", pa.int8()))),
        [[{"x": None}, {"x": None}, None], None, []],
    ),
    "struct of a list": (
        pa.array([{"l": [1, 2]}, {"l": []}, {"l": None}, None], struct(("l", pa.list_(pa.int8())))),
        struct(("x", pa.string())),
        [{"x": None}, {"x": None}, {"x": None}, None],
    ),
    "null elements": (
        pa.array([[None], None, []], pa.list_(pa.null())),
        pa.list_(struct(("x", pa.list_(pa.string())))),
        [[None], None, []],
    ),
    "elements not null": (
        pa.array([[1, 2], None], pa.list_(pa.field("item", pa.int8(), False))),
        pa.list_(pa.int64()),
        [[1, 2], None],
    ),
    "null values of a map": (
        pa.array([[("k", None)], None], pa.map_(pa.string(), pa.null())),
        pa.map_(pa.string(), struct(("z", pa.int8()))),
        [[("k", None)], None],
    ),
}


@pytest.mark.parametrize("backend", ["numpy", "pyarrow"])
@pytest.mark.parametrize(("stored", "kind", "values"), SHAPES.values(), ids=SHAPES)
def test_fields_that_a_file_lacks_are_null(tmp_path: Path, stored: Any, kind: Any, values: list, backend: str) -> None:
    """The projected columns are those of another file with all fields, in its order."""
    paths = write(tmp_path, [pa.array([], kind), stored])
    pq.write_table(pa.table({"a": pa.array(values, kind)}), tmp_path / "whole")
    schema = pa.schema([("a", kind)])
    found = column_of(paths, schema=schema, dtype_backend=backend)
    assert_same(found, column_of(tmp_path / "whole", dtype_backend=backend))


def test_part_of_a_struct(tmp_path: Path) -> None:
    kinds = [struct(("s", struct(("x", kind))), ("t", pa.int8())) for kind in (pa.int8(), pa.int32())]
    arrays = [
        pa.array([{"s": {"x": 1}, "t": 2}, None], kinds[0]),
        pa.array([{"s": {"x": 2**20}}, {"s": None}], kinds[1]),
    ]
    paths = write(tmp_path, [*arrays, pa.array([{"t": 1}], struct(("t", pa.int8())))])
    found = numparq.read_parquet(paths, columns=["a.s.x"], dtype_backend="numpy_nullable").iloc[:, 0]
    assert found.tolist() == [1, pd.NA, 2**20, pd.NA, pd.NA]
    assert numparq.read_parquet(paths, columns=["a.s"]).iloc[:, 0].tolist() == [
        {"x": 1},
        None,
        {"x": 2**20},
        None,
        None,
    ]


def test_fields_by_position_take_dataset_names(tmp_path: Path) -> None:
    kinds = [
        struct(("x", pa.int64()), ("y", pa.string())),
        struct(("y", pa.int32()), ("x", pa.string()), ("z", pa.int8())),
    ]
    paths = write(
        tmp_path, [pa.array([{"x": 1, "y": "a"}], kinds[0]), pa.array([{"y": 2, "x": "b", "z": 3}], kinds[1])]
    )
    found = column_of(paths, resolve="position")
    assert found.tolist() == [{"x": 1, "y": "a", "z": None}, {"x": 2, "y": "b", "z": 3}]


def variant_files(folder: Path, count: int = 5) -> Paths:
    """Write a file of plain VARIANTs, and one of VARIANTs shredded as integers."""
    parts = SchemaNode("metadata", REQUIRED, BYTE_ARRAY), SchemaNode("value", OPTIONAL, BYTE_ARRAY)
    typed = SchemaNode("typed_value", OPTIONAL, INT64)
    nodes = [SchemaNode("a", OPTIONAL, None, 0, LogicalType("VARIANT"), some) for some in (parts, (*parts, typed))]
    shredded = [{"metadata": b"\x01\0\0", "value": b"\x0c\x07", "typed_value": None}, None]
    shredded += [{"metadata": b"\x01\0\0", "value": None, "typed_value": number} for number in range(count)]
    for number, (values, node) in enumerate(zip(([{"k": [1]}, None], shredded), nodes, strict=True)):
        frame = pd.DataFrame({"a": values, "n": np.arange(len(values))})
        numparq.to_parquet(frame, folder / f"{number}.parquet", schema={"a": node}, max_rows_per_page=100)
    return [folder / "0.parquet", folder / "1.parquet"]


@pytest.mark.parametrize("order", [1, -1])
def test_shredded_and_plain_variants(tmp_path: Path, order: int) -> None:
    plain, shredded = [{"k": [1]}, None], [7, None, 0, 1, 2, 3, 4]
    paths = variant_files(tmp_path)[::order]
    assert column_of(paths).tolist() == (plain + shredded if order == 1 else shredded + plain)
    as_bytes = column_of(paths, variants="bytes").tolist()
    assert [None if value is None else numparq.variant.decode(**value) for value in as_bytes] == column_of(
        paths
    ).tolist()


# --- values that do not fit, damage -----------------------------------------------------------------------------------

OLD = datetime.datetime(1500, 1, 1)
UNFIT = [
    ([OLD.date(), DAY], pa.date32()),
    ([OLD, MOMENT], pa.timestamp("us")),
]


@pytest.mark.parametrize("backend", ["numpy", "pyarrow"])
@pytest.mark.parametrize("wrap", [lambda kind: kind, pa.list_, lambda kind: pa.struct([("x", kind)])], ids=range(3))
@pytest.mark.parametrize(("values", "kind"), UNFIT, ids=str)
def test_values_beyond_nanoseconds_raise(tmp_path: Path, values: list, kind: Any, wrap: Any, backend: str) -> None:
    nested = {"list": lambda value: [value], "struct": lambda value: {"x": value}}
    put = nested.get(str(wrap(kind)).partition("<")[0], lambda value: value)
    wide = pa.array([put(MOMENT)], wrap(pa.timestamp("ns")))
    paths = write(tmp_path, [wide, pa.array([put(value) for value in values], wrap(kind))])
    for read in (column_of, lambda paths, **more: list(numparq.Dataset(paths).iter_batches(**more))):
        with pytest.raises(numparq.SchemaError, match="is beyond what 64 bits hold in ns") as raised:
            read(paths, dtype_backend=backend)
        assert raised.value.where == {"file": str(paths[1]), "column": "a"}
    for options in ({"filters": col("n") == 1}, {"row_range": (2, 3)}, {"filters": col("n") == 1, "on_error": "skip"}):
        assert column_of(paths[1:] + paths[:1] if "row_range" in options else paths, **options) is not None


def test_times_that_are_none_raise(tmp_path: Path) -> None:
    paths = write(tmp_path, [pa.array([1], pa.time32("ms")), pa.array([0, 1], pa.int64()).cast(pa.time64("ns"))])
    with pytest.raises(numparq.SchemaError, match=r"exceeds the range of datetime\.time") as raised:
        column_of(paths)
    assert raised.value.where == {"file": str(paths[1]), "column": "a"}


DAMAGED = [
    (pa.array(range(3000), pa.int32()), pa.array([1], pa.int64())),
    (pa.array([OLD.date(), *[DAY] * 2999], pa.date32()), pa.array([MOMENT], pa.timestamp("ms"))),
    (pa.array([str(number).zfill(4).encode() for number in range(3000)], pa.binary(4)), pa.array([b"x"])),
    (pa.array([[number, None] for number in range(3000)], pa.list_(pa.int32())), pa.array([[1]], pa.list_(pa.int64()))),
    (
        pa.array([Decimal(n) for n in range(3000)], pa.decimal128(20, 0)),
        pa.array([Decimal("1.5")], pa.decimal128(22, 1)),
    ),
]


@pytest.mark.parametrize(("stored", "other"), DAMAGED, ids=["integers", "dates", "bytes", "lists", "decimals"])
def test_skipped_damage_loses_the_same_rows(tmp_path: Path, stored: Any, other: Any) -> None:
    data = damaged_file(tmp_path / "damaged", stored)
    paths = write(tmp_path, [stored, other])
    whole = numparq.read_parquet(paths)
    paths[0].write_bytes(data)
    alone = numparq.read_parquet(paths[0], on_error="skip")["n"].tolist()
    assert 0 in alone
    assert 2999 in alone
    assert len(alone) < 3000
    found = numparq.read_parquet(paths, on_error="skip")
    assert found["n"].tolist() == [*alone, 0]
    expected = whole.iloc[[*alone, len(whole) - 1]]
    assert_same(np.array(found["a"], object), np.array(expected["a"], object))


def damaged_file(path: Path, array: Any, **options: Any) -> bytes:
    """Return a file with the middle page of column a damaged in its first row group."""
    options |= {"use_dictionary": False, "data_page_size": 1000, "write_page_checksum": True, "write_page_index": True}
    pq.write_table(pa.table({"a": array, "n": np.arange(len(array))}), path, **options)
    data, name = path.read_bytes(), "a.list.element" if pa.types.is_list(array.type) else "a"
    pages = data_pages(data, 0, name)
    return damage_body(data, pages[len(pages) // 2])


def test_unfit_values_count_in_rows_that_are_kept(tmp_path: Path) -> None:
    """The row of a value in a later row group follows damaged ones."""
    stored = pa.array([[DAY, DAY]] * 3999 + [[OLD.date()]], pa.list_(pa.date32()))
    paths = write(tmp_path, [stored, pa.array([[MOMENT]], pa.list_(pa.timestamp("ns")))])
    paths[0].write_bytes(damaged_file(tmp_path / "damaged", stored, row_group_size=3000))
    found = numparq.read_parquet(paths, on_error="skip", filters=col("n") < 3999)
    assert len(found) < 4000
    assert found["n"].tolist()[-2:] == [3998, 0]
    with pytest.raises(numparq.SchemaError, match="is beyond what 64 bits hold in ns"):
        numparq.read_parquet(paths, on_error="skip", filters=col("n") > 3998)


def test_damaged_variants(tmp_path: Path) -> None:
    paths = variant_files(tmp_path, 398)
    whole = numparq.read_parquet(paths)
    data = paths[1].read_bytes()
    for leaf, page in (("a.typed_value", 1), ("a.metadata", 2)):
        data = damage_body(data, data_pages(data, 0, leaf)[page])
    paths[1].write_bytes(data)
    found = numparq.read_parquet(paths, on_error="skip")
    expected = whole.iloc[[*range(102), *range(302, 402)]]
    assert found.to_dict("list") == expected.to_dict("list")
