"""Frames written and read back where pyarrow is not installed."""

from __future__ import annotations

import datetime
import decimal
import importlib.util
import uuid

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.arrow_schema import ArrowSchema
from numparq.leaves import Node
from numparq.schema import INT32, OPTIONAL
from numparq.shred import arrow_schema, take_apart

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("pyarrow") is not None,
    reason="pyarrow is installed",
)

COLUMNS = {
    "text": ["a", None, "é中"],
    "string": pd.array(["a", None, "b"], dtype="string"),
    "bytes": [b"a", b"", None],
    "int8": np.array([1, -2, 3], "i1"),
    "uint64": np.array([1, 2, 2**64 - 1], "u8"),
    "Int16": pd.array([1, None, 3], dtype="Int16"),
    "boolean": pd.array([True, None, False], dtype="boolean"),
    "float": [0.5, np.nan, -0.0],
    "float16": np.array([0.5, np.nan, 2], "f2"),
    "date": [datetime.date(2020, 2, 29), None, datetime.date(1, 1, 1)],
    "time": [datetime.time(1, 2, 3, 4), None, datetime.time(0)],
    "moment": np.array(["2020", "NaT", "1969"], "M8[ns]"),
    "zoned": pd.date_range("2020", periods=3, tz="Europe/Paris"),
    "offset": pd.date_range("2020", periods=3, tz=datetime.timezone(datetime.timedelta(hours=5, minutes=30))),
    "duration": pd.timedelta_range("1s", periods=3),
    "decimal": [decimal.Decimal("1.50"), None, decimal.Decimal("-12345.60")],
    "uuid": [uuid.UUID(int=1), None, uuid.UUID(int=2)],
    "category": pd.Categorical(["u", None, "v"], categories=["v", "w", "u"], ordered=True),
    "period": pd.period_range("2020", periods=3, freq="M"),
    "nothing": pd.Series([None, None, None], dtype=object),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_round_trip(name: str) -> None:
    frame = pd.DataFrame({"a": COLUMNS[name]})
    pd.testing.assert_frame_equal(numparq.read_parquet(numparq.to_parquet(frame)), frame)


def test_all_at_once_with_an_index() -> None:
    frame = pd.DataFrame(COLUMNS).set_index(["text", "int8"])
    frame.attrs = {"unit": "m"}
    got = numparq.read_parquet(numparq.to_parquet(frame))
    pd.testing.assert_frame_equal(got, frame)
    assert got.attrs == frame.attrs


def test_the_arrow_schema_is_written() -> None:
    apart = take_apart(pd.DataFrame({"c": COLUMNS["category"], "d": COLUMNS["duration"]}))
    schema = ArrowSchema(arrow_schema(apart.arrow_fields, apart.key_value_metadata), 2)
    found = [schema.type_of(place) for place in range(2)]
    assert found[0] is not None and found[0].dictionary is not None and found[0].dictionary.ordered
    assert found[1] is not None and (found[1].kind, found[1].unit) == ("duration", "us")


def test_a_schema_of_nodes() -> None:
    data = numparq.to_parquet(pd.DataFrame({"a": [1, 2]}), schema={"a": Node("a", OPTIONAL, INT32)})
    assert numparq.read_parquet(data)["a"].dtype == "int32"
