"""VARIANT columns written of Python values: what comes back, by rows and row groups, and what is refused."""

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


def written(values, **options):
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
    data = written(ROWS, row_group_size=size)
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
    assert numparq.read_parquet(written(values))["v"].tolist() == expected


def test_nan_is_a_number_among_objects():
    (number,) = numparq.read_parquet(written([float("nan")]))["v"]
    assert np.isnan(number)


def test_what_is_encoded_already_stays():
    parts = [dict(zip(("metadata", "value"), variant.encode(row), strict=True)) for row in ROWS]
    assert numparq.read_parquet(written([*parts, None]))["v"].tolist() == [*ROWS, None]
    pa = pytest.importorskip("pyarrow")
    kind = pd.ArrowDtype(pa.struct([("metadata", pa.binary()), ("value", pa.binary())]))
    assert numparq.read_parquet(written(pd.Series(parts, dtype=kind)))["v"].tolist() == ROWS


NO_VARIANTS = [(object(), "object"), (1j, "complex"), (decimal.Decimal("1e40"), "digits")]


@pytest.mark.parametrize(("value", "words"), NO_VARIANTS)
def test_no_variants(value, words):
    with pytest.raises(SchemaError, match=rf"row 1 cannot be encoded as VARIANT: .*{words}.*column 'v'"):
        written([1, value])


def test_a_required_column_has_no_nulls():
    with pytest.raises(SchemaError, match="'v"):
        numparq.to_parquet(pd.DataFrame({"v": [1, None]}, dtype=object), schema=schema(0))
