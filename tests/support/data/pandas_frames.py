"""Every type that pyarrow writes, and every pandas index, label and dtype, for end-to-end tests."""

from __future__ import annotations

import datetime
import decimal
import uuid

import numpy as np
import pandas as pd
import pyarrow as pa

DAY = datetime.date(2020, 2, 29)
MOMENT = datetime.datetime(2021, 3, 4, 5, 6, 7, 891011)

VALUES = {
    "bool": (pa.bool_(), [True, False, True]),
    **{
        f"{sign}int{bits}": (getattr(pa, f"{sign}int{bits}")(), [1, 2, 100])
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
    "int8-low": (pa.int8(), [-128, 127, 0]),
    "uint32-high": (pa.uint32(), [2**32 - 1, 0, 7]),
    "float16": (pa.float16(), [1.5, -2.0, 0.0]),
    "float32": (pa.float32(), [1.5, float("nan"), -0.0]),
    "float64": (pa.float64(), [1.5, float("nan"), float("inf")]),
    "string": (pa.string(), ["a", "", "grün 中"]),
    "large_string": (pa.large_string(), ["a", "", "grün"]),
    "binary": (pa.binary(), [b"a", b"", b"\x00\xff"]),
    "large_binary": (pa.large_binary(), [b"a", b"", b"\x00\xff"]),
    "fixed_binary": (pa.binary(3), [b"abc", b"\x00\x00\x00", b"xyz"]),
    "date32": (pa.date32(), [DAY, datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]),
    "date64": (pa.date64(), [DAY, datetime.date(1969, 12, 31), DAY]),
    "time32-s": (pa.time32("s"), [datetime.time(1, 2, 3), datetime.time(0), datetime.time(23, 59, 59)]),
    "time32-ms": (pa.time32("ms"), [datetime.time(1, 2, 3, 4000), datetime.time(0), datetime.time(1)]),
    "time64-us": (pa.time64("us"), [datetime.time(1, 2, 3, 4), datetime.time(0), datetime.time(1)]),
    "time64-ns": (pa.time64("ns"), [datetime.time(1, 2, 3, 4), datetime.time(0), datetime.time(1)]),
    **{
        f"timestamp-{unit}": (pa.timestamp(unit), [MOMENT.replace(microsecond=0), None, MOMENT.replace(microsecond=0)])
        for unit in ("s", "ms", "us", "ns")
    },
    **{
        f"timestamp-{unit}-{zone}": (pa.timestamp(unit, zone), [MOMENT.replace(microsecond=0)] * 3)
        for unit in ("s", "ms", "us", "ns")
        for zone in ("UTC", "Europe/Paris", "+05:30", "+00:00")
    },
    **{
        f"duration-{unit}": (pa.duration(unit), [datetime.timedelta(days=3), datetime.timedelta(0)] * 2)
        for unit in ("s", "ms", "us", "ns")
    },
    **{
        f"decimal{bits}": (
            getattr(pa, f"decimal{bits}")(7, 2),
            [decimal.Decimal("1.10"), decimal.Decimal("-99999.99"), decimal.Decimal(0)],
        )
        for bits in (32, 64, 128, 256)
    },
    "decimal-wide": (
        pa.decimal128(38, 10),
        [
            decimal.Decimal("1234567890123456789012345678.0123456789"),
            decimal.Decimal("-1234567890123456789012345678.0123456789"),
        ],
    ),
    "decimal-widest": (pa.decimal256(76, 0), [decimal.Decimal(10**75), decimal.Decimal(-(10**75)), decimal.Decimal(1)]),
    "decimal-no-scale": (pa.decimal128(5, 0), [decimal.Decimal("12"), decimal.Decimal("-3")]),
    "uuid": (pa.uuid(), [uuid.UUID(int=5).bytes, uuid.UUID(int=2**127 + 1).bytes]),
    "json": (pa.json_(), ["{}", "[1]", '"ü"']),
    "json-large": (pa.json_(pa.large_string()), ["{}", "[1]"]),
    "bool8": (pa.bool8(), [1, 0, 1]),
    "opaque": (pa.opaque(pa.int32(), "x", "y"), [1, 2]),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), ["b", "a", "b"]),
    "dictionary-int8": (pa.dictionary(pa.int8(), pa.large_string()), ["b", "a", "b"]),
    "dictionary-ordered": (pa.dictionary(pa.int16(), pa.string(), ordered=True), ["b", "a", "b"]),
    "dictionary-bytes": (pa.dictionary(pa.int32(), pa.binary()), [b"b", b"a", b"b"]),
    "dictionary-int": (pa.dictionary(pa.int32(), pa.int64()), [5, 3, 5]),
    "dictionary-float": (pa.dictionary(pa.int32(), pa.float32()), [5.0, 3.0, 5.0]),
}


def array_of(arrow_type, values):
    if isinstance(arrow_type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(arrow_type, pa.array(values, arrow_type.storage_type))
    if isinstance(arrow_type, pa.DictionaryType):
        plain = pa.array(values, arrow_type.value_type).dictionary_encode()
        return pa.DictionaryArray.from_arrays(
            plain.indices.cast(arrow_type.index_type), plain.dictionary, ordered=arrow_type.ordered
        )
    return pa.array(values, arrow_type)


NULLS = {
    "none": lambda values: values,
    "some": lambda values: [*values, None, *values[:1]],
    "all": lambda values: [None, None],
    "empty": lambda values: [],
}


BASE = pd.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"]})

INDEXES = {
    "range": pd.RangeIndex(3),
    "range-named": pd.RangeIndex(3, 12, 3, name="q"),
    "range-backwards": pd.RangeIndex(3, 0, -1),
    "int": pd.Index([7, 7, 9]),
    "int-named": pd.Index([7, 7, 9], name="n"),
    "int8": pd.Index([7, 7, 9], dtype="int8"),
    "float": pd.Index([0.5, np.nan, 1.0]),
    "string": pd.Index(["p", None, "q"], name="s"),
    "object": pd.Index(["p", None, "q"], dtype=object),
    "bool": pd.Index([True, False, True]),
    "bool-null": pd.Index([True, None, False], dtype=object),
    "bytes": pd.Index([b"a", b"b", None], dtype=object),
    "date": pd.Index([DAY, DAY, None], dtype=object),
    "time": pd.Index([datetime.time(1), datetime.time(2), datetime.time(3)], dtype=object),
    "decimal": pd.Index([decimal.Decimal("1.5")] * 3, dtype=object),
    "datetime": pd.date_range("2020", periods=3, freq="D", name="when"),
    "datetime-ns": pd.date_range("2020", periods=3, freq="D").as_unit("ns"),
    "datetime-tz": pd.date_range("2020", periods=3, freq="h", tz="America/New_York"),
    "timedelta": pd.timedelta_range(0, periods=3),
    "period": pd.period_range("2020", periods=3, freq="M"),
    "categorical": pd.CategoricalIndex(["u", "v", "u"], ordered=True),
    "categorical-int": pd.CategoricalIndex([2, 1, 2]),
    "Int64": pd.Index([1, None, 3], dtype="Int64"),
    "Int64-full": pd.Index([1, 2, 3], dtype="Int64"),
    "boolean": pd.Index([True, None, False], dtype="boolean"),
    "string-dtype": pd.Index(["p", None, "q"], dtype="string"),
    "multi": pd.MultiIndex.from_product([[1], ["a", "b", "c"]], names=["x", None]),
    "multi-same-names": pd.MultiIndex.from_product([[1], ["a", "b", "c"]], names=["x", "x"]),
    "multi-wide": pd.MultiIndex.from_arrays(
        [pd.date_range("2020", periods=3, tz="UTC"), [DAY] * 3, pd.Categorical(["u", "v", "u"]), [1.5, np.nan, 2.0]]
    ),
    "named-as-a-column": pd.Index([4, 5, 7], name="a"),
    "named-by-a-number": pd.Index([4, 5, 7], name=7),
    "named-level-0": pd.Index([4, 5, 7], name="__index_level_0__"),
}


LABELS = {
    "int": [0, 1],
    "float": [0.5, 1.5],
    "string": ["a", "b"],
    "object": pd.Index(["a", "b"], dtype=object),
    "named": pd.Index(["a", "b"], name="label"),
    "mixed": pd.Index(["a", 1], dtype=object),
    "none": pd.Index(["a", None], dtype=object),
    "datetime": pd.date_range("2020", periods=2),
    "datetime-ns": pd.date_range("2020", periods=2).as_unit("ns"),
    "datetime-tz": pd.date_range("2020", periods=2, tz="Europe/Paris", name="t"),
    "bytes": pd.Index([b"a", b"b"], dtype=object),
    "decimal": pd.Index([decimal.Decimal("1.0"), decimal.Decimal("2.0")], dtype=object),
    "Int64": pd.Index([1, 2], dtype="Int64"),
    "int8": pd.Index([1, 2], dtype="int8"),
    "string-dtype": pd.Index(["a", "b"], dtype="string"),
    "multi": pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["n", None]),
    "multi-strings": pd.MultiIndex.from_tuples([("a", "x'y"), ("b", 'q"')]),
    "multi-datetime": pd.MultiIndex.from_product([["a"], pd.date_range("2020", periods=2)]),
    "multi-float": pd.MultiIndex.from_product([[0.5, 1.5], ["u"]]),
}


EXTENSIONS = {
    **{
        dtype: pd.array([1, None, 3], dtype=dtype)
        for dtype in ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64")
    },
    "Int64-large": pd.array([2**62 + 1, None, 3], dtype="Int64"),
    "Int64-full": pd.array([1, 2, 3], dtype="Int64"),
    "boolean": pd.array([True, None, False], dtype="boolean"),
    "string": pd.array(["a", None, "b"], dtype="string"),
    "string-python": pd.array(["a", None, "b"], dtype="string[python]"),
    "str": pd.array(["a", None, "b"], dtype="str"),
    "object": pd.array(["a", None, "b"], dtype=object),
    "period": pd.array(pd.PeriodIndex(["2020Q1", None, "2020Q3"], freq="Q")),
    "int64-arrow": pd.array([1, None, 3], dtype="int64[pyarrow]"),
    "int8-arrow": pd.array([1, None, 3], dtype="int8[pyarrow]"),
    "string-arrow": pd.array(["1", None, "3"], dtype=pd.ArrowDtype(pa.string())),
    "timestamp-arrow": pd.array([1, None, 3], dtype="timestamp[us][pyarrow]"),
    "date-arrow": pd.array([DAY, None, DAY], dtype="date32[pyarrow]"),
    "decimal-arrow": pd.array([decimal.Decimal("1.5"), None, None], dtype=pd.ArrowDtype(pa.decimal128(4, 2))),
    "bool-arrow": pd.array([True, None, False], dtype="bool[pyarrow]"),
    "binary-arrow": pd.array([b"1", None, b"3"], dtype=pd.ArrowDtype(pa.binary())),
    "category": pd.Categorical(["b", None, "a"]),
    "category-int": pd.Categorical([3, None, 1]),
    "datetime-tz": pd.array(pd.DatetimeIndex(["2020", None, "2021"], tz="Asia/Tokyo")),
    "datetime-ns": pd.array(pd.DatetimeIndex(["2020", None, "2021"]).as_unit("ns")),
    "timedelta": pd.array(pd.TimedeltaIndex(["1D", None, "2s"])),
    "date": pd.array([DAY, None, DAY], dtype=object),
    "bool-null": pd.array([True, None, False], dtype=object),
    "bytes": pd.array([b"1", None, b"3"], dtype=object),
    "empty": pd.array([None, None, None], dtype=object),
}
