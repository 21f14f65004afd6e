"""Columns of every type shared by Arrow and Parquet: six rows each, with nulls and unusual values."""

from __future__ import annotations

import datetime
import decimal
import math
import uuid

import numpy as np
import pyarrow as pa

D = decimal.Decimal
MOMENT = datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999)
COLUMNS = {
    "nothing": pa.nulls(6),
    "bool": pa.array([True, None, False, True, True, None]),
    **{str(of): pa.array([1, None, 0, 7, 100, 2], of) for of in (pa.int8(), pa.uint8(), pa.int32(), pa.uint64())},
    "extremes": pa.array([-(1 << 63), None, -1, (1 << 63) - 1, 0, 1]),
    "large": pa.array([(1 << 64) - 1, None, 1 << 63, 0, 1, 2], pa.uint64()),
    "f2": pa.array(np.array([1.5, np.nan, -0.0, 0.0, np.inf, 2], np.float16)),
    "f4": pa.array([1.5, float("nan"), -0.0, 0.0, None, -math.inf], pa.float32()),
    "f8": pa.array([0.1, float("nan"), -0.0, 0.0, None, -math.inf], pa.float64()),
    "d32": pa.array([datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31), *[datetime.date(1970, 1, 1)] * 3]),
    "d64": pa.array([datetime.date(1960, 1, 1), None, *[datetime.date(1970, 1, 2)] * 4], pa.date64()),
    **{
        f"t{unit}": pa.array([-1, 0, None, 1, 1_500_000, -(1 << 40)], pa.timestamp(unit)) for unit in ("ms", "us", "ns")
    },
    "zoned": pa.array([MOMENT, None, MOMENT, MOMENT, MOMENT, MOMENT], pa.timestamp("us", "UTC")),
    "time32": pa.array([0, None, 1, 86_399_999, 5, 6], pa.time32("ms")),
    "time64": pa.array([0, None, 1, 86_399_999_999, 5, 6], pa.time64("us")),
    "duration": pa.array([-1, None, 1, 86_399_999_999, 5, 6], pa.duration("us")),
    "dec9": pa.array([D("1.50"), None, D("-0.01"), D("0"), D("99.99"), D("1")], pa.decimal32(4, 2)),
    "dec38": pa.array([D("1.50"), None, D("-0.01"), D(10) ** 35, -(D(10) ** 35), D("1")], pa.decimal128(38, 2)),
    "dec76": pa.array([D("1.50"), None, D("-0.01"), D(10) ** 70, -(D(10) ** 70), D("-1")], pa.decimal256(76, 2)),
    "text": pa.array(["", None, "ä", "a" * 40, "b", "b"]),
    "large text": pa.array(["", None, "ä", "a" * 40, "b", "b"], pa.large_string()),
    "view": pa.array(["", None, "ä", "a" * 40, "b", "b"], pa.string_view()),
    "bytes": pa.array([b"", None, b"\0", b"\0\0", b"b", b"b"]),
    "uuid": pa.array([uuid.UUID(int=n).bytes if n else None for n in range(6)], pa.uuid()),
    "fixed": pa.array([b"abc", None, b"\0\0\0", b"abd", b"abe", b"abc"], pa.binary(3)),
    "words": pa.DictionaryArray.from_arrays(pa.array([0, None, 1, 2, 1, 0], pa.int8()), pa.array(["x", None, "y"])),
    "struct": pa.array(
        [{"a": 1, "b": "x"}, None, {"a": None, "b": None}, {"a": 2}, {"b": "y"}, {"a": 1, "b": "x"}],
        pa.struct({"a": pa.int16(), "b": pa.string()}),
    ),
    "list": pa.array([[1, 2], None, [], [None], [2, 1], [1, 2, None]], pa.list_(pa.int64())),
    "large list": pa.array([[1, 2], None, [], [None], [2, 1], [1, 2, None]], pa.large_list(pa.int64())),
    "fixed list": pa.array([[1, 2], None, [None, None], [2, 1], [0, 0], [1, 2]], pa.list_(pa.int64(), 2)),
    "map": pa.array(
        [[("a", 1)], None, [], [("a", None), ("b", 2)], [("b", 2), ("a", None)], [("a", 1)]],
        pa.map_(pa.string(), pa.int32()),
    ),
    "deep": pa.array(
        [[{"a": [["x"], None]}], None, [], [None], [{"a": None}], [{"a": [[]]}]],
        pa.list_(pa.struct({"a": pa.list_(pa.list_(pa.string()))})),
    ),
}
TABLE = pa.table(COLUMNS)
