"""Join keys as filters of a column: their literals, ranges and hashes. Needs no Java."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pytest

from numparq.format.arrow_type import ArrowType
from numparq.format.bloom_filter import hash_values
from numparq.format.logical_type import LogicalType
from numparq.format.physical_type import BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY, INT32, INT64, INT96
from numparq.format.schema import Leaf
from numparq.spark.scan.join_keys import JoinKeyColumn, cast_keys, plain_keys, range_filters, value_filters

pa = pytest.importorskip("pyarrow")

MOMENT, MICROSECOND = datetime.datetime(2024, 2, 29, 12), datetime.timedelta(microseconds=1)
UTC = datetime.UTC
UUID = "00112233-4455-6677-8899-aabbccddeeff"


def column(physical, logical=None, length=None, origin=None):
    return JoinKeyColumn([], Leaf(0, 0, ("x",), physical, length, logical, 1, 0), origin)


def moments(unit, *, utc):
    return column(INT64, LogicalType("TIMESTAMP", unit=unit, utc=utc))


def keys(*values, kind=None):
    return pa.chunked_array([pa.array(values, kind)])


PARTITION = JoinKeyColumn([])
LONG = column(INT64)
DURATION = column(INT64, origin=ArrowType("duration", unit="ms"))
INT96_INSTANTS = column(INT96, LogicalType("TIMESTAMP", unit="NANOS", utc=True))
UUIDS = column(FIXED_LEN_BYTE_ARRAY, LogicalType("UUID"), 16)
PARIS = pa.timestamp("us", "Europe/Paris")
# Column, keys, and part of the filter's repr.
SETS = {
    "integers": (LONG, keys(3, 1), "isin([3, 1])"),
    "of a partition column": (PARTITION, keys("a"), "isin(['a'])"),
    "of an unknown column": (None, keys("a", "b"), "isin(['a', 'b'])"),
    "none": (LONG, keys(kind=pa.int64()), "isin([])"),
    "durations": (DURATION, keys(7), "isin([np.timedelta64(7,'ms')])"),
    "times": (
        column(INT64, LogicalType("TIME", unit="NANOS")),
        keys(7, kind=pa.time64("ns")),
        "isin([np.timedelta64(7,'ns')])",
    ),
    "instants": (moments("MICROS", utc=True), keys(MOMENT.replace(tzinfo=UTC), kind=PARIS), "2024, 2, 29, 12"),
    "UUIDs": (UUIDS, keys(UUID, UUID.upper(), "none", UUID.replace("-", "")), f"isin(['{UUID}'])"),
}


@pytest.mark.parametrize("name", SETS)
def test_filters_of_key_sets(name):
    known, given, expected = SETS[name]
    (runtime_filter,) = value_filters("x", cast_keys(given, known), known)
    assert expected in repr(runtime_filter)


@pytest.mark.parametrize("known", [INT96_INSTANTS, moments("NANOS", utc=False), moments("NANOS", utc=True)])
def test_microsecond_keys_become_nanosecond_ranges(known):
    is_utc = known.leaf.logical.utc
    compared = cast_keys(keys(MOMENT.replace(tzinfo=UTC if is_utc else None)), known)
    zone = compared[0].as_py().tzinfo
    assert (zone is not None) == is_utc
    first, end = (repr(each.replace(tzinfo=zone)) for each in (MOMENT, MOMENT + MICROSECOND))
    assert (
        repr(value_filters("x", compared, known)) == f"[<RuntimeFilter ((col('x') >= {first}) & (col('x') < {end}))>]"
    )
    assert (
        repr(range_filters("x", compared, known)) == f"[<RuntimeFilter ((col('x') >= {first}) & (col('x') <= {end}))>]"
    )
    many = keys(*(MOMENT + each * MICROSECOND for each in range(0, 1000, 2)))
    (runtime_filter,) = value_filters("x", many, known)  # too many ranges: low and high only
    assert repr(runtime_filter).count("col") == 2


def test_date_keys_of_timestamp_columns():
    known = moments("NANOS", utc=False)
    (runtime_filter,) = value_filters("x", cast_keys(keys(MOMENT.date()), known), known)
    assert "datetime.datetime(2024, 2, 29, 0, 0, 0, 1)" in repr(runtime_filter)


BOUNDED = [
    keys(2, 9, 4),
    keys(b"b", b"a", b"\xff"),
    keys("b", "a"),
    keys(True, False),
    keys(decimal.Decimal("1.5")),
    keys(MOMENT.date(), datetime.date(1, 1, 1)),
    keys(1.5, -0.0),
]


@pytest.mark.parametrize("given", BOUNDED, ids=str)
def test_range_filters_of_keys(given):
    (runtime_filter,) = range_filters("x", cast_keys(given, PARTITION), PARTITION)
    low, high = min(given.to_pylist()), max(given.to_pylist())
    assert repr(runtime_filter) == f"<RuntimeFilter ((col('x') >= {low!r}) & (col('x') <= {high!r}))>"


def test_keys_without_filters():
    for known in (None, PARTITION, LONG):
        assert cast_keys(keys(1.0, float("nan")), known) is None
    assert cast_keys(keys(MOMENT.replace(tzinfo=UTC)), None) is None
    beyond = {
        "a year after 9999": keys(1 << 60, kind=pa.timestamp("us", "UTC")),
        "a day": keys(1 << 30, kind=pa.date32()),
        "no text": pa.chunked_array([pa.array([b"\xff"]).view(pa.string())]),
    }
    for name, given in beyond.items():
        assert value_filters("x", cast_keys(given, PARTITION), PARTITION) == [], name
        assert range_filters("x", cast_keys(given, PARTITION), PARTITION) == [], name
    assert value_filters("x", keys(-(1 << 63)), DURATION) == []  # would be NaT


HASHED = [
    (LONG, keys(1, 2), np.array([1, 2], "<i8")),
    (LONG, keys(1, kind=pa.int8()), np.array([1], "<i8")),
    (column(INT32), keys(1, 1 << 40), np.array([1], "<i4")),
    (column(INT32, LogicalType("DATE")), keys(datetime.date(1970, 1, 2)), np.array([1], "<i4")),
]


@pytest.mark.parametrize(("known", "given", "plain"), HASHED)
def test_plain_bytes_of_keys(known, given, plain):
    assert [each.tolist() for each in plain_keys(known, given)] == [plain.tolist()]
    assert plain_keys(known, given)[0].dtype == plain.dtype


def test_hashes_of_chunked_strings():
    texts = pa.array(["none", "a", "", "bc"])
    given = pa.chunked_array([texts[1:2], texts[2:]])
    plain, starts, ends = np.frombuffer(b"abc", np.uint8), np.array([0, 1, 1]), np.array([1, 1, 3])
    for known, kind in ((column(BYTE_ARRAY, LogicalType("STRING")), pa.string()), (column(BYTE_ARRAY), pa.binary())):
        runtime_filter = hash_values(known.leaf, *plain_keys(known, given.cast(kind)))
        assert runtime_filter.tolist() == hash_values(known.leaf, plain, starts, ends).tolist()


NOT_HASHED = [
    (PARTITION, keys(1)),
    (column(INT32, LogicalType("INTEGER", bit_width=8, signed=True)), keys(1)),
    (column(INT64, LogicalType("INTEGER", bit_width=64, signed=False)), keys(1)),
    (LONG, keys(decimal.Decimal(1))),
    (column(BYTE_ARRAY, LogicalType("STRING")), keys(b"a")),
    (column(BYTE_ARRAY), keys("a")),
    (column(INT32, LogicalType("DATE")), keys(MOMENT)),
    (column(INT64, LogicalType("DECIMAL", precision=9, scale=1)), keys(1)),
    (moments("MICROS", utc=True), keys(MOMENT)),
    (UUIDS, keys(UUID)),
]


@pytest.mark.parametrize(("known", "given"), NOT_HASHED)
def test_keys_without_unique_bytes_are_not_hashed(known, given):
    assert plain_keys(known, given) is None
