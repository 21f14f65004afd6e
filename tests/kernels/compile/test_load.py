"""Tiny kernels: built into an object, loaded and called."""

from __future__ import annotations

import numpy as np
import pytest
from numba.core.errors import NumbaError

from numparq.kernels.compile import build as build_module
from numparq.kernels.compile import fallback
from numparq.kernels.compile.bind import wrap_entry
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
    entries = load_object(request.getfixturevalue("code"), list(KERNELS))
    return {name: wrap_entry(name, kernel.signature, entries[name]) for name, kernel in KERNELS.items()}


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


def test_array_subclasses_are_accepted(tiny, tmp_path):
    path = tmp_path / "data"
    path.write_bytes(DATA.tobytes())
    out = np.zeros(1, np.int64)
    assert tiny["add"](np.memmap(path, np.uint8, mode="r"), 4, out) == 8
    assert out[0] == 118


def test_object_arrays_are_passed_as_addresses(code):
    entries = load_object(code, list(KERNELS))
    array = np.array(["a", None], object)
    assert entries["first_address"]((array, 2)) == id("a")
    dispatched = fallback.dispatchers(KERNELS, None)
    assert dispatched["first_address"](array, 2) == id("a")


def test_too_large_integer_raises_overflow_error(code):
    divide = wrap_entry("divide", ("x", "x"), load_object(code, list(KERNELS))["divide"])
    with pytest.raises(OverflowError):
        divide(1 << 63, 1)


def test_allocating_kernel_does_not_compile():
    def allocate(n):
        return len(np.empty(n))

    with pytest.raises(NumbaError):
        build_object({"allocate": Kernel(allocate, ("x",))})


def test_missing_symbol_raises(code):
    with pytest.raises(RuntimeError):
        load_object(code, ["add", "no_such_kernel"])


def test_both_compilers_give_equal_results():
    names = list(KERNELS)
    slow = build_module._emit(build_module._compile_with_public_api(KERNELS), KERNELS, None, None)
    quick = build_module._emit(build_module._compile_with_pipeline(KERNELS), KERNELS, None, None)
    for made in (slow, quick):
        out = np.zeros(1, np.int64)
        assert load_object(made, names)["add"]((DATA, 4, out)) == 8
        assert out[0] == 118


def test_process_addresses_in_code_are_refused():
    with pytest.raises(TypeError, match="ExternalFunction"):
        build_module._check_no_addresses("define i64 @f() {\n %x = load i64, ptr inttoptr (i64 140123456789 to ptr)\n}")
