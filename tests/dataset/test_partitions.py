"""Partition columns: inferred and explicit types, and their arrays in a DataFrame, compared with pyarrow and pandas."""

from __future__ import annotations

import datetime
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import col
from numparq.dataset.discover.files import list_files
from numparq.dataset.listing.files import DataFile
from numparq.dataset.partitions.columns import INFERRED, DatasetPartitions
from numparq.dataset.partitions.predicate import PartitionPredicate
from numparq.dataset.partitions.types import parse_partition_type
from numparq.dataset.splits.table import split_table
from numparq.errors import SchemaError
from numparq.expr.bind import bind
from numparq.expr.expression import Constant
from numparq.expr.filters import as_expression

NULL = "__HIVE_DEFAULT_PARTITION__"


def partitions(*raws, type=None, **options) -> DatasetPartitions:
    return DatasetPartitions(["k"], [(raw,) for raw in raws], None if type is None else {"k": type}, **options)


def column(*raws, type=None, dtype_backend="numpy", **options):
    dataset_partitions = partitions(*raws, type=type, **options)
    return dataset_partitions.column("k", range(len(raws)), [1] * len(raws), dtype_backend)


# --- equality with pandas and pyarrow ---------------------------------------------------------------------------------


def write(root, names):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    for number, name in enumerate(names, start=1):
        (root / name).mkdir(parents=True)
        pq.write_table(pa.table({"x": range(number)}), root / name / "a.parquet")


def numparq_frame(root, keys=("k",), dtype_backend="numpy", **options) -> pd.DataFrame:
    listing = list_files(root, **options)
    dataset_partitions = DatasetPartitions.from_listing(listing, **options)
    num_rows = [
        len(pd.read_parquet(file.path, engine="pyarrow", columns=["x"], partitioning=None)) for file in listing.files
    ]
    assert dataset_partitions.keys == tuple(keys)
    return pd.DataFrame(
        {key: dataset_partitions.column(key, range(len(num_rows)), num_rows, dtype_backend) for key in keys}
    )


@pytest.mark.parametrize(
    "raws",
    [
        ["1", "2"],
        ["2", "1", "10"],
        ["+1", "2"],
        ["-1", "2"],
        ["1e5"],
        ["1.5"],
        ["2020-01-01"],
        ["2147483647"],
        ["2147483648", "1"],
        ["-2147483648"],
        ["-2147483649"],
        ["1", "a"],
        ["b", "a"],
        [""],
        ["", "1"],
        ["a%20b", "c"],
        ["%31", "2"],
        ["true"],
        ["True", "False"],
        [" 1"],
        ["1 "],
        ["0x"],
        ["-0x1"],
        ["0x100000000"],
        ["\uff11"],
        ["1_0"],
        ["é", "z"],
        ["-"],
        ["9" * 30],
        ["B", "a", "_", "~"],
    ],
)
def test_inferred_types_equal_pyarrow(tmp_path, raws):
    write(tmp_path, [f"k={raw}" for raw in raws])
    expected = pd.read_parquet(tmp_path, engine="pyarrow")[["k"]]
    pd.testing.assert_frame_equal(numparq_frame(tmp_path), expected)


UNPRINTED = [
    ["01", "02"],
    ["0", "00"],
    ["-0", "0"],
    ["0x10", "0x11"],
    ["0X1F", "7"],
    ["-01", "7"],
    ["0x7FFFFFFF", "0x00000000001"],
    ["00000000000000000000000000001", "1"],
]


@pytest.mark.parametrize("raws", UNPRINTED)
def test_texts_that_are_no_printed_integers_stay_as_written(tmp_path, raws):
    frame = pd.DataFrame({"v": range(len(raws)), "k": raws})
    numparq.to_parquet(frame, tmp_path / "d", partition_cols=["k"])
    found = numparq.read_parquet(tmp_path / "d").sort_values("v")
    assert found["k"].tolist() == raws
    assert found["k"].dtype == pd.CategoricalDtype(pd.Index(sorted(raws), dtype="str"))
    with numparq.Dataset(tmp_path / "d") as dataset:
        for at, raw in enumerate(raws):
            assert dataset.read(filters=[("k", "=", raw)])["v"].tolist() == [at]
            assert "1 file" in dataset.plan(filters=col("k") == raw).explain()
        table = split_table(tmp_path / "d", filters=col("k") == raws[0])
        assert [table.frame(split)["k"].tolist() for split in table.splits] == [[raws[0]]]
    numparq.to_parquet(frame, tmp_path / "d", partition_cols=["k"], existing_data_behavior="delete_matching")
    numparq.to_parquet(frame[:1], tmp_path / "d", partition_cols=["k"], append=True)
    assert numparq.read_parquet(tmp_path / "d").groupby("k", observed=True)["v"].count()[raws].tolist() == [2, 1]
    given = numparq.read_parquet(tmp_path / "d", ["k"], partitioning={"k": "int64"})["k"]
    assert set(given) == {int(raw, 0) if "x" in raw.lower() else int(raw) for raw in raws}


def test_numbers_beside_text_partitions_are_an_error_with_advice(tmp_path):
    write(tmp_path, ["k=01", "k=02"])
    with pytest.raises(
        SchemaError, match=r"it is not a string; its values are text, and partitioning=\{'k': 'int64'\}"
    ):
        numparq.read_parquet(tmp_path, filters=col("k") == 1)
    assert len(numparq.read_parquet(tmp_path, filters=col("k") == 1, partitioning={"k": "int64"})) == 1
    assert len(numparq.read_parquet(tmp_path, filters=[("k", ">", "01")])) == 2
    write(tmp_path, ["k=x"])
    with pytest.raises(SchemaError, match="it is not a string") as raised:
        numparq.read_parquet(tmp_path, filters=col("k") == 1)
    assert "partitioning" not in str(raised.value)


@pytest.mark.parametrize("dtype_backend", ["numpy_nullable", "pyarrow"])
@pytest.mark.parametrize("raws", [["2", "1"], ["b", "a"]])
def test_partition_column_dtype_backends(tmp_path, raws, dtype_backend):
    write(tmp_path, [f"k={raw}" for raw in raws])
    expected = pd.read_parquet(tmp_path, engine="pyarrow", dtype_backend=dtype_backend)[["k"]]
    pd.testing.assert_frame_equal(numparq_frame(tmp_path, dtype_backend=dtype_backend), expected)


def test_null_partitions_with_pyarrow_backend(tmp_path):
    """pandas reads null partitions with this backend only; `isna` misses them there, as nulls are a category."""
    write(tmp_path, ["k=1", f"k={NULL}"])
    expected = pd.read_parquet(tmp_path, engine="pyarrow", dtype_backend="pyarrow").k
    found = numparq_frame(tmp_path, dtype_backend="pyarrow").k
    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()
    assert found.isna().tolist() == [False, True, True]


def test_two_keys_and_category_order(tmp_path):
    write(tmp_path, ["k=1/j=a", "k=1/j=b", "k=0/j=b", "k=0/j=c d"])
    expected = pd.read_parquet(tmp_path, engine="pyarrow")[["k", "j"]]
    pd.testing.assert_frame_equal(numparq_frame(tmp_path, ("k", "j")), expected)
    assert list(expected.j.cat.categories) == ["b", "c d", "a"]


def test_keys_by_position(tmp_path):
    write(tmp_path, ["2024/1", "2025/x"])
    expected = pd.read_parquet(tmp_path, engine="pyarrow", partitioning=["y", "m"])[["y", "m"]]
    pd.testing.assert_frame_equal(numparq_frame(tmp_path, ("y", "m"), partitioning=["y", "m"]), expected)
    assert expected.dtypes.astype(str).tolist() == ["int32", "str"]


EXPLICIT_TYPES = [
    ("int8", ["1", "-3"]),
    ("int64", ["1", "9223372036854775807"]),
    ("uint64", ["18446744073709551615", "0"]),
    ("float32", ["1.5", "1e3"]),
    ("float64", ["1.5", "-inf"]),
    ("string", ["1", "b"]),
    ("bool", ["true", "0"]),
    ("date32", ["2020-01-01", "1969-12-31"]),
    ("timestamp[us]", ["2020-01-01", "2020-01-01T10%3A00%3A00Z"]),
    ("timestamp[ns]", ["2020-01-01 10%3A00%3A00.123456789", "1969-12-31"]),
]


@pytest.mark.parametrize("dtype_backend", ["numpy", "numpy_nullable", "pyarrow"])
@pytest.mark.parametrize(("kind", "raws"), EXPLICIT_TYPES, ids=lambda item: item if isinstance(item, str) else "")
def test_explicit_types_equal_pyarrow(tmp_path, kind, raws, dtype_backend):
    pa, ds = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.dataset")
    write(tmp_path, [f"k={raw}" for raw in raws])
    arrow_type = pa.type_for_alias(kind)
    flavor = ds.partitioning(pa.schema([("k", arrow_type)]), flavor="hive")
    options = {} if dtype_backend == "numpy" else {"dtype_backend": dtype_backend}
    expected = pd.read_parquet(tmp_path, engine="pyarrow", partitioning=flavor, **options)[["k"]]
    for partitioning in ({"k": kind}, {"k": arrow_type}, flavor):
        pd.testing.assert_frame_equal(
            numparq_frame(tmp_path, partitioning=partitioning, dtype_backend=dtype_backend), expected
        )


# --- differences from pandas ------------------------------------------------------------------------------------------


def test_null_partition():
    found = column("a", None, "b", None)
    assert found.dtype == column("a", "b").dtype
    assert found.codes.tolist() == [0, -1, 1, -1]
    found = column("2", None, "1")
    assert found.categories.tolist() == [2, 1]
    assert found.codes.tolist() == [0, -1, 1]
    only = column(None)
    assert only.codes.tolist() == [-1]
    assert len(only.categories) == 0
    assert partitions("1", None).has_nulls("k")
    assert not partitions("1").has_nulls("k")


def test_equal_numbers_are_one_category():
    found = column("-0", "0", "00", "0x0", "1", type="int32", categories=["k"])
    assert found.categories.tolist() == [0, 1]
    assert found.codes.tolist() == [0, 0, 0, 0, 1]


def test_overflowing_hexadecimal_numbers_are_strings():
    assert column("0xFFFFFFFF", "1").categories.tolist() == ["0xFFFFFFFF", "1"]


@pytest.mark.parametrize("dtype_backend", ["numpy", "numpy_nullable"])
@pytest.mark.parametrize(
    ("kind", "raws", "dtype", "expected"),
    [
        ("int32", ["1", None], "Int32", [1, pd.NA]),
        ("uint8", ["255", ""], "UInt8", [255, pd.NA]),
        (bool, ["TRUE", None], "boolean", [True, pd.NA]),
        ("date", ["2020-02-29", None], "object", [datetime.date(2020, 2, 29), None]),
        ("datetime64[ms]", ["2020-02-29", None], "datetime64[ms]", [pd.Timestamp("2020-02-29"), pd.NaT]),
        ("decimal(5, 2)", ["-1.5", None, "100"], "object", [Decimal("-1.50"), None, Decimal("100.00")]),
        ("decimal(30, 1)", ["-1.5", None], "object", [Decimal("-1.5"), None]),
    ],
)
def test_explicit_types_with_nulls(kind, raws, dtype, expected, dtype_backend):
    found = pd.Series(column(*raws, type=kind, dtype_backend=dtype_backend))
    assert str(found.dtype) == dtype
    pd.testing.assert_series_equal(found, pd.Series(expected, dtype=found.dtype))
    assert [value is None for value in found] == [value is None for value in expected]


def test_floats_and_strings_with_nulls():
    assert np.isnan(column("1.5", None, type=float)[1])
    assert str(column("a", None, type=str).dtype) == "str"
    assert column("", None, type=str)[0] == ""
    assert str(column("a", None, type=str, dtype_backend="numpy_nullable").dtype) == "string"
    assert str(column("1", None, type="float32", dtype_backend="numpy_nullable").dtype) == "Float32"


def test_partition_timestamps_with_time_zones():
    zone = "datetime64[us, Europe/Berlin]"
    found = pd.Series(column("2020-01-01 00:00:00Z", "2020-07-01T10:00+02:00", None, type=zone))
    assert str(found.dtype) == zone
    assert found[1].isoformat() == "2020-07-01T10:00:00+02:00"
    assert found[2] is pd.NaT
    assert partitions("2020-01-01Z", type=zone).value("k", "2020-01-01Z").hour == 1
    with pytest.raises(SchemaError, match="is not a valid timestamp"):
        column("2020-01-01", type=zone)
    assert column("2020-01-01T10:00:00+02:00", type="timestamp")[0] == np.datetime64("2020-01-01T08:00:00")


def test_categories_on_request():
    assert column("2", "1", type="int64", categories=["k", "x"]).categories.dtype == np.int64
    assert column("2", "1", type="category").dtype == column("2", "1").dtype
    assert isinstance(column("2", "1", type=INFERRED), np.ndarray)
    assert column("b", "a", "b", type=INFERRED, categories={"k"}).codes.tolist() == [0, 1, 0]
    found = column("1.5", "nan", "2.5", "NaN", type=float, categories=["k"])
    assert found.categories.tolist() == [1.5, 2.5]
    assert found.codes.tolist() == [0, -1, 1, -1]
    pa = pytest.importorskip("pyarrow")
    assert column("2", "1", type=pa.dictionary(pa.int8(), pa.int64())).categories.dtype == np.int64


def test_partition_values_are_selected_and_repeated():
    dataset_partitions = DatasetPartitions(["k", "j"], [("a", "1"), ("b", "2"), (None, "3")], {"j": "int16"})
    found = dataset_partitions.column("k", [2, 0], [1, 3])
    assert found.categories.tolist() == ["a", "b"]
    assert found.codes.tolist() == [-1, 0, 0, 0]
    assert dataset_partitions.column("j", [2, 0, 1], [2, 0, 1]).tolist() == [3, 3, 2]
    assert dataset_partitions.column("j", [], []).dtype == np.int16
    assert len(dataset_partitions.column("k", [], [])) == 0
    empty = DatasetPartitions([], [])
    assert empty.keys == ()


# --- values and leaves ------------------------------------------------------------------------------------------------

VALUES = [
    ("int32", "5", 5),
    ("int8", "-5", -5),
    ("uint64", "18446744073709551615", 2**64 - 1),
    ("float64", "1.5", 1.5),
    ("float32", "0.1", float(np.float32(0.1))),
    ("bool", "false", False),
    (str, "", ""),
    (str, "é", "é"),
    ("date", "0001-01-01", datetime.date(1, 1, 1)),
    ("date", "9999-12-31", datetime.date(9999, 12, 31)),
    ("timestamp[ns]", "2020-01-01 00:00:00.000000001", pd.Timestamp("2020-01-01 00:00:00.000000001")),
    ("timestamp[s]", "1960-01-01 00:00:01", pd.Timestamp("1960-01-01 00:00:01")),
    ("decimal(9, 3)", "-1.25", Decimal("-1.250")),
    ("decimal(18, 0)", "7", Decimal(7)),
    ("decimal(38, 10)", "-0.5", Decimal("-0.5000000000")),
    ("int32", "0x10", 16),
]


@pytest.mark.parametrize(("kind", "raw", "value"), VALUES)
def test_partition_values_and_predicates(kind, raw, value):
    dataset_partitions = partitions(raw, None, raw, type=kind)
    found = dataset_partitions.value("k", raw)
    assert found == value
    assert type(found) is type(value)
    assert dataset_partitions.value("k", None) is None
    leaf = dataset_partitions.leaf("k")
    assert leaf.index == -1
    assert leaf.name == "k"
    assert not leaf.is_nested
    schema = SimpleNamespace(positions={"k": 0}, flat_leaf=lambda position: leaf, columns=["k"])
    for expression, expected in [
        (col("k") == value, [True, False, True]),
        (~(col("k") == value), [False] * 3),
        (col("k").is_null(), [False, True, False]),
        (col("k").isin([value]), [True, False, True]),
        (col("k") >= value, [True, False, True]),
        (col("k") < value, [False] * 3),
    ]:
        bound = bind(as_expression(expression), schema)
        if isinstance(bound, Constant):  # nothing is less than the least value
            assert [bound.value] * 3 == expected
            continue
        assert PartitionPredicate(bound, 0, dataset_partitions).evaluate([raw, None, raw]).tolist() == expected
        assert PartitionPredicate(bound, 0, dataset_partitions).evaluate([None, raw]).tolist() == expected[1::-1]


def test_leaves_of_partition_keys_have_negative_indices():
    dataset_partitions = DatasetPartitions(["a", "b"], [("1", "x")])
    assert (dataset_partitions.leaf("a").index, dataset_partitions.leaf("b").index) == (-1, -2)
    assert dataset_partitions.leaf("b").logical.kind == "STRING"


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        ("int8", "128"),
        ("int8", "x"),
        ("uint8", "-1"),
        ("int32", "+1"),
        ("int64", "9" * 19),
        ("int64", "1" * 5000),
        ("int32", " 1"),
        ("int32", "1_0"),
        ("int8", "0xFFF"),
        ("float64", "x"),
        ("float64", "1_0"),
        ("float64", " 1"),
        ("float32", "1e300"),
        ("bool", "yes"),
        ("bool", "2"),
        ("date", "2020-1-1"),
        ("date", "2021-02-29"),
        ("date", "20200101"),
        ("date", "0000-01-01"),
        ("timestamp[ms]", "2020-01-01 00:00:00.0001"),
        ("timestamp[us]", "now"),
        ("timestamp[us]", "2020-01-01 25:00"),
        ("timestamp[ns]", "9999-01-01"),
        ("timestamp[us]", "2020-01-01Z9"),
        ("timestamp[us]", "2020-01-01+99:00"),
        ("decimal(3, 1)", "100"),
        ("decimal(3, 1)", "0.55"),
        ("decimal(3, 1)", "1e1"),
        ("decimal(3, 1)", "nan"),
        ("decimal(38, 0)", "9" * 5000),
    ],
)
def test_invalid_partition_values_raise(kind, raw):
    dataset_partitions = partitions("", raw, type=kind, files=[DataFile(name, name) for name in ("one", "two")])
    with pytest.raises(SchemaError, match="is no") as caught:
        dataset_partitions.column("k", [0], [1])
    assert caught.value.where == {"column": "k", "file": "two"}
    with pytest.raises(SchemaError, match="is no"):
        partitions(type=kind).value("k", raw)


@pytest.mark.parametrize(
    "wrong", ["int7", "complex", "binary", "decimal(0, 0)", "decimal(39, 1)", "decimal(3, 4)", object(), 5]
)
def test_invalid_partition_types_raise(wrong):
    with pytest.raises((TypeError, ValueError), match="is not a type"):
        parse_partition_type(wrong)


def test_types_of_unknown_partition_columns_raise():
    with pytest.raises(ValueError, match="partitioning has a type for 'j', but the files are partitioned by 'k'"):
        DatasetPartitions(["k"], [("1",)], {"j": "int8"})


def test_single_file_and_empty_dataset_have_no_partitions(tmp_path):
    path = tmp_path / "k=1" / "a"
    path.parent.mkdir()
    path.write_bytes(b"PAR1")
    for partitioning in ("hive", {"k": "int8"}, ["k"], [("k", "int8")], None):
        assert DatasetPartitions.from_listing(list_files(path, partitioning=partitioning), partitioning).keys == ()
    path.rename(tmp_path / "_common_metadata")
    assert DatasetPartitions.from_listing(list_files(tmp_path, partitioning={"k": "int8"}), {"k": "int8"}).keys == ()


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        (int, "int64"),
        ("int", "int64"),
        (np.int16, "int16"),
        (np.dtype("u2"), "uint16"),
        (pd.Int32Dtype(), "int32"),
        (float, "float64"),
        ("double", "float64"),
        (np.float32, "float32"),
        (str, "str"),
        ("object", "str"),
        (np.dtype("U"), "str"),
        (pd.StringDtype(), "str"),
        (bool, "bool"),
        (pd.BooleanDtype(), "bool"),
        (datetime.date, "date"),
        (datetime.datetime, "timestamp[us]"),
        (np.dtype("M8[ns]"), "timestamp[ns]"),
        ("timestamp[s]", "timestamp[ms]"),
        (pd.DatetimeTZDtype("us", "UTC"), "timestamp[us, UTC]"),
        ("decimal(4,2)", "decimal(4, 2)"),
    ],
)
def test_partition_type_aliases(spec, name):
    if isinstance(spec, type) and issubclass(spec, np.generic):
        spec = np.dtype(spec)
    assert parse_partition_type(spec)[0].name == name


def test_partition_types_from_pyarrow():
    pa = pytest.importorskip("pyarrow")
    types = {
        pa.int8(): "int8",
        pa.float32(): "float32",
        pa.float64(): "float64",
        pa.string(): "str",
        pa.large_string(): "str",
        pa.bool_(): "bool",
        pa.date32(): "date",
        pa.timestamp("us"): "timestamp[us]",
        pa.decimal128(9, 2): "decimal(9, 2)",
        pa.timestamp("ms", "UTC"): "timestamp[ms, UTC]",
    }
    for arrow_type, name in types.items():
        assert parse_partition_type(arrow_type)[0].name == name
        assert (
            parse_partition_type(pd.ArrowDtype(arrow_type))[0].name == ("float64" if name == "float32" else name)
            or name == "float32"
        )
