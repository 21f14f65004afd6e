"""64 bytes of values, taken apart into streams of their first, second, ... bytes, or put together: BYTE_STREAM_SPLIT.

As in `memory`, each function is the Python twin of a Numba intrinsic; these are a shuffle of vector registers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from .memory import _address
from .registry import intrinsic_twin

BYTES = 64


def _load(builder, address, size):
    """Load so many bytes as a vector, in LLVM IR."""
    from llvmlite import ir

    return builder.load(builder.bitcast(address, ir.VectorType(ir.IntType(8), size).as_pointer()), align=1)


def _store(builder, address, vector):
    """Store a vector, in LLVM IR."""
    builder.store(vector, builder.bitcast(address, vector.type.as_pointer()), align=1)


def _shuffle(builder, one, other, places):
    """Make a vector of the bytes at some places of two vectors, in LLVM IR."""
    from llvmlite import ir

    return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places))


def _stream_addresses(context, builder, array_type, array, pos, step, streams):
    """Give the addresses of the streams, `step` bytes apart, in LLVM IR."""
    places = [builder.add(pos, builder.mul(step, step.type(i))) for i in range(streams)]
    return [_address(context, builder, array_type, array, place) for place in places]


def _make_join(streams: int) -> Callable:
    """Make the intrinsic that puts values of `streams` bytes together."""
    from numba import types
    from numba.extending import intrinsic

    run = BYTES // streams
    order = [stream * run + i for i in range(run) for stream in range(streams)]

    @intrinsic
    def join(typingctx, out, out_pos, data, pos, step):
        def codegen(context, builder, signature, args):
            addresses = _stream_addresses(context, builder, signature.args[2], args[2], args[3], args[4], streams)
            parts = [_load(builder, address, run) for address in addresses]
            while len(parts) > 1:
                both = list(range(2 * parts[0].type.count))
                parts = [_shuffle(builder, *pair, both) for pair in zip(parts[::2], parts[1::2], strict=True)]
            target = _address(context, builder, signature.args[0], args[0], args[1])
            _store(builder, target, _shuffle(builder, parts[0], parts[0], order))
            return context.get_dummy_value()

        return types.none(out, types.int64, data, types.int64, types.int64), codegen

    return join


def _make_split(streams: int) -> Callable:
    """Make the intrinsic that takes values of `streams` bytes apart."""
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def split(typingctx, out, out_pos, step, data, pos):
        def codegen(context, builder, signature, args):
            values = _load(builder, _address(context, builder, signature.args[3], args[3], args[4]), BYTES)
            addresses = _stream_addresses(context, builder, signature.args[0], args[0], args[1], args[2], streams)
            for stream, address in enumerate(addresses):
                _store(builder, address, _shuffle(builder, values, values, list(range(stream, BYTES, streams))))
            return context.get_dummy_value()

        return types.none(out, types.int64, types.int64, data, types.int64), codegen

    return split


def _join(streams: int, out: np.ndarray, out_pos: int, data: np.ndarray, pos: int, step: int) -> None:
    run = BYTES // streams
    parts = [data[pos + i * step : pos + i * step + run] for i in range(streams)]
    out[out_pos : out_pos + BYTES] = np.stack(parts, axis=1).reshape(-1)


def _split(streams: int, out: np.ndarray, out_pos: int, step: int, data: np.ndarray, pos: int) -> None:
    values = np.array(data[pos : pos + BYTES]).reshape(-1, streams)
    for i in range(streams):
        out[out_pos + i * step : out_pos + i * step + len(values)] = values[:, i]


@intrinsic_twin(partial(_make_join, 2))
def join2(out: np.ndarray, out_pos: int, data: np.ndarray, pos: int, step: int) -> None:
    """Put 32 values of 2 bytes together, whose streams begin `step` bytes apart."""
    _join(2, out, out_pos, data, pos, step)


@intrinsic_twin(partial(_make_join, 4))
def join4(out: np.ndarray, out_pos: int, data: np.ndarray, pos: int, step: int) -> None:
    """Put 16 values of 4 bytes together, whose streams begin `step` bytes apart."""
    _join(4, out, out_pos, data, pos, step)


@intrinsic_twin(partial(_make_join, 8))
def join8(out: np.ndarray, out_pos: int, data: np.ndarray, pos: int, step: int) -> None:
    """Put 8 values of 8 bytes together, whose streams begin `step` bytes apart."""
    _join(8, out, out_pos, data, pos, step)


@intrinsic_twin(partial(_make_split, 2))
def split2(out: np.ndarray, out_pos: int, step: int, data: np.ndarray, pos: int) -> None:
    """Take 32 values of 2 bytes apart, into streams that begin `step` bytes apart."""
    _split(2, out, out_pos, step, data, pos)


@intrinsic_twin(partial(_make_split, 4))
def split4(out: np.ndarray, out_pos: int, step: int, data: np.ndarray, pos: int) -> None:
    """Take 16 values of 4 bytes apart, into streams that begin `step` bytes apart."""
    _split(4, out, out_pos, step, data, pos)


@intrinsic_twin(partial(_make_split, 8))
def split8(out: np.ndarray, out_pos: int, step: int, data: np.ndarray, pos: int) -> None:
    """Take 8 values of 8 bytes apart, into streams that begin `step` bytes apart."""
    _split(8, out, out_pos, step, data, pos)
