"""str and bytes objects to bytes: in every kernel mode, and without kernels."""

from __future__ import annotations

import datetime
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.errors import SchemaError
from numparq.from_pandas import object_layout, strings
from numparq.from_pandas.object_layout import distinct_classes
from numparq.from_pandas.strings import encode_bytes, encode_strings
from numparq.kernels.compile import fallback
from numparq.kernels.compile.build import build_object
from numparq.kernels.compile.load import load_object
from numparq.kernels.kernel_groups import text_kernels
from numparq.kernels.objects import strings as module
from numparq.kernels.registry import KERNELS
from numparq.kernels.status import BAD_LENGTH, BAD_UTF8, BAD_VALUE
from support.oracles.strings import encode_strings as encode_by_oracle
from support.oracles.strings import split_strings


@given(values=st.lists(st.none() | st.binary(max_size=30), max_size=30))
def test_any_bytes(values):
    assert split_strings(*encode_bytes(object_array(values))) == values


@given(values=st.lists(st.sampled_from([None, 1, 2, "a", 1.5, True, b"", (), datetime.date(2020, 1, 1)]), max_size=200))
def test_any_distinct_classes(values):
    assert list(distinct_classes(object_array(values))) == list(dict.fromkeys(map(type, values)))


TEXT_KERNELS = {name: kernel for name, kernel in KERNELS.items() if kernel.function.__module__ == module.__name__}
STRINGS = [
    "",
    "a",
    "seven77",
    "eight888",
    "nine99999",
    "é",
    "x" * 29,
    "日本語",
    "z" * 7 + "é",
    "ÿ" * 8,
    "ÿ" * 17,
    "\x00\x7f",
    "\x80",
    "\u07ff\u0800",
    "\ud7ff\ue000",
    "\uffff\U00010000\U0010ffff",
    "q" * 300,
]
NULLS = [None, np.nan, float("nan"), np.float64("nan"), pd.NA, pd.NaT, float("-nan")]


@pytest.fixture(scope="module", params=["object", "dispatcher", "python", "none"])
def mode(request):
    patch = pytest.MonkeyPatch()
    if request.param == "none":
        patch.setattr(object_layout, "object_layout", lambda: None)
        patch.setattr(strings, "object_layout", lambda: None)
        yield request.param
        patch.undo()
        return
    assert object_layout.object_layout() is not None, "the kernels do not know the object layout of this Python"
    builders = {
        "python": fallback.python_functions,
        "object": _loaded,
        "dispatcher": lambda some: fallback.dispatchers(some, None),
    }
    assert text_kernels.distinct_types  # loads the whole group, which the kernels of strings are a part of
    before = dict(text_kernels.__dict__)
    text_kernels.__dict__.update(builders[request.param](TEXT_KERNELS), mode=request.param)
    yield request.param
    text_kernels.__dict__.clear()
    text_kernels.__dict__.update(before)


def _loaded(some):
    return load_object(build_object(some))


def object_array(values):
    array = np.empty(len(values), object)
    array[:] = values
    return array


@pytest.mark.quick_cases(2)
def test_encode_strings(mode):
    values = [*STRINGS, *NULLS, *STRINGS[::-1]]
    assert split_strings(*encode_strings(object_array(values))) == encode_by_oracle(values)


def test_encode_bytes(mode):
    values = [*(value.encode() for value in STRINGS), *NULLS, b"\xff\x00"]
    assert split_strings(*encode_bytes(object_array(values))) == encode_by_oracle(values)


def test_no_rows_and_only_nulls(mode):
    for encode in (encode_strings, encode_bytes):
        assert split_strings(*encode(object_array([]))) == []
        assert split_strings(*encode(object_array(NULLS))) == [None] * len(NULLS)
        assert split_strings(*encode(np.empty(3, object))) == [None] * 3


class Text(str):
    pass


def test_subclasses_and_bytes_like_objects(mode):
    values = ["a", Text("é"), np.str_("中"), None]
    assert split_strings(*encode_strings(object_array(values))) == encode_by_oracle(values)
    others = [b"a", bytearray(b"bc"), memoryview(b"d"), None, np.bytes_(b"e")]
    assert split_strings(*encode_bytes(object_array(others))) == encode_by_oracle(others)


@pytest.mark.parametrize("bad", [5, 1.5, b"x", np.float64(0), float("inf")])
def test_other_types_are_refused(mode, bad):
    with pytest.raises(SchemaError, match=f"row 12: .*{type(bad).__name__}"):
        encode_strings(object_array(["a", None, bad]), 10)
    if not isinstance(bad, bytes):
        with pytest.raises(SchemaError, match=f"row 1: .*{type(bad).__name__}"):
            encode_bytes(object_array([b"a", bad]))


@pytest.mark.parametrize("bad", ["\ud800", "a\udfff", "\U00010000\udc00", Text("\ud9ab")])
def test_lone_surrogates_are_refused(mode, bad):
    with pytest.raises(SchemaError, match=r"row 1: .*surrogates"):
        encode_strings(object_array(["a", bad]))


def test_strided_column(mode):
    table = np.array([["a", "b"], ["c", "é"]], object)
    assert split_strings(*encode_strings(table[:, 1])) == [b"b", "é".encode()]


def test_no_references_are_leaked(mode):
    value = "".join(["some ", "text"])
    values = object_array([value] * 3)
    before = sys.getrefcount(value)
    encode_strings(values)
    distinct_classes(values)
    assert sys.getrefcount(value) == before


def test_objects_changed_between_the_passes(mode):
    if mode == "none":
        pytest.skip("needs kernels")
    layout, constants = object_layout.object_layout(), object_layout.kernel_constants()
    for values, measure, copy, others in (
        (
            ["abc", "é"],
            (text_kernels.measure_str_objects, layout),
            text_kernels.copy_str_objects,
            ["abcd", 5, None, Text("abc")],
        ),
        ([b"abc", b"e"], (text_kernels.measure_bytes_objects,), text_kernels.copy_bytes_objects, [b"abcd", 5, None]),
    ):
        array, offsets, validity = object_array(values), np.empty(3, np.int64), np.empty(2, np.uint8)
        size = measure[0](array, 2, constants, *measure[1:], offsets, validity)
        out = np.zeros(size + 8, np.uint8)
        for other in others:
            array[0] = other
            assert copy(array, 2, constants, layout, offsets, validity, out) == BAD_LENGTH
        assert not out.any()


def test_object_layout_ignores_cached_utf8(mode):
    import ctypes

    if mode == "none":
        pytest.skip("needs kernels")
    ctypes.pythonapi.PyUnicode_AsUTF8.argtypes = [ctypes.py_object]
    ctypes.pythonapi.PyUnicode_AsUTF8.restype = ctypes.c_char_p
    for value in ("é", "ab", "abé"):
        assert ctypes.pythonapi.PyUnicode_AsUTF8(value) == value.encode()  # CPython keeps it with the string
    assert (object_layout.object_layout.__wrapped__() == object_layout.object_layout()).all()
    assert split_strings(*encode_strings(object_array(["é", "abé"]))) == encode_by_oracle(["é", "abé"])


def test_measure_statuses(mode):
    if mode == "none":
        pytest.skip("needs kernels")
    layout, constants = object_layout.object_layout(), object_layout.kernel_constants()
    offsets, validity = np.empty(3, np.int64), np.empty(2, np.uint8)
    for bad, status in (("\ud800", BAD_UTF8), (5, BAD_VALUE), (Text("a"), BAD_VALUE)):
        array = object_array(["a", bad])
        assert text_kernels.measure_str_objects(array, 2, constants, layout, offsets, validity) == status


def test_distinct_classes(mode):
    values = object_array([*range(50), "a", None, *range(50), 1.5, True, pd.NA, "b"])
    assert list(distinct_classes(values)) == [int, str, type(None), float, bool, type(pd.NA)]
    many = object_array([type(f"T{number}", (), {})() for number in range(100)])
    assert list(distinct_classes(many)) == [type(value) for value in many]
    assert list(distinct_classes(object_array([]))) == []


@given(st.lists(st.one_of(st.none(), st.text(), st.text("abé中\U0001f600", max_size=40)), max_size=30))
def test_any_strings(values):
    try:
        expected = encode_by_oracle(values)
    except UnicodeEncodeError:
        with pytest.raises(SchemaError, match="surrogates"):
            encode_strings(object_array(values))
        return
    assert split_strings(*encode_strings(object_array(values))) == expected
