"""str and bytes objects built by kernels: in every mode, with the right contents and reference counts."""

from __future__ import annotations

import gc
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.errors import CorruptPageError
from numparq.kernels.compile import fallback
from numparq.kernels.compile.build import build_object
from numparq.kernels.compile.load import load_object
from numparq.kernels.kernel_groups import kernels
from numparq.kernels.registry import KERNELS
from numparq.to_pandas import objects
from numparq.to_pandas import objects as kernel_objects


@given(values=st.lists(st.none() | st.binary(max_size=40), max_size=30))
def test_any_bytes_objects(values):
    assert kernel_objects.bytes_object_array(*packed(values), None).tolist() == values


OBJECT_KERNELS = {name: kernel for name, kernel in KERNELS.items() if kernel.function.__module__ == objects.__name__}
STRINGS = [
    "",
    "a",
    "ab",
    "seven77",
    "eight888",
    "nine99999",
    "é",
    "x" * 29,
    "日本語",
    "y" * 100,
    "z" * 7 + "é",
    "\x00\x7f",
    "\x80",
    "\U0010ffff",
    "q" * 15 + "\u00ff",
]


@pytest.fixture(scope="module", params=["object", "dispatcher", "python"])
def mode(request):
    builders = {
        "python": fallback.python_functions,
        "object": _loaded,
        "dispatcher": lambda some: fallback.dispatchers(some, None),
    }
    before = dict(kernels.__dict__)
    kernels.__dict__.update(builders[request.param](OBJECT_KERNELS), mode=request.param)
    yield request.param
    kernels.__dict__.clear()
    kernels.__dict__.update(before)


def _loaded(some):
    return load_object(build_object(some))


def packed(values):
    """Return offsets, data and validity of bytes values; None is a null."""
    parts = [value or b"" for value in values]
    offsets = np.cumsum([0, *map(len, parts)]).astype(np.int64)
    return offsets, np.frombuffer(b"".join(parts), np.uint8), np.array([v is not None for v in values], np.uint8)


def test_build_str_objects(mode):
    offsets, data, _ = packed([text.encode() for text in STRINGS])
    made = objects.str_object_array(offsets, data, None, None)
    assert made.dtype == object
    assert made.tolist() == STRINGS
    assert [hash(text) for text in made] == [hash(text) for text in STRINGS]
    assert all(
        type(text) is str and text.isascii() == expected.isascii() for text, expected in zip(made, STRINGS, strict=True)
    )


def test_build_bytes_objects(mode):
    values = [text.encode() for text in STRINGS] + [b"\xff\xfe\x00"]
    offsets, data, _ = packed(values)
    assert objects.bytes_object_array(offsets, data, None, None).tolist() == values


@pytest.mark.parametrize("na", [None, float("nan"), object()])
def test_null_value(mode, na):
    offsets, data, validity = packed([b"a", None, b"", None, b"bcd"])
    made = objects.str_object_array(offsets, data, validity, na)
    assert made[[0, 2, 4]].tolist() == ["a", "", "bcd"]
    assert made[1] is na
    assert made[3] is na
    assert objects.bytes_object_array(offsets, data, validity, na)[3] is na


def test_no_rows(mode):
    assert len(objects.str_object_array(np.zeros(1, np.int64), np.empty(0, np.uint8), None, None)) == 0


@pytest.mark.parametrize(
    "bad", [b"\xff", b"ab\x80", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"x" * 20 + b"\xe3\x81"]
)
def test_invalid_utf8_is_refused(mode, bad):
    offsets, data, validity = packed([b"first", None, bad, b"last"])
    with pytest.raises(CorruptPageError, match="not valid UTF-8"):
        objects.str_object_array(offsets, data, validity, None)
    assert objects.str_object_array(*packed([b"fine"]), None).tolist() == ["fine"]  # no exception stays set


@pytest.mark.parametrize("offsets", [[0, 9], [-1, 2], [2, 1], [0, 1 << 62]])
def test_offsets_outside_the_data(mode, offsets):
    for make in (objects.str_object_array, objects.bytes_object_array):
        with pytest.raises(CorruptPageError, match="length"):
            make(np.array(offsets), np.zeros(8, np.uint8), None, None)


@pytest.mark.quick_cases(1)
def test_reference_counts(mode):
    class Missing:
        gone = 0

        def __del__(self):
            Missing.gone += 1

    na = Missing()
    offsets, data, validity = packed([b"some text", None, "größer".encode(), None])
    before = sys.getrefcount(na)
    made = objects.str_object_array(offsets, data, validity, na)
    assert sys.getrefcount(na) == before + 2
    text = made[0]
    assert sys.getrefcount(text) == 3  # the array's, ours, and the argument
    del made
    assert sys.getrefcount(text) == 2
    assert sys.getrefcount(na) == before
    bad = packed([None, b"\xff"])
    with pytest.raises(CorruptPageError):
        objects.str_object_array(*bad, na)
    gc.collect()
    assert sys.getrefcount(na) == before
    del na
    assert Missing.gone == 1


def test_reference_count_of_none(mode):
    offsets, data, validity = packed([b"a", None] * 200)
    before = sys.getrefcount(None)
    for _ in range(20):
        objects.str_object_array(offsets, data, validity, None)
    assert abs(sys.getrefcount(None) - before) < 400


@given(st.lists(st.one_of(st.none(), st.text(), st.text("ab", max_size=40)), max_size=30))
def test_any_strings(values):
    encoded = packed([None if value is None else value.encode() for value in values])
    assert objects.str_object_array(*encoded, None).tolist() == values
