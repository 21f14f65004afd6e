"""VARIANT columns written from Python values: round trips over row groups, and refused values."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import variant
from numparq.errors import SchemaError
from numparq.format.logical_type import LogicalType
from numparq.format.schema_node import SchemaNode

PARTS = SchemaNode("metadata", repetition=0, physical=6), SchemaNode("value", repetition=0, physical=6)


def schema(repetition=1):
    return {"v": SchemaNode("v", repetition, logical=LogicalType("VARIANT"), children=PARTS)}


def write_variants(values, **options):
    series = values if isinstance(values, pd.Series) else pd.Series(values, dtype=object)
    return numparq.to_parquet(pd.DataFrame({"v": series}), schema=schema(), **options)


ROWS = [
    {"user": "Ada", "at": datetime.date(2025, 3, 1)},
    ["a", 1.5, None],
    7,
    None,
    "text",
    True,
    b"bytes",
    {"metadata": "no bytes", "value": 1},
    decimal.Decimal("1.25"),
    [],
    {},
]


@pytest.mark.parametrize("size", [1, 4, 100])
def test_values_of_any_type(size):
    data = write_variants(ROWS, row_group_size=size)
    assert numparq.read_parquet(data)["v"].tolist() == ROWS
    stored = numparq.read_parquet(data, variants="bytes")["v"].tolist()
    assert stored == [
        None if row is None else dict(zip(("metadata", "value"), variant.encode(row), strict=True)) for row in ROWS
    ]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pd.Series([1, 2]), [1, 2]),
        (pd.Series([1, None], dtype="Int64"), [1, None]),
        (pd.Series(["a", None], dtype="str"), ["a", None]),
        (pd.Series([[1], [2, 3]]), [[1], [2, 3]]),
        ([None, pd.NA, pd.NaT], [None] * 3),
        ([], []),
    ],
)
def test_columns_of_other_dtypes(values, expected):
    assert numparq.read_parquet(write_variants(values))["v"].tolist() == expected


def test_nan_stays_a_float():
    (number,) = numparq.read_parquet(write_variants([float("nan")]))["v"]
    assert np.isnan(number)


def test_encoded_variants_are_written_unchanged():
    parts = [dict(zip(("metadata", "value"), variant.encode(row), strict=True)) for row in ROWS]
    assert numparq.read_parquet(write_variants([*parts, None]))["v"].tolist() == [*ROWS, None]
    pa = pytest.importorskip("pyarrow")
    kind = pd.ArrowDtype(pa.struct([("metadata", pa.binary()), ("value", pa.binary())]))
    assert numparq.read_parquet(write_variants(pd.Series(parts, dtype=kind)))["v"].tolist() == ROWS


UNSUPPORTED = [(object(), "object"), (1j, "complex"), (decimal.Decimal("1e40"), "digits")]


@pytest.mark.parametrize(("value", "words"), UNSUPPORTED)
def test_unsupported_values_are_refused(value, words):
    with pytest.raises(SchemaError, match=rf"row 1 cannot be encoded as VARIANT: .*{words}.*column 'v'"):
        write_variants([1, value])


def test_nulls_in_a_required_column_are_refused():
    with pytest.raises(SchemaError, match="'v"):
        numparq.to_parquet(pd.DataFrame({"v": [1, None]}, dtype=object), schema=schema(0))
