"""CRC-32 of page bodies, by carry-less multiplication (`compile.crc_fold`) or tables, and CRC-32C."""

from __future__ import annotations

import zlib
from collections.abc import Callable
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
# Functions of compiled kernels that depend on the CPU: the least number of bytes to fold, and the fold.
LEAST_FOLD, FOLD = "numparq.least_fold", "numparq.fold_crc32"
NEVER = (1 << 63) - 1


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


def _make_fold_crc32() -> Callable[..., Any]:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    word, address = ir.IntType(64), ir.IntType(8).as_pointer()

    @intrinsic
    def fold(typingctx, data, pos, end):
        def codegen(context, builder, signature, args):
            array, pos, end = args
            register = cgutils.alloca_once_value(builder, word(ALL_ONES))
            left = cgutils.alloca_once_value(builder, pos)
            size = builder.sub(end, pos)
            least = builder.call(_weak_function(builder.module, LEAST_FOLD, word, [], NEVER), [])
            with builder.if_then(builder.icmp_signed(">=", size, least)):
                first = context.make_array(signature.args[0])(context, builder, array).data
                blocks = builder.lshr(size, word(4))
                fold_blocks = _weak_function(builder.module, FOLD, word, [address, word], 0)
                builder.store(builder.call(fold_blocks, [builder.gep(first, [pos]), blocks]), register)
                builder.store(builder.add(pos, builder.shl(blocks, word(4))), left)
            return context.make_tuple(builder, signature.return_type, [builder.load(register), builder.load(left)])

        return types.UniTuple(types.int64, 2)(data, types.int64, types.int64), codegen

    return fold


def _weak_function(module: Any, name: str, result: Any, arguments: list[Any], answer: int) -> Any:
    """Define a function that returns a constant; `compile.build.emit_object` replaces it for CPUs that can fold."""
    from llvmlite import ir

    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(result, arguments), name)
    function.linkage = "weak"
    ir.IRBuilder(function.append_basic_block("entry")).ret(result(answer))
    return function


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
