"""Lists, tuples, arrays and dicts taken apart by kernels: against Python, in every kernel mode."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.from_pandas import object_layout
from numparq.from_pandas.nested import objects
from numparq.from_pandas.nested.objects import copy_dict_items, measure_lists
from numparq.kernels.kernel_groups import text_kernels
from numparq.kernels.status import BAD_LENGTH

NULLS = [None, float("nan"), pd.NA, pd.NaT]

pytestmark = pytest.mark.skipif(object_layout.object_layout() is None, reason="another interpreter")


def object_array(values):
    array = np.empty(len(values), object)
    for place, value in enumerate(values):
        array[place] = value
    return array


def split(values):
    found = measure_lists(object_array(values))
    if found is None:
        return None
    items, bounds = found.concatenate(), found.offsets.tolist()
    valid = [True] * len(values) if found.validity is None else found.validity.tolist()
    return [
        items[first:last].tolist() if there else None
        for first, last, there in zip(bounds[:-1], bounds[1:], valid, strict=True)
    ]


ITEMS = st.none() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)


@given(values=st.lists(st.none() | st.lists(ITEMS, max_size=4) | st.tuples(ITEMS, ITEMS), max_size=20))
def test_any_lists(values):
    found = split(values)
    if any(value is not None for value in values):
        assert found == [None if value is None else list(value) for value in values]
    else:
        assert found is None


@given(values=st.lists(st.none() | st.lists(st.floats(allow_nan=False), max_size=4), min_size=1, max_size=20))
def test_any_arrays(values):
    found = split([None if value is None else np.array(value, float) for value in values])
    assert found == (values if any(value is not None for value in values) else None)


@given(values=st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(), max_size=3), max_size=20))
def test_any_dicts(values):
    found, count = copy_dict_items(object_array(values), "a")
    assert found.tolist() == [value.get("a") for value in values]
    assert count == sum("a" in value for value in values)


def test_null_lists(text_mode):
    assert split([[1], *NULLS, (2, "x")]) == [[1], None, None, None, None, [2, "x"]]
    assert split([np.array([1.5]), *NULLS, np.array([])]) == [[1.5], None, None, None, None, []]


@pytest.mark.parametrize(
    "dtype", ["?", "i1", "u2", "i4", "i8", "f2", "f4", "f8", "M8[us]", "m8[s]"], ids=lambda dtype: dtype
)
def test_arrays_of_every_width(text_mode, dtype):
    whole = np.arange(10).astype(np.dtype(dtype)) if dtype != "?" else np.arange(10) % 3 == 0
    found = measure_lists(object_array([whole[:3], None, whole[3:3], whole[4:]]))
    assert found is not None
    assert found.dtype == whole.dtype
    assert (found.concatenate() == np.concatenate([whole[:3], whole[4:]])).all()
    assert found.offsets.tolist() == [0, 3, 3, 3, 9]


class OwnList(list):
    pass


class OwnArray(np.ndarray):
    pass


OTHERS = {
    "another dtype": np.zeros(2, "f4"),
    "two dimensions": np.zeros((2, 2)),
    "no dimension": np.zeros(()),
    "strided": np.zeros(6)[::2],
    "reversed": np.arange(3.0)[::-1],
    "subclass": np.zeros(2).view(OwnArray),
    "masked": np.ma.masked_array([1.0, 2.0]),
    "another byte order": np.zeros(2, np.dtype("f8").newbyteorder()),
    "list": [1.0],
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_other_arrays_are_left_to_python(text_mode, other):
    assert split([np.zeros(2), other]) is None
    assert split([other, np.zeros(2)]) is None


def test_other_lists_are_left_to_python(text_mode):
    for other in (OwnList([1]), {1}, {"a": 1}, "ab", np.zeros(2), pd.Series([1]), 5):
        assert split([[1, 2], other]) is None


def test_strided_arrays_of_one_item(text_mode):
    assert split([np.arange(4.0)[::5], np.arange(2.0)]) == [[0.0], [0.0, 1.0]]


def test_strided_columns(text_mode):
    table = np.empty((2, 2), object)
    table[:, 1] = [[1], [2, 3]]
    found = measure_lists(table[:, 1])
    assert found is not None
    assert found.concatenate().tolist() == [1, 2, 3]
    table[:, 1] = [{"a": 1}, {"b": 2}]
    assert copy_dict_items(table[:, 1], "a")[0].tolist() == [1, None]


class OwnDict(dict):
    def get(self, key, default=None):
        return "own"


def test_other_mappings_are_left_to_python(text_mode):
    for other in (OwnDict(a=1), None, [("a", 1)]):
        assert copy_dict_items(object_array([{"a": 1}, other]), "a")[1] == -1
    values = object_array([{"a": 1}, OwnDict(a=1)])
    assert objects.field_values(values, "a").tolist() == [1, "own"]


def test_lists_changed_between_the_passes(text_mode):
    first, second = ["a", "b"], np.arange(2.0)
    for values, others in (
        ([first, ["c"]], [["a"], (1, 2, 3), {1, 2}]),
        ([second, np.zeros(1)], [np.zeros(1), [1, 2]]),
    ):
        for other in others:
            array = object_array(values)
            found = measure_lists(array)
            assert found is not None
            found.objects[0] = other
            kernel = text_kernels.copy_list_items if found.dtype.kind == "O" else text_kernels.copy_arrays
            out, valid = np.zeros(3, found.dtype), np.ones(2, np.uint8)
            if found.dtype.kind == "O":
                arguments = (object_layout.kernel_constants(), found.offsets, valid, out)
            else:
                layout = object_layout.array_layout()
                arguments = (layout, id(found.dtype), 8, found.offsets, valid, out.view("u1"))
            assert kernel(found.objects, 2, *arguments) == BAD_LENGTH


def test_references_are_counted(text_mode):
    item = "".join(["some ", "text"])
    before = sys.getrefcount(item)
    lists, dicts = object_array([[item, item], (item,)]), object_array([{"a": item}, {}])
    held = sys.getrefcount(item)
    found = measure_lists(lists)
    assert found is not None
    items = found.concatenate()
    assert sys.getrefcount(item) == held + 3
    values, _ = copy_dict_items(dicts, "a")
    assert sys.getrefcount(item) == held + 4
    del items, values, found, lists, dicts
    assert sys.getrefcount(item) == before


def test_layouts_are_known():
    assert object_layout.knows_containers()
    assert object_layout.array_layout() is not None
    assert object_layout.datetime_layout() is not None
