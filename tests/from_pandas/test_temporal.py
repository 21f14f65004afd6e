"""The kernel that reads date objects, against `datetime.date.toordinal`."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.from_pandas.object_layout import date_layout
from numparq.from_pandas.temporal import read_dates, read_datetimes

EPOCH = datetime.date(1970, 1, 1).toordinal()


def objects(values: list) -> np.ndarray:
    array = np.empty(len(values), object)
    array[:] = values
    return array


@pytest.mark.skipif(date_layout() is None, reason="another interpreter")
def test_days_of_many_years():
    ordinals = [*range(1, 1000), *range(EPOCH - 200_000, EPOCH + 200_000, 7), *range(3_652_059 - 1000, 3_652_060)]
    found = read_dates(objects([datetime.date.fromordinal(ordinal) for ordinal in ordinals]))
    assert found is not None
    assert found.validity is None
    assert (found.values == np.array(ordinals) - EPOCH).all()


@pytest.mark.skipif(date_layout() is None, reason="another interpreter")
def test_every_null_value():
    found = read_dates(objects([None, datetime.date(1970, 1, 2), float("nan"), pd.NaT, pd.NA, np.float64("nan")]))
    assert found is not None
    assert found.validity is not None
    assert found.values.tolist() == [0, 1, 0, 0, 0, 0]
    assert found.validity.tolist() == [0, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("other", [datetime.datetime(2020, 1, 1), "2020-01-01", 1.5, 0, True])
def test_other_objects_are_left_to_python(other):
    assert read_dates(objects([datetime.date(2020, 1, 1), other])) is None


@pytest.mark.skipif(date_layout() is None, reason="another interpreter")
@given(values=st.lists(st.none() | st.dates(), max_size=30))
def test_random_dates_match_toordinal(values):
    found = read_dates(objects(values))
    assert found is not None
    validity = [1] * len(values) if found.validity is None else found.validity.tolist()
    first = datetime.date(1970, 1, 1).toordinal()
    assert validity == [int(value is not None) for value in values]
    assert found.values.tolist() == [0 if value is None else value.toordinal() - first for value in values]


@pytest.mark.skipif(date_layout() is None, reason="another interpreter")
@given(values=st.lists(st.none() | st.datetimes(), max_size=30))
def test_random_datetimes(values):
    found = read_datetimes(objects(values))
    assert found is not None
    first, step = datetime.datetime(1970, 1, 1), datetime.timedelta(microseconds=1)
    assert found.values.tolist() == [0 if value is None else (value - first) // step for value in values]
    assert (found.validity is None) == (None not in values)


@pytest.mark.parametrize(
    "other",
    [
        datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
        datetime.date(2020, 1, 1),
        pd.Timestamp("2020-01-01"),
        np.datetime64("2020-01-01T00:00:00"),
        "2020-01-01",
        0,
    ],
)
def test_other_datetimes_are_left_to_python(other):
    assert read_datetimes(objects([datetime.datetime(2020, 1, 1, fold=1), other])) is None
