"""CRC-32 of page bodies, by carry-less multiplication or tables, and CRC-32C."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np

from .memory import load8, load64
from .registry import helper, intrinsic_twin, kernel
from .status import BAD_CRC
from .tables import GCM_OVERHEAD, P_BODY, P_COMPRESSED, P_CRC, P_SEALED, PAGE_FIELDS

POLYNOMIAL = 0xEDB88320  # reflected, without the coefficient of x**32
ALL_ONES = 0xFFFFFFFF  # initial register
BLOCK = 16
LEAST = 4 * BLOCK  # below so many bytes, tables are as fast

_DIVISOR = POLYNOMIAL << 1 | 1
_QUOTIENT = 0x1F7011641  # x**64 divided by the polynomial


def _tables() -> np.ndarray:
    """Return the eight CRC-32 tables of 256 entries, concatenated; table k is for a byte with k bytes after it."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(POLYNOMIAL), table >> 1).astype(np.uint32)
    tables = [table]
    for _ in range(7):
        tables.append((tables[-1] >> 8) ^ table[tables[-1] & 0xFF])
    return np.concatenate(tables)


_TABLES = _tables().astype(np.int64)


def _table() -> np.ndarray:
    """Return the CRC-32C table: what a byte does to the remainder."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0x82F63B78), table >> 1).astype(np.uint32)
    return table.astype(np.int64)


_TABLE = _table()


def _power_mod(exponent: int) -> int:
    """Return ``x**exponent mod P`` as a 64-bit word."""
    rest = 1 << 31
    for _ in range(exponent):
        rest = rest >> 1 ^ (POLYNOMIAL if rest & 1 else 0)
    return rest << 32


def has_clmul() -> bool:
    """Whether the host CPU has the carry-less multiplication of x86 (PCLMULQDQ)."""
    return "+pclmul" in _host_features().split(",")


def _host_features() -> str:
    """Return LLVM's features of the host CPU, as in ``+sse2,-avx512f``."""
    import llvmlite.binding as llvm

    features: str = llvm.get_host_cpu_features().flatten()
    return features


class _FoldWriter:
    """Writer of an LLVM function ``(address, number of blocks, at least four) -> register`` into a module."""

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
        # Without this attribute LLVM aborts the process if Numba compiles for a CPU that lacks the instruction. It
        # replaces all features of the target: alone, +pclmul would permit what a virtual machine's CPU of that name
        # hides, such as AVX-512. llvmlite's own `add` only takes attributes that it knows.
        set.add(self._function.attributes, f'"target-features"="{_host_features()}"')
        self._builder = ir.IRBuilder(self._function.append_basic_block("entry"))

    def write(self) -> Any:
        """Write the body and return the function."""
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
        """Fold a block into one that is `distance` blocks later."""
        bits = 8 * BLOCK * distance
        powers = self._pair(_power_mod(bits + 63), _power_mod(bits - 1))
        products = self._multiply(block, powers, 0x00), self._multiply(block, powers, 0x11)
        return self._builder.xor(self._builder.xor(*products), later)

    def _divided(self, block: Any) -> Any:
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

    def _multiply(self, a: Any, b: Any, which: int) -> Any:
        """Multiply the low words (`which` 0x00) or the high words (0x11) of two vectors."""
        return self._builder.call(self._instruction, [a, b, self._byte(which)])

    def _product(self, word: Any, factor: int) -> tuple[Any, Any]:
        """Multiply two words; return the low and the high word of the product."""
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


def _make_fold_crc32() -> Callable[..., Any]:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    word, there = ir.IntType(64), has_clmul()

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
                    fold_blocks = _FoldWriter(builder.module).write()
                    builder.store(builder.call(fold_blocks, [builder.gep(first, [pos]), blocks]), register)
                    builder.store(builder.add(pos, builder.shl(blocks, word(4))), left)
            return context.make_tuple(builder, signature.return_type, [builder.load(register), builder.load(left)])

        return types.UniTuple(types.int64, 2)(data, types.int64, types.int64), codegen

    return fold


@intrinsic_twin(_make_fold_crc32)
def fold_crc32(data: np.ndarray, pos: int, end: int) -> tuple[int, int]:
    """Fold the whole 16-byte blocks of ``data[pos:end]``; return the CRC-32 register (inverted CRC) and their end.

    Below `LEAST` bytes, or on a CPU without PCLMULQDQ, nothing is folded. No byte past `end` is read.
    """
    stop = end - (end - pos) % BLOCK if end - pos >= LEAST else pos
    return zlib.crc32(data[pos:stop].data) ^ ALL_ONES, stop


@helper
def crc32(data, pos, count):
    """Return the CRC-32 of ``data[pos : pos + count]``."""
    end = pos + count
    crc, pos = fold_crc32(data, pos, end)
    whole = end - ((end - pos) & 7)
    while pos < whole:
        word = load64(data, pos)
        low = np.int64(word & np.uint64(0xFFFFFFFF)) ^ crc
        high = np.int64(word >> np.uint64(32))
        crc = (
            _TABLES[1792 + (low & 0xFF)]
            ^ _TABLES[1536 + ((low >> 8) & 0xFF)]
            ^ _TABLES[1280 + ((low >> 16) & 0xFF)]
            ^ _TABLES[1024 + (low >> 24)]
            ^ _TABLES[768 + (high & 0xFF)]
            ^ _TABLES[512 + ((high >> 8) & 0xFF)]
            ^ _TABLES[256 + ((high >> 16) & 0xFF)]
            ^ _TABLES[high >> 24]
        )
        pos += 8
    for i in range(pos, end):
        crc = (crc >> 8) ^ _TABLES[(crc ^ load8(data, i)) & 0xFF]
    return crc ^ 0xFFFFFFFF


@kernel("i8 x x u1 i8")
def check_page_crcs(pages, first, last, raw, state):
    """Check the CRC of every page from `first` to `last` (exclusive) that has one, over the bytes as stored.

    Return 0, or BAD_CRC with the page in ``state[0]``. The tag of a GCM module says more.
    """
    for number in range(first, last):
        page = number * PAGE_FIELDS
        expected, body, sealed = pages[page + P_CRC], pages[page + P_BODY], pages[page + P_SEALED]
        if sealed == GCM_OVERHEAD:
            continue
        if expected >= 0 and crc32(raw, body - sealed, pages[page + P_COMPRESSED] + sealed) != expected:
            state[0] = number
            return BAD_CRC
    return 0


@kernel("u1 x")
def crc32c(data, count):
    """Return the CRC-32C of the first `count` bytes."""
    crc = 0xFFFFFFFF
    for i in range(count):
        crc = (crc >> 8) ^ _TABLE[(crc ^ load8(data, i)) & 0xFF]
    return crc ^ 0xFFFFFFFF
