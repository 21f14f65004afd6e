"""CRC-32 by carry-less multiplication, where the CPU has it: 64 bytes a step instead of eight.

A CRC is the rest of a division of polynomials over two elements: the bits are the coefficients, the first bit of the
bytes has the highest power, and PCLMULQDQ multiplies two polynomials of 64 coefficients. Sixteen bytes that stand n
bits before the end are worth as much as their product with ``x**n mod P``, which fits into sixteen bytes that stand at
the end: so a block is *folded* into a later one. Four blocks are folded forward side by side, since a multiplication
takes a few cycles but the next one need not wait; then they are folded into one, and that is divided with a quotient
estimated by multiplication (Barrett's way). The method is that of V. Gopal and others, "Fast CRC Computation for
Generic Polynomials Using PCLMULQDQ Instruction" (Intel, 2009).

Bits of CRC-32 are mirrored: bit 0 of a word is the coefficient of the highest power, x**63 in a word of 64 bits. The
product of two mirrored words, seen as a mirrored word of 128 bits, is ``x`` times what it ought to be, which is why the
powers below are all less by one than the distance.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np

from .registry import intrinsic_twin

POLYNOMIAL = 0xEDB88320  # without the coefficient of x**32
ALL_ONES = 0xFFFFFFFF  # what the register holds before the first byte
BLOCK = 16
LEAST = 4 * BLOCK  # bytes below which the table way is as good

_DIVISOR = POLYNOMIAL << 1 | 1
_QUOTIENT = 0x1F7011641  # of x**64 by the polynomial


def _power(exponent: int) -> int:
    """Give ``x**exponent mod P`` as a word of 64 bits."""
    rest = 1 << 31
    for _ in range(exponent):
        rest = rest >> 1 ^ (POLYNOMIAL if rest & 1 else 0)
    return rest << 32


def is_there() -> bool:
    """Tell whether this CPU, for which kernels are compiled, multiplies without carries as LLVM's x86 code does."""
    import llvmlite.binding as llvm

    return bool(llvm.get_host_cpu_features().get("pclmul"))


class _Writer:
    """Writes an LLVM function ``(address, number of blocks, at least four) -> register``.

    Parameters
    ----------
    module : llvmlite.ir.Module
        Where to.
    """

    def __init__(self, module: Any) -> None:
        from llvmlite import ir
        from numba.core import cgutils

        self._ir, self._cgutils = ir, cgutils
        self._byte, self._index, self._word = ir.IntType(8), ir.IntType(32), ir.IntType(64)
        self._vector = ir.VectorType(self._word, 2)
        multiply = ir.FunctionType(self._vector, [self._vector, self._vector, self._byte])
        self._instruction = cgutils.get_or_insert_function(module, multiply, "llvm.x86.pclmulqdq")
        kind = ir.FunctionType(self._word, [self._byte.as_pointer(), self._word])
        self._function = ir.Function(module, kind, module.get_unique_name("numparq_fold_crc32"))
        self._function.linkage = "internal"
        # Numba may have been told to compile for a CPU that lacks the instruction, over which LLVM ends the process
        # unless the function asks for it; llvmlite's own `add` only takes attributes that it knows.
        set.add(self._function.attributes, '"target-features"="+pclmul"')
        self._builder = ir.IRBuilder(self._function.append_basic_block("entry"))

    def write(self) -> Any:
        """Write the body; give the function."""
        address, blocks = self._function.args
        whole = self._builder.and_(blocks, self._word(-4))
        total = self._cgutils.alloca_once_value(self._builder, self._fold_by_four(address, whole))
        with self._range(whole, blocks, 1) as number:
            self._fold_into(total, 1, self._load(address, number))
        self._builder.ret(self._divided(self._builder.load(total)))
        return self._function

    def _fold_by_four(self, address: Any, stop: Any) -> Any:
        """Fold the blocks up to `stop`, a multiple of four, into one."""
        begin = [self._load(address, self._word(i)) for i in range(4)]
        begin[0] = self._builder.xor(begin[0], self._pair(ALL_ONES, 0))
        folded = [self._cgutils.alloca_once_value(self._builder, block) for block in begin]
        with self._range(self._word(4), stop, 4) as number:
            for i, place in enumerate(folded):
                self._fold_into(place, 4, self._load(address, self._builder.add(number, self._word(i))))
        for earlier, place in pairwise(folded):
            self._builder.store(self._fold(self._builder.load(earlier), 1, self._builder.load(place)), place)
        return self._builder.load(folded[-1])

    def _fold_into(self, place: Any, distance: int, later: Any) -> None:
        self._builder.store(self._fold(self._builder.load(place), distance, later), place)

    def _fold(self, block: Any, distance: int, later: Any) -> Any:
        """Add a block to one that comes `distance` blocks later."""
        bits = 8 * BLOCK * distance
        powers = self._pair(_power(bits + 63), _power(bits - 1))
        products = self._multiply(block, powers, 0x00), self._multiply(block, powers, 0x11)
        return self._builder.xor(self._builder.xor(*products), later)

    def _divided(self, block: Any) -> Any:
        """Divide a block, with 32 zero bits behind it, by the polynomial; give the rest, which is the register."""
        builder, half = self._builder, self._word(32)
        first, second = self._words(block)
        low, high = self._product(first, _power(95))
        low = builder.xor(low, builder.shl(second, half))  # its first 32 bits are 0: 96 bits are left
        high = builder.xor(high, builder.lshr(second, half))
        word = builder.xor(high, self._product(low, _power(63))[1])  # 64 bits
        quotient = self._product(self._lower_half(word), _QUOTIENT)[0]
        multiple = self._product(self._lower_half(quotient), _DIVISOR)[0]
        return builder.lshr(builder.xor(word, multiple), half)

    def _multiply(self, a: Any, b: Any, which: int) -> Any:
        """Multiply the low words (`which` 0x00) or the high words (0x11) of two vectors."""
        return self._builder.call(self._instruction, [a, b, self._byte(which)])

    def _product(self, word: Any, factor: int) -> tuple[Any, Any]:
        """Multiply two words; give the low and the high one of the product."""
        vector = self._builder.insert_element(self._pair(0, 0), word, self._index(0))
        return self._words(self._multiply(vector, self._pair(factor, 0), 0x00))

    def _words(self, vector: Any) -> tuple[Any, Any]:
        extract = self._builder.extract_element
        return extract(vector, self._index(0)), extract(vector, self._index(1))

    def _lower_half(self, word: Any) -> Any:
        return self._builder.and_(word, self._word(0xFFFFFFFF))

    def _pair(self, low: int, high: int) -> Any:
        return self._vector([self._word(low), self._word(high)])

    def _load(self, address: Any, number: Any) -> Any:
        place = self._builder.gep(address, [self._builder.mul(number, self._word(BLOCK))])
        return self._builder.load(self._builder.bitcast(place, self._vector.as_pointer()), align=1)

    @contextmanager
    def _range(self, start: Any, stop: Any, step: int) -> Iterator[Any]:
        with self._cgutils.for_range_slice(self._builder, start, stop, self._word(step)) as (number, _):
            yield number


def _make_fold_crc32() -> Callable:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    word, there = ir.IntType(64), is_there()

    @intrinsic
    def fold(typingctx, data, pos, end):
        def codegen(context, builder, signature, args):
            array, pos, end = args
            register = cgutils.alloca_once_value(builder, word(ALL_ONES))
            left = cgutils.alloca_once_value(builder, pos)
            size = builder.sub(end, pos)
            if there:
                with builder.if_then(builder.icmp_signed(">=", size, word(LEAST))):
                    first = context.make_array(signature.args[0])(context, builder, array).data
                    blocks = builder.lshr(size, word(4))
                    fold_blocks = _Writer(builder.module).write()
                    builder.store(builder.call(fold_blocks, [builder.gep(first, [pos]), blocks]), register)
                    builder.store(builder.add(pos, builder.shl(blocks, word(4))), left)
            return context.make_tuple(builder, signature.return_type, [builder.load(register), builder.load(left)])

        return types.UniTuple(types.int64, 2)(data, types.int64, types.int64), codegen

    return fold


@intrinsic_twin(_make_fold_crc32)
def fold_crc32(data: np.ndarray, pos: int, end: int) -> tuple[int, int]:
    """Take the first bytes of ``data[pos:end]`` into the register of a CRC-32: as many as go 64 a step.

    Parameters
    ----------
    data : numpy.ndarray of uint8
        Bytes; none but those asked for are read.
    pos, end : int
        Which.

    Returns
    -------
    register : int
        The CRC-32 of the bytes taken, all bits inverted.
    pos : int
        Where those that are left start. Where the CPU cannot do it, or there are less than `LEAST` bytes, all are.
    """
    stop = end - (end - pos) % BLOCK if end - pos >= LEAST else pos
    return zlib.crc32(data[pos:stop].data) ^ ALL_ONES, stop
