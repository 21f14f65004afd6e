"""Unaligned loads, stores and copies at byte positions of arrays, as intrinsics with Python twins."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .registry import intrinsic_twin

_MASK64 = (1 << 64) - 1


def _loader(bits: int) -> Callable[[], Callable[..., Any]]:
    """Return the factory of an intrinsic ``(data, pos) -> int64`` (uint64 for 64 bits) that loads and zero-extends."""

    def make() -> Callable[..., Any]:
        from llvmlite import ir
        from numba import types
        from numba.extending import intrinsic

        @intrinsic
        def load(typingctx, data, pos):
            def codegen(context, builder, signature, args):
                address = byte_address(context, builder, signature.args[0], args[0], args[1])
                value = builder.load(builder.bitcast(address, ir.IntType(bits).as_pointer()), align=1)
                return value if bits == 64 else builder.zext(value, ir.IntType(64))

            return (types.uint64 if bits == 64 else types.int64)(data, types.int64), codegen

        return load

    return make


def _storer(bits: int) -> Callable[[], Callable[..., Any]]:
    """Return the factory of an intrinsic ``(data, pos, value) -> None`` that stores the low `bits` bits of `value`."""

    def make() -> Callable[..., Any]:
        from llvmlite import ir
        from numba import types
        from numba.extending import intrinsic

        @intrinsic
        def store(typingctx, data, pos, value):
            def codegen(context, builder, signature, args):
                address = byte_address(context, builder, signature.args[0], args[0], args[1])
                number = args[2] if bits == 64 else builder.trunc(args[2], ir.IntType(bits))
                builder.store(number, builder.bitcast(address, ir.IntType(bits).as_pointer()), align=1)
                return context.get_dummy_value()

            return types.none(data, types.int64, types.uint64 if bits == 64 else types.int64), codegen

        return store

    return make


def byte_address(context: Any, builder: Any, array_type: Any, array: Any, pos: Any) -> Any:
    """Return the address of byte `pos` of a uint8 array, in LLVM IR."""
    pointer = context.make_array(array_type)(context, builder, array).data
    return builder.gep(pointer, [pos])


def _make_copy16() -> Callable[..., Any]:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def copy(typingctx, out, out_pos, data, pos):
        def codegen(context, builder, signature, args):
            vector = ir.VectorType(ir.IntType(64), 2).as_pointer()
            source = byte_address(context, builder, signature.args[2], args[2], args[3])
            target = byte_address(context, builder, signature.args[0], args[0], args[1])
            value = builder.load(builder.bitcast(source, vector), align=1)
            builder.store(value, builder.bitcast(target, vector), align=1)
            return context.get_dummy_value()

        return types.none(out, types.int64, data, types.int64), codegen

    return copy


def _make_copy_bytes() -> Callable[..., Any]:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    @intrinsic
    def copy(typingctx, out, out_pos, data, pos, count):
        def codegen(context, builder, signature, args):
            source = byte_address(context, builder, signature.args[2], args[2], args[3])
            target = byte_address(context, builder, signature.args[0], args[0], args[1])
            cgutils.raw_memcpy(builder, target, source, args[4], ir.Constant(ir.IntType(64), 1))
            return context.get_dummy_value()

        return types.none(out, types.int64, data, types.int64, types.int64), codegen

    return copy


def _make_fill_bytes() -> Callable[..., Any]:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    @intrinsic
    def fill(typingctx, out, pos, value, count):
        def codegen(context, builder, signature, args):
            target = byte_address(context, builder, signature.args[0], args[0], args[1])
            cgutils.memset(builder, target, args[3], builder.trunc(args[2], ir.IntType(8)))
            return context.get_dummy_value()

        return types.none(out, types.int64, types.int64, types.int64), codegen

    return fill


def _make_store_float(name: str) -> Callable[..., Any]:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    number = {"float32": ir.FloatType, "float64": ir.DoubleType}[name]

    @intrinsic
    def store(typingctx, data, pos, value):
        def codegen(context, builder, signature, args):
            address = byte_address(context, builder, signature.args[0], args[0], args[1])
            builder.store(args[2], builder.bitcast(address, number().as_pointer()), align=1)
            return context.get_dummy_value()

        return types.none(data, types.int64, getattr(types, name)), codegen

    return store


def _make_popcount() -> Callable[..., Any]:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def popcount(typingctx, value):
        def codegen(context, builder, signature, args):
            return builder.ctpop(args[0]) if hasattr(builder, "ctpop") else _call_ctpop(builder, args[0], ir)

        return types.int64(types.uint64), codegen

    return popcount


def _call_ctpop(builder: Any, value: Any, ir: Any) -> Any:
    function = builder.module.declare_intrinsic("llvm.ctpop", [ir.IntType(64)])
    return builder.call(function, [value])


@intrinsic_twin(_loader(8))
def load8(data: np.ndarray, pos: int) -> int:
    """Load one byte, as an int64."""
    return int(data[pos])


@intrinsic_twin(_loader(16))
def load16(data: np.ndarray, pos: int) -> int:
    """Load two bytes, as a non-negative int64."""
    return int.from_bytes(data[pos : pos + 2].tobytes(), "little")


@intrinsic_twin(_loader(32))
def load32(data: np.ndarray, pos: int) -> int:
    """Load four bytes, as a non-negative int64."""
    return int.from_bytes(data[pos : pos + 4].tobytes(), "little")


@intrinsic_twin(_loader(64))
def load64(data: np.ndarray, pos: int) -> np.uint64:
    """Load eight bytes, as a uint64."""
    return np.uint64(int.from_bytes(data[pos : pos + 8].tobytes(), "little"))


@intrinsic_twin(_storer(8))
def store8(out: np.ndarray, pos: int, value: int) -> None:
    """Store the low byte of an int64."""
    out[pos] = int(value) & 0xFF


@intrinsic_twin(_storer(16))
def store16(out: np.ndarray, pos: int, value: int) -> None:
    """Store the low two bytes of an int64."""
    out[pos : pos + 2] = np.frombuffer((int(value) & 0xFFFF).to_bytes(2, "little"), np.uint8)


@intrinsic_twin(_storer(32))
def store32(out: np.ndarray, pos: int, value: int) -> None:
    """Store the low four bytes of an int64."""
    out[pos : pos + 4] = np.frombuffer((int(value) & 0xFFFFFFFF).to_bytes(4, "little"), np.uint8)


@intrinsic_twin(_storer(64))
def store64(out: np.ndarray, pos: int, value: int | np.uint64) -> None:
    """Store a uint64."""
    out[pos : pos + 8] = np.frombuffer((int(value) & _MASK64).to_bytes(8, "little"), np.uint8)


@intrinsic_twin(partial(_make_store_float, "float32"))
def store_float32(out: np.ndarray, pos: int, value: float) -> None:
    """Store a float32."""
    out[pos : pos + 4] = np.frombuffer(np.float32(value).tobytes(), np.uint8)


@intrinsic_twin(partial(_make_store_float, "float64"))
def store_float64(out: np.ndarray, pos: int, value: float) -> None:
    """Store a float64."""
    out[pos : pos + 8] = np.frombuffer(np.float64(value).tobytes(), np.uint8)


@intrinsic_twin(_make_copy16)
def copy16(out: np.ndarray, out_pos: int, data: np.ndarray, pos: int) -> None:
    """Copy sixteen bytes: all are loaded before any is stored."""
    out[out_pos : out_pos + 16] = data[pos : pos + 16].copy()


@intrinsic_twin(_make_copy_bytes)
def copy_bytes(out: np.ndarray, out_pos: int, data: np.ndarray, pos: int, count: int) -> None:
    """Copy `count` bytes between regions that do not overlap."""
    out[out_pos : out_pos + count] = data[pos : pos + count]


@intrinsic_twin(_make_fill_bytes)
def fill_bytes(out: np.ndarray, pos: int, value: int, count: int) -> None:
    """Set `count` bytes to the low byte of `value`."""
    out[pos : pos + count] = int(value) & 0xFF


@intrinsic_twin(_make_popcount)
def popcount(value: np.uint64) -> int:
    """Count the set bits of a uint64."""
    return int(value).bit_count()
