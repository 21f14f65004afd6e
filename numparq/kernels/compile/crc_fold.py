"""CRC-32 by carry-less multiplication (PCLMULQDQ), for the CPUs that have it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

from llvmlite import ir

from numparq.kernels.checksums import ALL_ONES, BLOCK, FOLD, LEAST, LEAST_FOLD, POLYNOMIAL

_DIVISOR = POLYNOMIAL << 1 | 1
_QUOTIENT = 0x1F7011641  # x**64 divided by the polynomial


def fold_text() -> str:
    """Return LLVM text of the functions that `fold_crc32` calls, for a CPU with PCLMULQDQ."""
    module = ir.Module()
    FoldWriter(module).write()
    least = ir.Function(module, ir.FunctionType(ir.IntType(64), []), LEAST_FOLD)
    ir.IRBuilder(least.append_basic_block("entry")).ret(ir.IntType(64)(LEAST))
    return str(module)


def _power_mod(exponent: int) -> int:
    """Return ``x**exponent mod P`` as a 64-bit word."""
    rest = 1 << 31
    for _ in range(exponent):
        rest = rest >> 1 ^ (POLYNOMIAL if rest & 1 else 0)
    return rest << 32


class FoldWriter:
    """Writer of an LLVM function ``(address, number of blocks, at least four) -> register`` into a module."""

    def __init__(self, module: ir.Module) -> None:
        from numba.core import cgutils

        self._cgutils = cgutils
        self._byte, self._index, self._word = ir.IntType(8), ir.IntType(32), ir.IntType(64)
        self._vector = ir.VectorType(self._word, 2)
        multiply = ir.FunctionType(self._vector, [self._vector, self._vector, self._byte])
        self._instruction = cgutils.get_or_insert_function(module, multiply, "llvm.x86.pclmulqdq")
        kind = ir.FunctionType(self._word, [self._byte.as_pointer(), self._word])
        self._function = ir.Function(module, kind, FOLD)
        self._builder = ir.IRBuilder(self._function.append_basic_block("entry"))

    def write(self) -> ir.Value:
        """Write the body and return the function."""
        address, blocks = self._function.args
        whole = self._builder.and_(blocks, self._word(-4))
        total = self._cgutils.alloca_once_value(self._builder, self._fold_by_four(address, whole))
        with self._range(whole, blocks, 1) as number:
            self._fold_into(total, 1, self._load(address, number))
        self._builder.ret(self._divided(self._builder.load(total)))
        return self._function

    def _fold_by_four(self, address: ir.Value, stop: ir.Value) -> ir.Value:
        """Fold the blocks up to `stop`, a multiple of four, into one."""
        begin = [self._load(address, self._word(i)) for i in range(4)]
        begin[0] = self._builder.xor(begin[0], self._pair(ALL_ONES, 0))
        folded = [self._cgutils.alloca_once_value(self._builder, block) for block in begin]
        with self._range(self._word(4), stop, 4) as number:
            for i, pointer in enumerate(folded):
                self._fold_into(pointer, 4, self._load(address, self._builder.add(number, self._word(i))))
        for earlier, pointer in pairwise(folded):
            self._builder.store(self._fold(self._builder.load(earlier), 1, self._builder.load(pointer)), pointer)
        return self._builder.load(folded[-1])

    def _fold_into(self, pointer: ir.Value, distance: int, later: ir.Value) -> None:
        self._builder.store(self._fold(self._builder.load(pointer), distance, later), pointer)

    def _fold(self, block: ir.Value, distance: int, later: ir.Value) -> ir.Value:
        """Fold a block into one that is `distance` blocks later."""
        bits = 8 * BLOCK * distance
        powers = self._pair(_power_mod(bits + 63), _power_mod(bits - 1))
        products = self._multiply(block, powers, 0x00), self._multiply(block, powers, 0x11)
        return self._builder.xor(self._builder.xor(*products), later)

    def _divided(self, block: ir.Value) -> ir.Value:
        """Return the remainder of a block, with 32 zero bits appended, by the polynomial: the register."""
        builder, half = self._builder, self._word(32)
        first, second = self._words(block)
        low, high = self._product(first, _power_mod(95))
        low = builder.xor(low, builder.shl(second, half))  # the first 32 bits are 0: 96 bits are left
        high = builder.xor(high, builder.lshr(second, half))
        word = builder.xor(high, self._product(low, _power_mod(63))[1])  # 64 bits
        quotient = self._product(self._lower_half(word), _QUOTIENT)[0]
        multiple = self._product(self._lower_half(quotient), _DIVISOR)[0]
        return builder.lshr(builder.xor(word, multiple), half)

    def _multiply(self, a: ir.Value, b: ir.Value, half: int) -> ir.Value:
        """Multiply the low words (`half` 0x00) or the high words (0x11) of two vectors."""
        return self._builder.call(self._instruction, [a, b, self._byte(half)])

    def _product(self, word: ir.Value, factor: int) -> tuple[ir.Value, ir.Value]:
        """Multiply two words; return the low and the high word of the product."""
        vector = self._builder.insert_element(self._pair(0, 0), word, self._index(0))
        return self._words(self._multiply(vector, self._pair(factor, 0), 0x00))

    def _words(self, vector: ir.Value) -> tuple[ir.Value, ir.Value]:
        extract = self._builder.extract_element
        return extract(vector, self._index(0)), extract(vector, self._index(1))

    def _lower_half(self, word: ir.Value) -> ir.Value:
        return self._builder.and_(word, self._word(0xFFFFFFFF))

    def _pair(self, low: int, high: int) -> ir.Value:
        return self._vector([self._word(low), self._word(high)])

    def _load(self, address: ir.Value, number: ir.Value) -> ir.Value:
        pointer = self._builder.gep(address, [self._builder.mul(number, self._word(BLOCK))])
        return self._builder.load(self._builder.bitcast(pointer, self._vector.as_pointer()), align=1)

    @contextmanager
    def _range(self, start: ir.Value, stop: ir.Value, step: int) -> Iterator[ir.Value]:
        with self._cgutils.for_range_slice(self._builder, start, stop, self._word(step)) as (number, _):
            yield number
