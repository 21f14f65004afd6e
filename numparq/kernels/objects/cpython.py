"""CPython's C API and raw loads at object addresses, as intrinsics with Python twins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numparq.kernels.registry import intrinsic_twin

_errors: list[type] = []  # stands for CPython's error indicator


def _loader_at(bits: int, signed: bool = False) -> Callable[[], Callable[..., Any]]:
    """Return the factory of an intrinsic ``(address) -> int64`` (uint64 for 64 unsigned bits) that zero-extends."""

    def make() -> Callable[..., Any]:
        from llvmlite import ir
        from numba import types
        from numba.extending import intrinsic

        @intrinsic
        def load(typingctx, address):
            def codegen(context, builder, signature, args):
                pointer = builder.inttoptr(args[0], ir.IntType(bits).as_pointer())
                value = builder.load(pointer, align=1)
                return value if bits == 64 else builder.zext(value, ir.IntType(64))

            return (types.int64 if signed or bits < 64 else types.uint64)(types.int64), codegen

        return load

    return make


def _at(address: int, count: int, signed: bool = False) -> int:
    import ctypes

    return int.from_bytes(ctypes.string_at(int(address), count), "little", signed=signed)


@intrinsic_twin(_loader_at(8))
def uint8_at(address: int) -> int:
    """Load the byte at an address."""
    return _at(address, 1)


@intrinsic_twin(_loader_at(16))
def uint16_at(address: int) -> int:
    """Load two bytes at an address, as a non-negative int64."""
    return _at(address, 2)


@intrinsic_twin(_loader_at(32))
def uint32_at(address: int) -> int:
    """Load four bytes at an address, as a non-negative int64."""
    return _at(address, 4)


@intrinsic_twin(_loader_at(64, signed=True))
def int64_at(address: int) -> int:
    """Load an int64 at an address."""
    return _at(address, 8, signed=True)


@intrinsic_twin(_loader_at(64))
def uint64_at(address: int) -> np.uint64:
    """Load eight bytes at an address, as a uint64."""
    return np.uint64(_at(address, 8))


def _make_copy_from() -> Callable[..., Any]:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    from numparq.kernels.memory import byte_address

    @intrinsic
    def copy_from(typingctx, out, pos, address, count):
        def codegen(context, builder, signature, args):
            target = byte_address(context, builder, signature.args[0], args[0], args[1])
            source = builder.inttoptr(args[2], target.type)
            cgutils.raw_memcpy(builder, target, source, args[3], ir.Constant(ir.IntType(64), 1))
            return context.get_dummy_value()

        return types.none(out, types.int64, types.int64, types.int64), codegen

    return copy_from


@intrinsic_twin(_make_copy_from)
def copy_from(out: np.ndarray, pos: int, address: int, count: int) -> None:
    """Copy `count` bytes from an address to a uint8 array."""
    import ctypes

    out[pos : pos + count] = np.frombuffer(ctypes.string_at(int(address), int(count)), np.uint8)


def _external(name: str, arity: int, result: bool = True) -> Callable[[], object]:
    """Return the factory of a C API function of int64s (addresses, sizes) that Numba can call."""

    def make() -> object:
        from numba import types

        answer = types.int64 if result else types.void
        return types.ExternalFunction(name, answer(*[types.int64] * arity))

    return make


def _call(name: str, *args: int) -> int:
    """Call a C API function from Python; return 0 if it raises."""
    import ctypes

    function = ctypes.pythonapi[name]
    function.argtypes, function.restype = [ctypes.c_ssize_t] * len(args), ctypes.c_ssize_t
    try:
        answer: int = function(*args)
    except (UnicodeDecodeError, MemoryError) as error:
        _errors.append(type(error))
        return 0
    return answer


@intrinsic_twin(_external("PyUnicode_DecodeUTF8", 3))
def decode_utf8(address: int, size: int, errors: int) -> int:
    """Build a str from UTF-8 and return its address, or 0 with the error set; `errors` is 0 (strict)."""
    return _call("PyUnicode_DecodeUTF8", address, size, errors)


@intrinsic_twin(_external("PyUnicode_New", 2))
def new_str(size: int, max_char: int) -> int:
    """Return the address of a new str with characters still to be written, or 0 with the error set."""
    return _call("PyUnicode_New", size, max_char)


def _make_has_new_str() -> Callable[..., Any]:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    word = ir.IntType(64)

    @intrinsic
    def has_new_str(typingctx):
        def codegen(context, builder, signature, args):
            kind = ir.FunctionType(word, [word, word])
            function = cgutils.get_or_insert_function(builder.module, kind, "PyUnicode_New")
            return builder.icmp_unsigned("!=", builder.ptrtoint(function, word), word(0))

        return types.boolean(), codegen

    return has_new_str


@intrinsic_twin(_make_has_new_str)
def has_new_str() -> bool:
    """Whether this Python has `new_str`, which is no part of its stable ABI."""
    return True


@intrinsic_twin(_external("PyBytes_FromStringAndSize", 2))
def new_bytes(address: int, size: int) -> int:
    """Return the address of a new bytes object, or 0 with the error set."""
    return _call("PyBytes_FromStringAndSize", address, size)


@intrinsic_twin(_external("PyLong_AsLongLong", 1))
def int_value(address: int) -> int:
    """Return the value of an int, or -1 with the error set if it does not fit int64."""
    import ctypes

    value: int = ctypes.cast(int(address), ctypes.py_object).value
    if not -1 << 63 <= value < 1 << 63:
        _errors.append(OverflowError)
        return -1
    return value


@intrinsic_twin(_external("PyDict_GetItemWithError", 2))
def dict_item(address: int, key: int) -> int:
    """Return the address of a dict's item, a borrowed reference; 0 without it, or with the error set."""
    return _call("PyDict_GetItemWithError", address, key)


@intrinsic_twin(_external("PyErr_Occurred", 0))
def current_error() -> int:
    """Return the address of the class of the error that is set, or 0."""
    return id(_errors[-1]) if _errors else 0


@intrinsic_twin(_external("PyErr_Clear", 0, result=False))
def clear_error() -> None:
    """Clear the error."""
    _errors.clear()


@intrinsic_twin(_external("Py_IncRef", 1, result=False))
def incref(address: int) -> None:
    """Increment the reference count."""
    _call("Py_IncRef", address)


@intrinsic_twin(_external("Py_DecRef", 1, result=False))
def decref(address: int) -> None:
    """Decrement the reference count."""
    _call("Py_DecRef", address)


def _make_address_of() -> Callable[..., Any]:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    from numparq.kernels.memory import byte_address

    @intrinsic
    def address_of(typingctx, data, pos):
        def codegen(context, builder, signature, args):
            return builder.ptrtoint(byte_address(context, builder, signature.args[0], args[0], args[1]), ir.IntType(64))

        return types.int64(data, types.int64), codegen

    return address_of


@intrinsic_twin(_make_address_of)
def address_of(data: np.ndarray, pos: int) -> int:
    """Return the address of byte `pos` of a uint8 array."""
    return data.ctypes.data + int(pos)


def _make_copy_to() -> Callable[..., Any]:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    from numparq.kernels.memory import byte_address

    @intrinsic
    def copy_to(typingctx, address, data, pos, count):
        def codegen(context, builder, signature, args):
            source = byte_address(context, builder, signature.args[1], args[1], args[2])
            target = builder.inttoptr(args[0], source.type)
            cgutils.raw_memcpy(builder, target, source, args[3], ir.Constant(ir.IntType(64), 1))
            return context.get_dummy_value()

        return types.none(types.int64, data, types.int64, types.int64), codegen

    return copy_to


@intrinsic_twin(_make_copy_to)
def copy_to(address: int, data: np.ndarray, pos: int, count: int) -> None:
    """Copy `count` bytes of a uint8 array to an address."""
    import ctypes

    ctypes.memmove(int(address), address_of(data, pos), int(count))
