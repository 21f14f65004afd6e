"""The kernel that reads date objects, against `datetime.date.toordinal`."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.from_pandas.object_layout import date_layout
from numparq.from_pandas.temporal import days_by_kernel

EPOCH = datetime.date(1970, 1, 1).toordinal()


def objects(values: list) -> np.ndarray:
    array = np.empty(len(values), object)
    array[:] = values
    return array


@pytest.mark.skipif(date_layout() is None, reason="another interpreter")
def test_days_of_many_years():
    ordinals = [*range(1, 1000), *range(EPOCH - 200_000, EPOCH + 200_000, 7), *range(3_652_059 - 1000, 3_652_060)]
    found = days_by_kernel(objects([datetime.date.fromordinal(ordinal) for ordinal in ordinals]))
    assert found is not None
    assert found.validity is None
    assert (found.values == np.array(ordinals) - EPOCH).all()


@pytest.mark.skipif(date_layout() is None, reason="another interpreter")
def test_every_null_value():
    found = days_by_kernel(objects([None, datetime.date(1970, 1, 2), float("nan"), pd.NaT, pd.NA, np.float64("nan")]))
    assert found is not None
    assert found.validity is not None
    assert found.values.tolist() == [0, 1, 0, 0, 0, 0]
    assert found.validity.tolist() == [0, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("other", [datetime.datetime(2020, 1, 1), "2020-01-01", 1.5, 0, True])
def test_other_objects_are_left_to_python(other):
    assert days_by_kernel(objects([datetime.date(2020, 1, 1), other])) is None


@pytest.mark.skipif(date_layout() is None, reason="another interpreter")
@given(values=st.lists(st.none() | st.dates(), max_size=30))
def test_random_dates_match_toordinal(values):
    found = days_by_kernel(objects(values))
    assert found is not None
    validity = [1] * len(values) if found.validity is None else found.validity.tolist()
    first = datetime.date(1970, 1, 1).toordinal()
    assert validity == [int(value is not None) for value in values]
    assert found.values.tolist() == [0 if value is None else value.toordinal() - first for value in values]
