"""Python objects for values without a NumPy dtype, against slow references."""

from __future__ import annotations

import datetime
import decimal
import uuid

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.column.buffers import BinaryArray
from numparq.to_pandas import decimals, numbers, objects, strings, temporal
from numparq.to_pandas.decimals import binary_to_integers, fixed_to_int64
from numparq.to_pandas.objects import bytes_object_array, str_object_array

EPOCH = datetime.date(1970, 1, 1).toordinal()
FIRST, LAST = datetime.date.min.toordinal() - EPOCH, datetime.date.max.toordinal() - EPOCH


def masked(values, dtype, null=0):
    validity = np.array([value is not None for value in values], np.uint8)
    filled = np.array([null if value is None else value for value in values], dtype)
    return filled, validity, int((validity == 0).sum())


def binary_array(values):
    lengths = [len(value or b"") for value in values]
    validity = np.array([value is not None for value in values], np.uint8)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return BinaryArray(offsets, np.frombuffer(b"".join(value or b"" for value in values), np.uint8), validity)


def optional(strategy):
    return st.lists(st.none() | strategy, max_size=60)


@given(optional(st.integers(FIRST, LAST)))
def test_dates(days):
    got = temporal.date_objects(*masked(days, np.int32))
    assert got.tolist() == [None if day is None else datetime.date.fromordinal(day + EPOCH) for day in days]


@pytest.mark.parametrize("spread", [100, 10**6])  # with a table of days, and without
@pytest.mark.parametrize("with_nulls", [True, False])
def test_many_dates_with_narrow_and_wide_spread(spread, with_nulls):
    rng = np.random.default_rng(1)
    days = rng.integers(10_000, 10_000 + spread, 70_000).astype(np.int32)
    validity = (rng.random(len(days)) < 0.9).astype(np.uint8) if with_nulls else None
    nulls = int((validity == 0).sum()) if with_nulls else 0
    if with_nulls:
        days[validity == 0] = 0
    got = temporal.date_objects(days, validity, nulls)
    expected = days.astype("M8[D]").astype(object)
    if with_nulls:
        expected[validity == 0] = None
    assert (got == expected).all()
    assert got.dtype == object


@pytest.mark.parametrize("day", [FIRST - 1, LAST + 1, 2**31 - 1, -(2**31)])
def test_days_beyond_python_dates_stay_datetime64(day):
    got = temporal.date_objects(np.array([day, 0], np.int32), np.array([1, 0], np.uint8), 1)
    assert got.dtype == "M8[s]"
    assert np.isnat(got).tolist() == [False, True]
    assert got.view("i8")[0] == day * 86400


def slow_time(value, per_second):
    seconds, fraction = divmod(value, per_second)
    hours, seconds = divmod(seconds, 3600)
    return datetime.time(hours, seconds // 60, seconds % 60, fraction * 10**6 // per_second)


@given(st.data(), st.sampled_from([("ms", 10**3, np.int32), ("us", 10**6, np.int64), ("ns", 10**9, np.int64)]))
def test_times(data, kind):
    unit, per_second, dtype = kind
    step = 1000 if unit == "ns" else 1
    values = data.draw(optional(st.integers(0, 86400 * per_second // step - 1).map(lambda value: value * step)))
    filled, validity, nulls = masked(values, dtype)
    got = temporal.time_objects(filled, unit, validity, nulls)
    assert got.tolist() == [None if value is None else slow_time(value, per_second) for value in values]


@pytest.mark.parametrize(
    ("unit", "value"), [("ms", 86_400_000), ("ms", -1), ("us", 86_400_000_000), ("ns", 1), ("ns", -1000)]
)
def test_invalid_times_stay_timedelta64(unit, value):
    dtype = np.int32 if unit == "ms" else np.int64
    got = temporal.time_objects(np.array([value, 0], dtype), unit, np.array([1, 0], np.uint8), 1)
    assert got.dtype == f"m8[{unit}]"
    assert got.view("i8")[0] == value
    assert np.isnat(got[1])


def test_equal_times_share_one_object():
    values = np.tile(np.arange(10, dtype=np.int64), 3000) * 1_000_000
    got = temporal.time_objects(values, "us", None, 0)
    assert got.tolist() == [datetime.time(0, 0, second) for second in range(10)] * 3000
    assert len({id(value) for value in got}) == 10


@given(optional(st.booleans()))
def test_booleans(values):
    filled, validity, nulls = masked(values, bool, False)
    got = numbers.boolean_objects(filled, validity, nulls)
    assert got.tolist() == values
    assert got.dtype == object or not nulls


@given(optional(st.uuids()))
def test_uuids(values):
    filled, validity, nulls = masked([value and value.bytes for value in values], "V16", b"\0" * 16)
    got = objects.uuid_objects(filled, validity, nulls)
    assert got.tolist() == values
    assert all(isinstance(value, (uuid.UUID, type(None))) for value in got)


@given(
    st.integers(1, 9).flatmap(
        lambda width: optional(st.binary(min_size=width, max_size=width)).map(lambda values: (width, values))
    )
)
def test_fixed_length_bytes(case):
    width, values = case
    got = strings.fixed_bytes_objects(*masked(values, f"V{width}", b"\0" * width))
    assert got.tolist() == values
    assert all(isinstance(value, (bytes, type(None))) for value in got)


@given(optional(st.binary(max_size=5)))
def test_bytes(values):
    assert strings.binary_objects([binary_array(values)] * 2, bytes_object_array, None).tolist() == values * 2


@given(optional(st.text(max_size=5)))
def test_text(values):
    encoded = [None if value is None else value.encode() for value in values]
    assert strings.binary_objects([binary_array(encoded)], str_object_array, None).tolist() == values


# --- decimals ----------------------------------------------------


def exact(unscaled, scale):
    return decimal.Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


def assert_decimals(got, values, scale):
    expected = [None if value is None else exact(value, scale) for value in values]
    assert [value and value.as_tuple() for value in got] == [value and value.as_tuple() for value in expected]


SCALES = st.integers(0, 40)


@given(optional(st.integers(-(2**31), 2**31 - 1)), SCALES, st.sampled_from([np.int32, np.int64]))
def test_decimals_from_integers(values, scale, dtype):
    filled, validity, nulls = masked(values, dtype)
    assert_decimals(decimals.decimal_objects(filled, scale, validity, nulls), values, scale)


@given(st.data(), st.integers(1, 40), SCALES)
def test_decimals_from_fixed_length_bytes(data, width, scale):
    limit = 1 << (8 * width - 1)
    values = data.draw(optional(st.integers(-limit, limit - 1) | st.integers(-min(limit, 300), min(limit - 1, 300))))
    encoded = [None if value is None else value.to_bytes(width, "big", signed=True) for value in values]
    filled, validity, nulls = masked(encoded, f"V{width}", b"\0" * width)
    assert_decimals(decimals.decimal_objects(filled, scale, validity, nulls), values, scale)
    small = fixed_to_int64(filled)
    fits = all(-(2**63) <= (value or 0) < 2**63 for value in values)
    assert (small is not None) == fits
    assert small is None or small.tolist() == [value or 0 for value in values]


@given(st.data(), st.integers(1, 20), SCALES)
def test_decimals_from_byte_arrays(data, longest, scale):
    values = data.draw(optional(st.binary(min_size=1, max_size=longest)))
    unscaled = [None if value is None else int.from_bytes(value, "big", signed=True) for value in values]
    piece = binary_array(values)
    assert_decimals(decimals.binary_decimal_objects([piece, piece], scale), unscaled * 2, scale)
    integers = binary_to_integers(piece)
    assert list(integers) == [value or 0 for value in unscaled]


def test_decimal_of_no_bytes_is_zero():
    assert binary_to_integers(binary_array([None, b"\1"])).tolist() == [0, 1]
    assert binary_to_integers(binary_array([b"", b"\xff"])).tolist() == [0, -1]
    assert binary_to_integers(binary_array([b"", b"", bytes(8) + b"\2"])) == [0, 0, 2]


def test_decimal_context_does_not_round():
    with decimal.localcontext() as context:
        context.prec = 3
        got = decimals.decimal_objects(np.array([123456789], np.int64), 4, None, 0)
    assert str(got[0]) == "12345.6789"
