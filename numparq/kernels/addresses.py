"""Raw loads at addresses, for kernels that look into Python objects: intrinsics, with their Python twins.

What `numparq.kernels.memory` is for positions in arrays. Nothing is checked.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .registry import intrinsic_twin


def _loader_at(bits: int, signed: bool = False) -> Callable[[], Callable]:
    """Make an intrinsic ``(address) -> int64`` that loads `bits` bits, zero-extended; a uint64 of 64 unsigned ones."""

    def make() -> Callable:
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
def byte_at(address: int) -> int:
    """Load the byte at an address."""
    return _at(address, 1)


@intrinsic_twin(_loader_at(16))
def half_at(address: int) -> int:
    """Load two bytes at an address, as a non-negative int64."""
    return _at(address, 2)


@intrinsic_twin(_loader_at(32))
def word_at(address: int) -> int:
    """Load four bytes at an address, as a non-negative int64."""
    return _at(address, 4)


@intrinsic_twin(_loader_at(64, signed=True))
def int64_at(address: int) -> int:
    """Load an int64 at an address."""
    return _at(address, 8, signed=True)


@intrinsic_twin(_loader_at(64))
def bits_at(address: int) -> np.uint64:
    """Load eight bytes at an address, as a uint64."""
    return np.uint64(_at(address, 8))


def _make_copy_from() -> Callable:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    from .memory import _address

    @intrinsic
    def copy_from(typingctx, out, pos, address, count):
        def codegen(context, builder, signature, args):
            target = _address(context, builder, signature.args[0], args[0], args[1])
            source = builder.inttoptr(args[2], target.type)
            cgutils.raw_memcpy(builder, target, source, args[3], ir.Constant(ir.IntType(64), 1))
            return context.get_dummy_value()

        return types.none(out, types.int64, types.int64, types.int64), codegen

    return copy_from


@intrinsic_twin(_make_copy_from)
def copy_from(out: np.ndarray, pos: int, address: int, count: int) -> None:
    """Copy bytes at an address to a uint8 array."""
    import ctypes

    out[pos : pos + count] = np.frombuffer(ctypes.string_at(int(address), int(count)), np.uint8)
