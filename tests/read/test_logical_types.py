"""Logical types: read as by pyarrow, and their limits."""

from __future__ import annotations

import decimal
import io

import pandas as pd
import pytest

from numparq import read_parquet
from numparq.errors import InvalidFileError
from support.compare import assert_frames_equal
from support.files.edited_footers import logical_type, write_annotated_column

pa = pytest.importorskip("pyarrow")
INTS = [1, 300, None, -1]
UNITS = ("MILLIS", "MICROS", "NANOS")
FILES = {
    "ENUM": (pa.binary(), [b"x", None], {"logicalType": logical_type("ENUM"), "converted_type": 4}),
    "ENUM by ConvertedType": (pa.binary(), [b"x", None], {"converted_type": 4}),
    "STRING by ConvertedType": (pa.binary(), [b"x", None], {"converted_type": 0}),
    "JSON": (pa.binary(), [b"{}", None], {"logicalType": logical_type("JSON")}),
    "JSON by ConvertedType": (pa.binary(), [b"{}", None], {"converted_type": 19}),
    "BSON": (pa.binary(), [b"\0", None], {"logicalType": logical_type("BSON")}),
    "INTERVAL": (pa.binary(12), [b"a" * 12, None], {"converted_type": 21}),
    "UUID": (pa.binary(16), [b"a" * 16, None], {"logicalType": logical_type("UUID")}),
    "UUID of 4 bytes": (pa.binary(4), [b"abcd", None], {"logicalType": logical_type("UUID")}),
    "GEOMETRY": (pa.binary(), [b"x", None], {"logicalType": logical_type("GEOMETRY")}),
    "STRING on INT32": (pa.int32(), INTS, {"logicalType": logical_type("STRING")}),
    "UNKNOWN": (pa.int32(), [None, None], {"logicalType": logical_type("UNKNOWN")}),
    "UNKNOWN bytes": (pa.binary(), [None, None], {"logicalType": logical_type("UNKNOWN")}),
    "DATE": (pa.int32(), INTS, {"converted_type": 6}),
    **{
        f"ConvertedType {number}": (pa.int32(), INTS, {"converted_type": number}) for number in (11, 12, 13, 15, 16, 17)
    },
    **{f"ConvertedType {number}": (pa.int64(), [1, None], {"converted_type": number}) for number in (8, 9, 10, 14, 18)},
    "TIME_MILLIS": (pa.int32(), [1, None, 86_399_999], {"converted_type": 7}),
    **{
        f"INTEGER({bits}, {signed})": (
            pa.int32(),
            INTS,
            {"logicalType": logical_type("INTEGER", bitWidth=bits, isSigned=signed)},
        )
        for bits in (8, 16, 32)
        for signed in (True, False)
    },
    **{
        f"TIMESTAMP({unit}, {utc})": (
            pa.int64(),
            [1, None, -(10**12)],
            {"logicalType": logical_type("TIMESTAMP", unit=unit, isAdjustedToUTC=utc)},
        )
        for unit in UNITS
        for utc in (True, False)
    },
    **{
        f"TIME({unit}, {utc})": (
            pa.int32() if unit == "MILLIS" else pa.int64(),
            [1000, None, 86_399_000],
            {"logicalType": logical_type("TIME", unit=unit, isAdjustedToUTC=utc)},
        )
        for unit in UNITS
        for utc in (True, False)
    },
    "DECIMAL on INT32": (pa.int32(), [12345, None, -5], {"converted_type": 5, "precision": 9, "scale": 2}),
    "DECIMAL on INT64": (pa.int64(), [12345, None, -5], {"converted_type": 5, "precision": 18, "scale": 0}),
    "DECIMAL on 4 bytes": (
        pa.binary(4),
        [b"\0\0\1\0", None, b"\xff\xff\xff\xfb"],
        {"logicalType": logical_type("DECIMAL", precision=9, scale=2)},
    ),
    "DECIMAL on 9 bytes": (
        pa.binary(9),
        [b"\1" * 9, None, b"\xff" * 8 + b"\xfb"],
        {"logicalType": logical_type("DECIMAL", precision=20, scale=20)},
    ),
    "DECIMAL on 20 bytes": (
        pa.binary(20),
        [b"\0" * 19 + b"\5", None, b"\xff" * 20],
        {"logicalType": logical_type("DECIMAL", precision=40, scale=2)},
    ),
    "DECIMAL on 32 bytes": (
        pa.binary(32),
        [b"\7" * 32, None],
        {"logicalType": logical_type("DECIMAL", precision=76, scale=1)},
    ),
    "DECIMAL on bytes": (
        pa.binary(),
        [b"\0\1", None, b"\xff", b"\x80\0", b"\0" * 16],
        {"logicalType": logical_type("DECIMAL", precision=5, scale=2)},
    ),
    "DECIMAL on long bytes": (
        pa.binary(),
        [b"\1" * 12, None, b"\xff"],
        {"logicalType": logical_type("DECIMAL", precision=50, scale=2)},
    ),
}


@pytest.mark.parametrize("dtype_backend", [None, "numpy_nullable", "pyarrow"])
@pytest.mark.parametrize("name", FILES)
def test_logical_types_match_pyarrow(name, dtype_backend):
    arrow_type, values, element = FILES[name]
    data = write_annotated_column(pa.array(values, arrow_type), **element)
    options = {"dtype_backend": dtype_backend} if dtype_backend else {}
    assert_frames_equal(read_parquet(data, **options), pd.read_parquet(io.BytesIO(data), engine="pyarrow", **options))


def test_decimal_precision_beyond_physical_type_names_the_column():
    data = write_annotated_column(pa.array([1], pa.int32()), logicalType=logical_type("DECIMAL", precision=10, scale=0))
    with pytest.raises(InvalidFileError, match=r"DECIMAL\(10, 0\) does not fit .*column 'a'"):
        read_parquet(data)


def test_decimals_beyond_arrow_precision():
    data = write_annotated_column(
        pa.array([b"\1" * 40, b"\xff" * 40], pa.binary(40)), logicalType=logical_type("DECIMAL", precision=90, scale=3)
    )
    unscaled = int.from_bytes(b"\1" * 40, "big")
    assert read_parquet(data)["a"].tolist() == [decimal.Decimal(f"{unscaled}E-3"), decimal.Decimal("-0.001")]
    with pytest.raises(NotImplementedError, match="cannot hold decimals of 90 digits"):
        read_parquet(data, dtype_backend="pyarrow")


def test_decimal_without_bytes_is_zero():
    """As pyarrow, polars and duckdb read it."""
    data = write_annotated_column(pa.array([b"\1", b""]), logicalType=logical_type("DECIMAL", precision=5, scale=0))
    for dtype_backend in ("numpy_nullable", "pyarrow"):
        assert [int(value) for value in read_parquet(data, dtype_backend=dtype_backend).iloc[:, 0]] == [1, 0]
