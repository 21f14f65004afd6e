"""Schema-only types: the output type of each leaf column, whatever its values."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq.format.arrow_type import ArrowType
from numparq.format.key_values.pandas_dtypes import DtypeSpec
from numparq.format.logical_type import LogicalType
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.kernels.enums import BOOLEAN, BYTE_ARRAY, DOUBLE, INT32, INT64, INT96
from numparq.kernels.tables import INT96_US
from numparq.scan.file_reader import FileReader
from numparq.scan.options import ScanOptions
from numparq.scan.projected_columns import project_columns
from numparq.scan.scan_file import ScanFile
from numparq.to_pandas.frame import allocate_blocks
from numparq.types import choose
from numparq.types.pandas_roundtrip import roundtrip_output_type
from numparq.types.schema_only import schema_only_type
from numparq.util.worker_pool import WorkerPool


def leaf(physical, logical=None, optional=True):
    return Leaf(0, 0, ("a",), physical, None, logical, int(optional), 0)


def integer(bits, signed=True):
    return LogicalType("INTEGER", bit_width=bits, signed=signed)


INTEGERS = [
    (INT32, None, "Int32", "int32"),
    (INT64, None, "Int64", "int64"),
    (INT32, integer(8), "Int8", "int8"),
    (INT32, integer(16, False), "UInt16", "uint16"),
    (INT64, integer(64, False), "UInt64", "uint64"),
    (BOOLEAN, None, "boolean", "bool"),
]


@pytest.mark.parametrize("has_nulls", [False, True])
@pytest.mark.parametrize(("physical", "logical", "nullable", "plain"), INTEGERS)
def test_integers_and_booleans(physical, logical, nullable, plain, has_nulls):
    chosen = choose.choose_output_type(leaf(physical, logical), has_nulls=has_nulls)
    target = schema_only_type(chosen, may_be_null=True)
    assert (target.array_kind, target.nulls, str(target.pandas_dtype)) == ("masked", "mask", nullable)
    target = schema_only_type(chosen, may_be_null=False)
    assert (target.array_kind, target.nulls, target.dtype) == ("block", "refuse", np.dtype(plain))
    assert target.shares_block


@pytest.mark.parametrize("backend", choose.DTYPE_BACKENDS)
@pytest.mark.parametrize("physical", [BOOLEAN, INT32, INT64, INT96, DOUBLE, BYTE_ARRAY])
def test_no_fallbacks(physical, backend):
    for may_be_null in (True, False):
        target = schema_only_type(
            choose.choose_output_type(leaf(physical), dtype_backend=backend), may_be_null=may_be_null
        )
        assert target.on_null is None
        assert target.on_inexact is None


@pytest.mark.parametrize("backend", choose.DTYPE_BACKENDS)
def test_int96_is_microseconds(backend):
    target = schema_only_type(choose.choose_output_type(leaf(INT96), dtype_backend=backend), may_be_null=True)
    assert target.conversion == INT96_US
    assert target.type.unit == "us"
    nested = schema_only_type(choose.choose_nested_output_type(leaf(INT96)), may_be_null=True)
    assert nested.nested
    assert nested.conversion == INT96_US
    assert nested.dtype == "M8[us]"


def test_value_independent_types_are_unchanged():
    for physical, logical in [(DOUBLE, None), (BYTE_ARRAY, LogicalType("STRING")), (INT32, LogicalType("DATE"))]:
        chosen = choose.choose_output_type(leaf(physical, logical))
        assert schema_only_type(chosen, may_be_null=True) == chosen
    nested = choose.choose_nested_output_type(leaf(INT64))
    assert schema_only_type(nested, may_be_null=True) == nested


@pytest.mark.parametrize(
    ("physical", "pandas_dtype", "expected"),
    [
        (INT32, pd.Int64Dtype(), "Int64"),
        (INT64, pd.Int32Dtype(), "Int64"),
        (INT32, pd.Float64Dtype(), "Float64"),
        (INT64, pd.Float64Dtype(), "Int64"),
        (DOUBLE, pd.Int64Dtype(), "Float64"),
        (DOUBLE, pd.Float32Dtype(), "Float64"),
    ],
)
def test_nullable_dtypes_of_another_width(physical, pandas_dtype, expected):
    target = schema_only_type(choose.choose_output_type(leaf(physical), pandas_dtype=pandas_dtype), may_be_null=True)
    assert str(target.pandas_dtype) == expected


def test_unit_of_zoned_timestamps():
    moments = leaf(INT64, LogicalType("TIMESTAMP", unit="MICROS", utc=True))
    chosen = choose.choose_output_type(moments, timezone="Europe/Berlin")
    assert chosen.unit == "ns"
    assert schema_only_type(chosen, may_be_null=True) == replace(chosen, unit="")
    coarse = replace(chosen, unit="ms")
    assert schema_only_type(coarse, may_be_null=True) == coarse


def test_pyarrow_backend_ignores_nullable_dtypes():
    chosen = choose.choose_output_type(leaf(INT64), pandas_dtype=pd.Int64Dtype(), dtype_backend="pyarrow")
    assert schema_only_type(chosen, may_be_null=True).pandas_dtype is None


@pytest.mark.parametrize(
    ("dtype", "may_be_null", "is_cast"),
    [
        (DtypeSpec(np.dtype(object)), True, True),
        (DtypeSpec(pd.SparseDtype("int64", 0)), False, True),
        (DtypeSpec(pd.SparseDtype("int64", 0)), True, False),
        (DtypeSpec(categories=DtypeSpec(np.dtype("int64"))), True, True),
    ],
)
def test_pandas_roundtrip_dtypes(dtype, may_be_null, is_cast):
    chosen = roundtrip_output_type(leaf(INT64), None, dtype, lambda: None)
    target = schema_only_type(chosen, may_be_null=may_be_null)
    assert (target.cast_to == dtype) == is_cast
    assert not target.shares_block


def test_seconds_are_read_in_the_stored_unit():
    moments = leaf(INT64, LogicalType("TIMESTAMP", unit="MILLIS", utc=False))
    chosen = roundtrip_output_type(
        moments, ArrowType("timestamp", unit="s"), DtypeSpec(np.dtype("M8[s]")), lambda: None
    )
    assert schema_only_type(chosen, may_be_null=True).cast_to is None


def read_schema_only(table, may_be_null, columns=None):
    """Read a table with schema-only output types."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    with contextlib.closing(OpenFile(buffer)) as file, WorkerPool(1) as pool:
        found = project_columns(file, columns, ScanOptions())
        reader = FileReader([ScanFile(file, 0, columns=found.identity)])
        targets = found.schema_only_types([may_be_null] * len(found.leaves))
        reader.open(targets, pool)
        layout = allocate_blocks(targets, file.num_rows)
        return found.to_frame(layout, reader.decode(layout, range(len(targets))))


def test_required_columns_have_masks_too():
    """Another file of the dataset may have nulls, so the mask marks every row as valid."""
    schema = pa.schema([pa.field("a", pa.int64(), False), pa.field("b", pa.bool_(), False), pa.field("c", pa.int8())])
    frame = read_schema_only(pa.table({"a": [1, 2, 3], "b": [True, False, True], "c": [1, None, 3]}, schema), True)
    expected = pd.DataFrame({"a": [1, 2, 3], "b": [True, False, True], "c": [1, None, 3]})
    pd.testing.assert_frame_equal(frame, expected.astype({"a": "Int64", "b": "boolean", "c": "Int8"}))


def test_struct_fields():
    table = pa.table({"s": [{"a": 1, "b": 1.5, "c": "x"}, {"a": 2, "b": None, "c": None}]})
    frame = read_schema_only(table, True, ["s.a", "s.b", "s.c"])
    assert frame.dtypes.astype(str).tolist() == ["Int64", "float64", "str"]
    assert frame["a"].tolist() == [1, 2]
    assert (
        str(read_schema_only(table, False, ["s.a"]).dtypes["a"]) == "Int64"
    )  # null counts of fields of structs are not trusted
    schema = pa.schema([pa.field("s", pa.struct([pa.field("a", pa.int64(), False)]), False)])
    assert str(read_schema_only(pa.table({"s": [{"a": 1}]}, schema), False, ["s.a"]).dtypes["a"]) == "int64"


def test_nulls_denied_by_statistics_raise():
    with pytest.raises(numparq.InvalidFileError):
        read_schema_only(pa.table({"a": [1, None]}), False)
