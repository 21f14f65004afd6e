"""bool, int and float objects read by a kernel: against Python, in every kernel mode."""

from __future__ import annotations

import decimal
import enum

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.from_pandas import object_layout
from numparq.from_pandas.numbers import scalar_reader

NULLS = [None, float("nan"), np.float64("nan"), pd.NA, pd.NaT]

pytestmark = pytest.mark.skipif(object_layout.object_layout() is None, reason="another interpreter")


def read(values, dtype):
    array = np.empty(len(values), object)
    array[:] = values
    reader = scalar_reader(np.dtype(dtype))
    assert reader is not None
    found = reader(array)
    if found is None:
        return None
    valid = [True] * len(values) if found.validity is None else found.validity.tolist()
    return [value if there else None for value, there in zip(found.values.tolist(), valid, strict=True)]


INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@given(
    case=st.sampled_from(
        [(INT64, "i8"), (st.booleans(), "?"), (st.floats(allow_nan=False), "f8")],
    ).flatmap(lambda pair: st.tuples(st.lists(st.none() | pair[0], max_size=30), st.just(pair[1])))
)
def test_any_scalars(case):
    values, dtype = case
    assert read(values, dtype) == values


def test_limits_and_nulls(text_mode):
    integers = [-(1 << 63), (1 << 63) - 1, -1, 0, 1, 1 << 30, -(1 << 30), 1 << 60]
    for values, dtype in ((integers, "i8"), ([True, False], "?"), ([0.5, -0.0, float("inf"), 5e-324], "f8")):
        assert read([*values, *NULLS, *values], dtype) == [*values, *[None] * len(NULLS), *values]
    assert read([np.float64(1.5), 2.5], "f8") == [1.5, 2.5]
    assert str(read([-0.0], "f8")) == "[-0.0]"


class Color(enum.IntEnum):
    RED = 1


@pytest.mark.parametrize(
    ("dtype", "others"),
    [
        ("i8", [1 << 63, -(1 << 63) - 1, 10**40, True, 1.5, "1", Color.RED, np.int64(1), decimal.Decimal(1)]),
        ("?", [1, 0, 1.0, np.True_, "x"]),
        ("f8", [1, True, np.float32(1), decimal.Decimal(1), decimal.Decimal("NaN"), "nan"]),
    ],
)
def test_other_objects_are_left_to_python(text_mode, dtype, others):
    first = {"i8": 5, "?": True, "f8": 1.5}[dtype]
    for other in others:
        assert read([first, other], dtype) is None
        assert read([first], dtype) == [first]  # no error stays set


def test_other_dtypes_have_no_reader():
    assert [scalar_reader(np.dtype(dtype)) for dtype in ("i4", "u8", "f4", "M8[us]", "O")] == [None] * 5
