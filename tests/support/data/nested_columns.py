"""Nested columns to write: Python objects, Arrow arrays and random values."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from hypothesis import strategies as st


def object_series(values: list) -> np.ndarray:
    return np.fromiter(values, object, len(values))


# --- objects ----------------------------------------------------------------------------------------------------------

NAN = float("nan")
DAY = datetime.date(2020, 1, 2)
MOMENT = datetime.datetime(2020, 1, 2, 3, 4, 5, 6)
ZONED = pd.Timestamp("2020-01-02 03:04", tz="Europe/Paris")
COLUMNS: dict[str, list] = {
    "ints": [[1, 2], None, [], [None, 3]],
    "floats": [[1, 2.5], [None, NAN, pd.NA], NAN, []],
    "texts": [["a", "", "ä€"], None, [None]],
    "bytes": [[b"a", b""], [bytearray(b"xy")]],
    "bools": [[True, None], [False], []],
    "dates": [[DAY, None]],
    "moments": [[MOMENT, pd.NaT], [pd.Timestamp(MOMENT)]],
    "zoned": [[ZONED, None], [ZONED]],
    "times": [[datetime.time(1, 2, 3, 4)], [None]],
    "durations": [[datetime.timedelta(1, 2, 3)], [pd.Timedelta(5, "s")]],
    "decimals": [[decimal.Decimal("1.23"), None], [decimal.Decimal("-100"), decimal.Decimal("NaN")]],
    "nothing": [[], None, [None]],
    "tuples and sets": [(1, 2), [3], {4}],
    "arrays": [np.array([1, 2], "i4"), np.array([3], "i4"), None, np.array([], "i4")],
    "arrays of floats": [np.array([1.0, NAN]), np.array([NAN])],
    "arrays of several dtypes": [np.array([1, 2], "i4"), np.array([1.5])],
    "arrays of small numbers": [np.array([1, 2], "i1"), np.array([3], "i1")],
    "arrays and lists": [np.array([1, 2], "i4"), [5]],
    "arrays of objects": [np.array(["a", None], object)],
    "arrays of texts": [np.array(["a", "bc"])],
    "arrays of moments": [np.array(["2020-01-01", "NaT"], "M8[us]")],
    "arrays of bools": [np.array([True, False])],
    "NumPy's scalars": [[np.int16(1), np.int16(2)], [np.int16(3)]],
    "half floats": [[np.float16(1.5)], [None]],
    "structs": [{"b": 1, "a": "x"}, None, {}, {"c": [1]}, {"a": None}],
    "lists of structs": [[{"a": 1}, None, {"b": 2.5}], [], None],
    "structs of structs": [{"a": {"b": {"c": 1}}}, {"a": {"b": None}}, {"a": None}, None],
    "lists of lists": [[[1], [], None, [None]], None, []],
    "structs of lists": [{"a": [1, 2], "b": [[{"c": 1}]]}, {"a": None}],
    "no rows": [],
    "strange names": [{"": 1, "a.b": 2, "ü": 3}],
}


PAIRS = pa.map_(pa.string(), pa.list_(pa.int64()))
ARROW: dict[str, tuple[list, pa.DataType]] = {
    "list": ([[1, None], None, [], [3], [4, 5, 6]], pa.list_(pa.int32())),
    "large_list": ([["a", None], None, [], ["ä"], []], pa.large_list(pa.large_string())),
    "list of views": ([["a", None], None, [], ["a long string, longer than a view"]], pa.list_(pa.string_view())),
    "fixed_size_list": ([[1, 2], None, [None, 4], [5, 6]], pa.list_(pa.int64(), 2)),
    "lists of fixed sizes in one another": (
        [[[1, 2], [3, 4]], None, [None, [5, None]]],
        pa.list_(pa.list_(pa.int8(), 2), 2),
    ),
    "struct": ([{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}], pa.struct([("a", pa.int16()), ("b", pa.string())])),
    "struct, not null inside": ([{"a": 1}, {"a": 2}, None], pa.struct([pa.field("a", pa.int16(), nullable=False)])),
    "map": ([[("a", [1])], None, [], [("b", None), ("c", [None, 2])]], PAIRS),
    "list of maps": ([[[("a", [1])], None], None, [[], [("b", None)]]], pa.list_(PAIRS)),
    "list of structs": (
        [[{"a": [1]}, None], None, [], [{"a": None}]],
        pa.list_(pa.struct([("a", pa.list_(pa.int64()))])),
    ),
    "not null": ([[1], None, []], pa.list_(pa.field("item", pa.float64(), nullable=False))),
    "booleans": ([[True, None] * 9, None, [False] * 5], pa.list_(pa.bool_())),
    "decimals": ([[decimal.Decimal("1.5"), None], [decimal.Decimal("-2.5")]], pa.list_(pa.decimal128(20, 1))),
    "moments": ([[MOMENT], [None]], pa.list_(pa.timestamp("s"))),
    "nulls": ([[None], [], None], pa.list_(pa.null())),
    "binaries": ([[b"ab", None], [b"cd"]], pa.list_(pa.binary(2))),
    "half floats": ([[np.float16(1)], [None]], pa.list_(pa.float16())),
    "dictionaries": ([["a", None], None, ["b", "a"]], pa.list_(pa.dictionary(pa.int8(), pa.string()))),
    "struct of dictionaries": (
        [{"a": "x"}, None, {"a": None}],
        pa.struct([("a", pa.dictionary(pa.int32(), pa.string()))]),
    ),
}


def scalar_strategies() -> st.SearchStrategy:
    return st.sampled_from(
        [
            st.integers(-(1 << 63), (1 << 63) - 1),
            st.text(max_size=4),
            st.booleans(),
            st.binary(max_size=4),
            st.floats(allow_nan=False),
            st.dates(),
        ]
    )


@st.composite
def nested_strategies(draw: Any, depth: int) -> st.SearchStrategy:
    """Draw a strategy for values of one type, nested at most `depth` deep."""
    kind = draw(st.sampled_from(["scalar", "list", "struct"])) if depth else "scalar"
    if kind == "scalar":
        return st.none() | draw(scalar_strategies())
    if kind == "list":
        return st.none() | st.lists(draw(nested_strategies(depth - 1)), max_size=4)
    fields = {name: draw(nested_strategies(depth - 1)) for name in draw(st.sampled_from(["a", "ab", "abc"]))}
    return st.none() | st.fixed_dictionaries(fields)
