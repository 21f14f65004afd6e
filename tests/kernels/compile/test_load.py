"""Tiny kernels: built into an object, loaded and called."""

from __future__ import annotations

import inspect
import sys

import numpy as np
import pytest
from numba.core.errors import NumbaError

from numparq.kernels.compile import build as build_module
from numparq.kernels.compile import fallback
from numparq.kernels.compile.build import build_object
from numparq.kernels.compile.load import load_object
from numparq.kernels.memory import load32
from numparq.kernels.registry import HELPERS, Kernel

OFFSET = 100


def _twice(x):
    return _once(x) * 2


def _once(x):
    return x


def add(data, pos, out):
    out[0] = _twice(load32(data, pos)) + OFFSET
    return pos + 4


def total(a, n, b, out):
    """Add arrays."""
    for i in range(n):
        out[i] = a[i] + b[i]
    return n


def divide(x, y):
    return x // y


def first_address(objects, n):
    return objects[0] if n else 0


KERNELS = {
    "add": Kernel(add, ("u1", "x", "i8")),
    "total": Kernel(total, ("u4", "x", "u4", "u4"), noalias=True),
    "divide": Kernel(divide, ("x", "x")),
    "first_address": Kernel(first_address, ("O", "x"), gil=True),
}


@pytest.fixture(scope="module", autouse=True)
def helpers():
    HELPERS.extend([_twice, _once])
    yield
    HELPERS.remove(_twice)
    HELPERS.remove(_once)


@pytest.fixture(scope="module")
def code(helpers):
    return build_object(KERNELS)


@pytest.fixture(scope="module", params=["object", "dispatcher", "python"])
def tiny(request, helpers):
    if request.param == "python":
        return fallback.python_functions(KERNELS)
    if request.param == "dispatcher":
        return fallback.dispatchers(KERNELS, None)
    return load_object(request.getfixturevalue("code"))


DATA = np.frombuffer(bytes([1, 2, 0, 0, 9, 0, 0, 0]), np.uint8)  # read-only


def test_helpers_intrinsics_and_read_only_arrays(tiny):
    out = np.zeros(1, np.int64)
    assert not DATA.flags.writeable
    assert tiny["add"](DATA, 4, out) == 8
    assert out[0] == 118
    assert tiny["add"](DATA, np.int32(0), out) == 4
    assert out[0] == 2 * 513 + 100


def test_arrays_of_equal_item_size_are_reinterpreted(tiny):
    out = np.zeros(1, "M8[us]")
    tiny["add"](DATA.view(np.int8), 4, out)
    assert out.view(np.int64)[0] == 118


def test_unsigned_arrays_of_any_length(tiny):
    a, b, out = np.arange(9, dtype=np.uint32), np.arange(9, dtype=np.uint32) * 5, np.full(10, 7, np.uint32)
    assert tiny["total"](a, 9, b, out) == 9
    assert out.tolist() == [6 * i for i in range(9)] + [7]
    assert tiny["total"](np.empty(0, np.uint32), 0, np.empty(0, np.uint32), np.empty(0, np.uint32)) == 0


def test_integers_of_64_bits(tiny):
    assert tiny["divide"](-(1 << 63), 2) == -(1 << 62)
    assert tiny["divide"](-1, 1) == -1
    assert tiny["divide"]((1 << 63) - 1, 1) == (1 << 63) - 1


@pytest.mark.parametrize(
    "args",
    [
        (DATA, 4),
        (DATA, 4, np.zeros(1, np.int64), 1),
        (DATA, 4, np.zeros(1, np.int32)),
        (DATA, 4, np.zeros(1, ">i8")),
        (DATA, 4, np.zeros((1, 1), np.int64)),
        (DATA, 4, np.zeros(4, np.int64)[::2]),
        (DATA, 4, np.zeros(9, np.uint8)[1:].view(np.int64)),
        (DATA, 4, np.array([None])),
        (DATA, 4, [0]),
        (DATA, 4, None),
        (bytes(DATA), 4, np.zeros(1, np.int64)),
        (DATA, "4", np.zeros(1, np.int64)),
        (DATA, 4.0, np.zeros(1, np.int64)),
        (DATA, DATA, np.zeros(1, np.int64)),
    ],
)
def test_wrong_arguments_are_refused(tiny, args):
    with pytest.raises(TypeError):
        tiny["add"](*args)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((DATA, 4), "kernel add takes 3 arguments, not 2"),
        ((DATA, 4, [0]), "argument 2 must be an array with items of 8 bytes, not <class 'list'>"),
        (
            (DATA, 4, np.zeros((1, 1), np.int32)),
            "argument 2 .* of 8 bytes; it has 2 dimensions and dtype int32",
        ),
        ((DATA, 4.0, np.zeros(1, np.int64)), "float"),
    ],
)
def test_refusals_name_the_argument(code, args, message):
    with pytest.raises(TypeError, match=message):
        load_object(code)["add"](*args)
    with pytest.raises(TypeError, match="of 8 bytes that are Python objects; it has 1 dimensions and dtype uint8"):
        load_object(code)["first_address"](DATA, 1)


def test_kernels_have_signatures(code):
    total = load_object(code)["total"]
    assert str(inspect.signature(total)) == "(a, n, b, out, /)"
    assert total.__name__ == "total"
    assert total.__doc__ == "Add arrays."
    with pytest.raises(TypeError):
        total(a=1)


class Falsy:
    """An object whose conversion to an int fails."""

    def __index__(self):
        raise KeyError("no int")


def test_errors_of_arguments_are_raised(tiny):
    with pytest.raises(KeyError):
        tiny["divide"](Falsy(), 1)


def test_arguments_leak_no_references(code):
    add, out, number = load_object(code)["add"], np.zeros(1, np.int64), 1 << 40
    before = [sys.getrefcount(each) for each in (DATA, out, number, out.dtype)]
    for _ in range(100):
        add(DATA, 4, out)
        with pytest.raises(TypeError):
            add(DATA, number, out.dtype)
        with pytest.raises(TypeError):
            add(DATA, 4, DATA)
    assert [sys.getrefcount(each) for each in (DATA, out, number, out.dtype)] == before


def test_array_subclasses_are_accepted(tiny, tmp_path):
    path = tmp_path / "data"
    path.write_bytes(DATA.tobytes())
    out = np.zeros(1, np.int64)
    assert tiny["add"](np.memmap(path, np.uint8, mode="r"), 4, out) == 8
    assert out[0] == 118


def test_object_arrays_are_passed_as_addresses(code):
    array = np.array(["a", None], object)
    assert load_object(code)["first_address"](array, 2) == id("a")
    dispatched = fallback.dispatchers(KERNELS, None)
    assert dispatched["first_address"](array, 2) == id("a")


def test_too_large_integer_raises_overflow_error(code):
    with pytest.raises(OverflowError):
        load_object(code)["divide"](1 << 63, 1)


def test_allocating_kernel_does_not_compile():
    def allocate(n):
        return len(np.empty(n))

    with pytest.raises(NumbaError):
        build_object({"allocate": Kernel(allocate, ("x",))})


def test_missing_symbol_raises(code):
    with pytest.raises(RuntimeError):
        load_object(code.replace(b"PyLong_AsLongLong", b"PyLong_AsLongLing"))


def no_pipeline(kernels):
    raise AttributeError("Numba's inner classes have changed")


def test_both_compilers_give_equal_results(monkeypatch):
    quick = load_object(build_object(KERNELS))
    monkeypatch.setattr(build_module, "_compile_with_pipeline", no_pipeline)
    for loaded in (load_object(build_object(KERNELS)), quick):
        out = np.zeros(1, np.int64)
        assert loaded["add"](DATA, 4, out) == 8
        assert out[0] == 118


def test_process_addresses_in_code_are_refused():
    with pytest.raises(TypeError, match="ExternalFunction"):
        build_module._check_no_addresses("define i64 @f() {\n %x = load i64, ptr inttoptr (i64 140123456789 to ptr)\n}")
