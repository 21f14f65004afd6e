"""Columns of every pandas dtype, and labels of every kind; pyarrow dtypes if it is installed."""

from __future__ import annotations

import datetime
import decimal
import importlib.util
import uuid
import zoneinfo

import dateutil.tz
import numpy as np
import pandas as pd

HAS_ARROW = importlib.util.find_spec("pyarrow") is not None
DAY = datetime.date(2020, 2, 29)
DAYS = [DAY, None, datetime.date(1, 1, 1)]
INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
UNITS = ("s", "ms", "us", "ns")


def objects(*values):
    out = np.empty(len(values), object)
    out[:] = values
    return out


def moments(unit, zone=None):
    index = pd.DatetimeIndex(np.array(["2020-07-01T12:34:56", "NaT", "1999-01-01"], f"M8[{unit}]"))
    return (index if zone is None else index.tz_localize(zone)).array


def numpy_columns():
    for name in ("bool", "float16", "float32", "float64", *INTEGERS):
        yield name, np.array([1, 0, 1], name)
    yield "float64-nan", np.array([1.5, np.nan, -0.0])
    yield "uint64-high", np.array([2**64 - 1, 0, 5], "u8")
    for unit in UNITS:
        yield f"datetime64[{unit}]", moments(unit)
        yield f"timedelta64[{unit}]", np.array([1, "NaT", -3], f"m8[{unit}]")


def object_columns():
    yield "object-str", objects("a", None, "grün")
    yield "object-bytes", objects(b"a", None, b"\x00\xff")
    yield "object-bool", objects(True, None, False)
    yield "object-int", objects(2**60 + 1, None, 2)
    yield "object-int-full", objects(1, 5, 2)
    yield "object-float", objects(1.5, None, 2.0)
    yield "object-date", objects(*DAYS)
    yield "object-time", objects(datetime.time(1, 2, 3), None, datetime.time(0))
    yield "object-datetime", objects(datetime.datetime(2020, 1, 1, 1), None, datetime.datetime(1, 1, 1))
    yield "object-timedelta", objects(datetime.timedelta(1), None, datetime.timedelta(2))
    yield "object-decimal", objects(decimal.Decimal("1.10"), None, decimal.Decimal("2.00"))
    yield "object-uuid", objects(uuid.UUID(int=1), None, uuid.UUID(int=2))
    yield "object-period", objects(pd.Period("2020-01", "M"), None, pd.Period("2020-02", "M"))
    yield "object-null", objects(None, None, None)


ZONES = {
    "UTC": datetime.UTC,
    "zoneinfo": zoneinfo.ZoneInfo("Europe/Paris"),
    "east": datetime.timezone(datetime.timedelta(hours=5, minutes=30)),
    "west": datetime.timezone(-datetime.timedelta(hours=3, minutes=30)),
    "offset-of-seconds": datetime.timezone(datetime.timedelta(hours=5, seconds=30)),
    "dateutil": dateutil.tz.gettz("Europe/Paris"),
    "dateutil-offset": dateutil.tz.tzoffset(None, 3600),
    "dateutil-utc": dateutil.tz.tzutc(),
    "dateutil-local": dateutil.tz.tzlocal(),
}


def extension_columns():
    for unit in UNITS:
        yield f"zoned-{unit}", moments(unit, "Europe/Paris")
    for name, zone in ZONES.items():
        yield f"zone-{name}", moments("us", zone)
    for name in ("boolean", "Float32", "Float64", *(name.replace("i", "I").replace("u", "U") for name in INTEGERS)):
        yield name, pd.array([1, None, 0], name)
    with_nan = pd.array([1.0, None, 0.0], "Float64")
    with_nan._data[2] = np.nan
    yield "Float64-nan", with_nan
    for name, na_value in (("str", np.nan), ("string", pd.NA)):
        for storage in ("python", "pyarrow") if HAS_ARROW else ("python",):
            yield f"{name}-{storage}", pd.array(["a", None, ""], pd.StringDtype(storage, na_value=na_value))
    for freq in ("M", "D", "Q-NOV", "h", "s", "ns", "Y-MAR", "W-SUN", "5D", "15min"):
        yield f"period-{freq}", pd.array([pd.Period("2020-01-01", freq), None, pd.Period("2021-01-01", freq)])


def sparse_columns():
    make = pd.arrays.SparseArray
    for fill_value in (0.0, np.nan, 1.5):
        yield f"sparse-float64-{fill_value}", make([1.5, 0.0, np.nan], fill_value=fill_value)
    yield "sparse-float32", make(np.array([1, 0, 5], "f4"), fill_value=0)
    yield "sparse-int64", make(np.array([1, 0, 5]))
    yield "sparse-int64-1", make(np.array([1, 0, 5]), fill_value=1)
    yield "sparse-int8", make(np.array([1, 0, 5], "i1"), fill_value=np.int8(5))
    yield "sparse-uint64", make(np.array([1, 0, 2**63 - 1], "u8"), fill_value=0)
    yield "sparse-bool", make(np.array([True, False, True]))
    yield "sparse-datetime", make(np.array(["2020-01-01", "NaT", "1999-01-01"], "M8[ns]"))
    yield "sparse-seconds", make(np.array(["2020-01-01", "NaT", "1999-01-01"], "M8[s]"))
    yield "sparse-timedelta", make(np.array([1, "NaT", 2], "m8[ns]"))
    yield "sparse-object", make(objects("a", None, "b"), fill_value=None)
    yield "sparse-object-a", make(objects("a", "c", "b"), fill_value="a")


def arrow_columns():
    import pyarrow as pa

    moment, span, time = datetime.datetime(2020, 1, 1), datetime.timedelta(seconds=5), datetime.time(1, 2, 3)
    values = {getattr(pa, f"{sign}int{bits}")(): [1, 2] for sign in ("", "u") for bits in (8, 16, 32, 64)}
    values |= {pa.bool_(): [True, False], pa.null(): [None, None], pa.float32(): [1.5, 2], pa.float64(): [1.5, 2]}
    values |= {pa.float16(): [np.float16(1), np.float16(2)], pa.date32(): [DAY, DAY], pa.date64(): [DAY, DAY]}
    for unit in UNITS:
        values |= {pa.timestamp(unit, zone): [moment, moment] for zone in (None, "Europe/Paris", "+05:30")}
        values[pa.duration(unit)] = [span, -span]
    values |= {key: [time, time] for key in (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"))}
    values |= {key: ["a", ""] for key in (pa.string(), pa.large_string(), pa.string_view())}
    values |= {key: [b"\xff", b""] for key in (pa.binary(), pa.large_binary(), pa.binary_view())}
    values[pa.binary(3)] = [b"abc", b"abd"]
    two = [decimal.Decimal("1.10"), decimal.Decimal("-2.00")]
    decimals = (pa.decimal32(5, 2), pa.decimal64(10, 2), pa.decimal128(10, 2), pa.decimal256(50, 2))
    values |= dict.fromkeys(decimals, two)
    for data_type, items in values.items():
        yield f"arrow-{data_type}", pa.array([items[0], None, items[1]], data_type)
    for items, ordered in ((["b", "a"], False), ([3, 1], True), ([b"\xff", b"a"], False)):
        codes = pa.array([0, None, 1], pa.int8())
        array = pa.DictionaryArray.from_arrays(codes, pa.array([*items, *items[:1] * 0]), ordered=ordered)
        yield f"arrow-{array.type}", array


def categories():
    yield "int64", pd.Index([30, 10, 20])
    for name in ("int8", "int32", "uint8", "uint32", "uint64", "float32", "float64", "Int64", "Float32"):
        yield name, pd.Index([30, 10, 20], dtype=name)
    yield "uint64-high", pd.Index([2**64 - 1, 1, 2], dtype="u8")
    yield "float64-zero", pd.Index([3.5, -0.0, 2])
    yield "bool", pd.Index([True, False])
    yield "bool-one", pd.Index([True])
    yield "boolean", pd.Index([True, False], dtype="boolean")
    yield "object-bool", pd.Index([True, False], dtype=object)
    yield "str", pd.Index(["c", "a", ""])
    yield "str-python", pd.Index(["c", "a", "b"], dtype=pd.StringDtype("python", na_value=np.nan))
    yield "string", pd.Index(["c", "a", "b"], dtype="string")
    for name, array in object_columns():
        if name not in ("object-bool", "object-null", "object-float"):
            yield name, pd.Index([value for value in array if value is not None], dtype=object)
    for unit in UNITS:
        yield f"datetime64[{unit}]", pd.Index(moments(unit)[[0, 2]])
        yield f"timedelta64[{unit}]", pd.TimedeltaIndex(np.array([3, 1], f"m8[{unit}]"))
        yield f"zoned-{unit}", pd.Index(moments(unit, "Europe/Paris")[[0, 2]])
    yield "dateutil", pd.Index(moments("us", ZONES["dateutil"])[[0, 2]])
    yield "period", pd.PeriodIndex(["2020-01", "2019-01"], freq="M")
    for dtype in ("object", "str", "int64", "bool", "float64", "datetime64[s]"):
        yield f"none-{dtype}", pd.Index([], dtype=dtype)
    yield "many", pd.Index(np.random.default_rng(0).permutation(1000))
    if HAS_ARROW:
        yield "arrow-int64", pd.Index([3, 1], dtype="int64[pyarrow]")
        yield "arrow-timestamp", pd.Index([3, 1], dtype="timestamp[s][pyarrow]")


def categorical_columns():
    for name, values in categories():
        for order in ("ordered", "unordered"):
            codes = [0, -1, min(1, len(values) - 1)] if len(values) else [-1, -1, -1]
            yield f"category-{name}-{order}", pd.Categorical.from_codes(codes, values, ordered=order == "ordered")


def columns():
    """Return three rows of every dtype; the second is null if the dtype has nulls."""
    for source in (numpy_columns, object_columns, extension_columns, sparse_columns, categorical_columns):
        for name, array in source():
            yield name, pd.Series(array, dtype=array.dtype)
    for name, array in arrow_columns() if HAS_ARROW else ():
        yield name, pd.Series(pd.arrays.ArrowExtensionArray(array))


COLUMNS: dict[str, pd.Series] = dict(columns())


def single_labels():
    yield "int", pd.Index([10, 20])
    yield "int8", pd.Index([1, 2], dtype="int8")
    yield "uint64", pd.Index([2**64 - 1, 1], dtype="uint64")
    yield "range", pd.RangeIndex(4, 8, 2, name="r")
    yield "float", pd.Index([0.1, np.nan])
    yield "float32", pd.Index([0.1, 1], dtype="float32")
    yield "bool", pd.Index([True, False])
    yield "twice", pd.Index(["a", "a"])
    yield "twice-and-one", pd.Index(["a_1", "a"])
    yield "twice-int", pd.Index([1, 1])
    yield "str-python", pd.Index(["a", "b"], dtype=pd.StringDtype("python", na_value=np.nan))
    yield "str-null", pd.Index(["a", None], dtype="str")
    yield "string", pd.Index(["a", "b"], dtype="string")
    yield "string-null", pd.Index(["a", None], dtype="string")
    for values in (
        ["a", "b"],
        ["a", None],
        ["a", np.nan],
        [1, "1"],
        [1, 2],
        [1.5, "x"],
        [b"a", b"\xff"],
        DAYS[::2],
        [(1, "a"), (2, "b")],
        [uuid.UUID(int=1), decimal.Decimal("1.10")],
        [datetime.time(1), DAY],
        [pd.Timestamp("2020", tz="Europe/Paris"), pd.Timedelta(1, "s")],
        [datetime.timedelta(1), datetime.datetime(2020, 1, 1)],
    ):
        yield f"object-{values}", pd.Index(values, dtype=object, tupleize_cols=False)
    for name in ("Int64", "Float64", "boolean"):
        yield name, pd.Index([1, 0], dtype=name)
        yield f"{name}-null", pd.Index([1, None], dtype=name)
    for unit in UNITS:
        for zone in (None, "Europe/Paris", ZONES["dateutil"]):
            yield f"datetime64[{unit}, {zone}]", pd.Index(moments(unit, zone)[:2])
        yield f"timedelta64[{unit}]", pd.TimedeltaIndex(np.array([1, 10**9 + 1], f"m8[{unit}]"))
    yield "period", pd.PeriodIndex(["2020-01", None], freq="M")
    yield "interval", pd.interval_range(0.0, 2.0, closed="left")
    yield "interval-moments", pd.interval_range(pd.Timestamp("2020"), periods=2)
    yield "category", pd.CategoricalIndex(["b", "a"], categories=["b", "z", "a"], ordered=True)
    yield "category-int", pd.CategoricalIndex([3, 1])
    for dtype in ("str", "object", "int64", "datetime64[s]"):
        yield f"none-{dtype}", pd.Index([], dtype=dtype)
    yield "none-category", pd.CategoricalIndex([], categories=["a"])
    if HAS_ARROW:
        yield "arrow", pd.Index([1, 2], dtype="int64[pyarrow]")
        yield "arrow-timestamp", pd.Index([1, 2], dtype="timestamp[s][pyarrow]")


NAMES = [None, "a", 1, 1.5, True, (1, "a"), b"x", np.int64(3), DAY, pd.Timestamp("2020", tz="Europe/Paris")]


def labels():
    singles = dict(single_labels())
    yield from singles.items()
    for name, values in singles.items():
        if len(values) == 2 and not isinstance(values, pd.RangeIndex):
            yield f"levels-{name}", pd.MultiIndex.from_arrays([["x", "y"], values], names=["n", 5])
    yield "levels-unused", pd.MultiIndex.from_product([["a", "b"], [1, 2]])[[0, 3]]
    yield "levels-none", pd.MultiIndex.from_arrays([[], []])
    yield "levels-nulls", pd.MultiIndex.from_tuples([("a", None), (None, 2)])
    for name in NAMES:
        yield f"named-{name!r}", pd.Index(["a", "b"], name=name)
        yield f"levels-named-{name!r}", pd.MultiIndex.from_product([["a"], [1, 2]], names=[name, "q"])


LABELS: dict[str, pd.Index] = dict(labels())


def assert_round_trip(got: pd.DataFrame, expected: pd.DataFrame) -> None:
    """Check that frames are equal, including category dtypes and label types."""
    assert [dtypes_equal(*pair) for pair in zip(got.dtypes, expected.dtypes, strict=True)] == [True] * got.shape[1]
    for index, other in ((got.index, expected.index), (got.columns, expected.columns)):
        assert list(map(type, index.names)) == list(map(type, other.names))
    views = [place for place, dtype in enumerate(expected.dtypes) if "_view" in str(dtype)]  # not comparable
    for place in views:
        mine, theirs = (frame.iloc[:, place].array._pa_array for frame in (got, expected))
        assert mine.to_pylist() == theirs.to_pylist()
    rest = [place for place in range(expected.shape[1]) if place not in views]
    if views:
        got, expected = got.iloc[:, rest], expected.iloc[:, rest]
    pd.testing.assert_frame_equal(got, expected, check_freq=False, check_column_type=True)


def dtypes_equal(got, expected) -> bool:
    if isinstance(expected, pd.CategoricalDtype) and isinstance(got, pd.CategoricalDtype):
        pd.testing.assert_index_equal(got.categories, expected.categories)
        return got.ordered == expected.ordered
    return got == expected
