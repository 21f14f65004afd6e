"""BYTE_STREAM_SPLIT (Encodings.md, 9), decoded and encoded by vector shuffles."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from numparq.kernels.memory import byte_address, load8, store8
from numparq.kernels.registry import helper, intrinsic_twin, kernel

BYTES = 64


def _load(builder: Any, address: Any, size: int) -> Any:
    """Load a vector of `size` bytes, in LLVM IR."""
    from llvmlite import ir

    return builder.load(builder.bitcast(address, ir.VectorType(ir.IntType(8), size).as_pointer()), align=1)


def _store(builder: Any, address: Any, vector: Any) -> None:
    """Store a vector, in LLVM IR."""
    builder.store(vector, builder.bitcast(address, vector.type.as_pointer()), align=1)


def _shuffle(builder: Any, one: Any, other: Any, places: list[int]) -> Any:
    """Select the bytes at some positions of two vectors, in LLVM IR."""
    from llvmlite import ir

    return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places))


def _stream_addresses(
    context: Any, builder: Any, array_type: Any, array: Any, pos: Any, step: Any, streams: int
) -> list[Any]:
    """Return the addresses of the streams, `step` bytes apart, in LLVM IR."""
    places = [builder.add(pos, builder.mul(step, step.type(i))) for i in range(streams)]
    return [byte_address(context, builder, array_type, array, place) for place in places]


def _make_join(streams: int) -> Callable[..., Any]:
    """Build the intrinsic that joins the streams of values of `streams` bytes."""
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
            target = byte_address(context, builder, signature.args[0], args[0], args[1])
            _store(builder, target, _shuffle(builder, parts[0], parts[0], order))
            return context.get_dummy_value()

        return types.none(out, types.int64, data, types.int64, types.int64), codegen

    return join


def _make_split(streams: int) -> Callable[..., Any]:
    """Build the intrinsic that splits values of `streams` bytes into streams."""
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def split(typingctx, out, out_pos, step, data, pos):
        def codegen(context, builder, signature, args):
            values = _load(builder, byte_address(context, builder, signature.args[3], args[3], args[4]), BYTES)
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
    """Join 32 values of 2 bytes from streams that begin `step` bytes apart."""
    _join(2, out, out_pos, data, pos, step)


@intrinsic_twin(partial(_make_join, 4))
def join4(out: np.ndarray, out_pos: int, data: np.ndarray, pos: int, step: int) -> None:
    """Join 16 values of 4 bytes from streams that begin `step` bytes apart."""
    _join(4, out, out_pos, data, pos, step)


@intrinsic_twin(partial(_make_join, 8))
def join8(out: np.ndarray, out_pos: int, data: np.ndarray, pos: int, step: int) -> None:
    """Join 8 values of 8 bytes from streams that begin `step` bytes apart."""
    _join(8, out, out_pos, data, pos, step)


@intrinsic_twin(partial(_make_split, 2))
def split2(out: np.ndarray, out_pos: int, step: int, data: np.ndarray, pos: int) -> None:
    """Split 32 values of 2 bytes into streams that begin `step` bytes apart."""
    _split(2, out, out_pos, step, data, pos)


@intrinsic_twin(partial(_make_split, 4))
def split4(out: np.ndarray, out_pos: int, step: int, data: np.ndarray, pos: int) -> None:
    """Split 16 values of 4 bytes into streams that begin `step` bytes apart."""
    _split(4, out, out_pos, step, data, pos)


@intrinsic_twin(partial(_make_split, 8))
def split8(out: np.ndarray, out_pos: int, step: int, data: np.ndarray, pos: int) -> None:
    """Split 8 values of 8 bytes into streams that begin `step` bytes apart."""
    _split(8, out, out_pos, step, data, pos)


@helper
def join_streams(data, pos, count, width, out, out_pos):
    """Decode `count` values of `width` bytes whose streams begin at `pos`; the caller checks the bounds."""
    done = 0
    if width == 8:
        done = count & -8
        for i in range(0, done, 8):
            join8(out, out_pos + (i << 3), data, pos + i, count)
    elif width == 4:
        done = count & -16
        for i in range(0, done, 16):
            join4(out, out_pos + (i << 2), data, pos + i, count)
    elif width == 2:
        done = count & -32
        for i in range(0, done, 32):
            join2(out, out_pos + (i << 1), data, pos + i, count)
    for byte in range(width):
        for i in range(done, count):
            store8(out, out_pos + i * width + byte, load8(data, pos + byte * count + i))
    return 0


def max_byte_stream_split_bytes(count: int, width: int) -> int:
    """Return the bytes that `count` values of `width` bytes take."""
    return count * width


@kernel("u1 x x x u1 x")
def encode_byte_stream_split(values, width, start, stop, out, pos):
    """Encode values `start` to `stop`, of `width` bytes each, as BYTE_STREAM_SPLIT; return the new position."""
    count = stop - start
    first = start * width
    done = 0
    if width == 8:
        done = count & -8
        for i in range(0, done, 8):
            split8(out, pos + i, count, values, first + (i << 3))
    elif width == 4:
        done = count & -16
        for i in range(0, done, 16):
            split4(out, pos + i, count, values, first + (i << 2))
    elif width == 2:
        done = count & -32
        for i in range(0, done, 32):
            split2(out, pos + i, count, values, first + (i << 1))
    for byte in range(width):
        for i in range(done, count):
            store8(out, pos + byte * count + i, load8(values, first + i * width + byte))
    return pos + width * count
