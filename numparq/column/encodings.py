"""Table of encodings, both ways: how each is written, and which kernels transcode it to PLAIN (Encodings.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from numparq.errors import UnsupportedError
from numparq.format.physical_type import PHYSICAL_NAMES
from numparq.kernels import alp_writing_kernels, delta_writing_kernels, writing_kernels
from numparq.kernels.encodings.alp import max_alp_bytes
from numparq.kernels.encodings.alp_scaling import WORK_SIZE
from numparq.kernels.encodings.byte_stream_split import max_byte_stream_split_bytes
from numparq.kernels.encodings.delta_binary_packed import max_delta_bytes
from numparq.kernels.encodings.delta_byte_arrays import max_delta_byte_array_bytes, max_delta_length_bytes
from numparq.kernels.encodings.hybrid_rle import max_hybrid_bytes
from numparq.kernels.enums import (
    ALP,
    BOOLEAN,
    BYTE_ARRAY,
    BYTE_STREAM_SPLIT,
    DELTA_BINARY_PACKED,
    DELTA_BYTE_ARRAY,
    DELTA_LENGTH_BYTE_ARRAY,
    DOUBLE,
    FIXED_LEN_BYTE_ARRAY,
    FLOAT,
    INT32,
    INT64,
    INT96,
    PLAIN,
    PLAIN_DICTIONARY,
    RLE,
    RLE_DICTIONARY,
)

from .dense_values import DenseLeaf

__all__ = ["ENCODING_PHYSICAL_TYPES"]

# Encoding -> physical types (Encodings.md). Decoders reject pages of other types.
TRANSCODED_TYPES = {
    DELTA_BINARY_PACKED: (INT32, INT64),
    DELTA_LENGTH_BYTE_ARRAY: (BYTE_ARRAY,),
    DELTA_BYTE_ARRAY: (BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY),
    BYTE_STREAM_SPLIT: (INT32, INT64, FLOAT, DOUBLE, FIXED_LEN_BYTE_ARRAY),
    ALP: (FLOAT, DOUBLE),
}
# (encoding, physical type) -> kernels that transcode such a page to PLAIN.
NO_TRANSCODER, DELTA_TRANSCODER, ALP_TRANSCODER = 0, 1, 2
TRANSCODERS = np.zeros((ALP + 2, FIXED_LEN_BYTE_ARRAY + 1), np.int64)

ENCODING_NAMES = {
    "PLAIN": PLAIN,
    "RLE": RLE,
    "RLE_DICTIONARY": RLE_DICTIONARY,
    "DELTA_BINARY_PACKED": DELTA_BINARY_PACKED,
    "DELTA_LENGTH_BYTE_ARRAY": DELTA_LENGTH_BYTE_ARRAY,
    "DELTA_BYTE_ARRAY": DELTA_BYTE_ARRAY,
    "BYTE_STREAM_SPLIT": BYTE_STREAM_SPLIT,
    "ALP": ALP,
}


class Encoder(NamedTuple):
    """Size bound and write function of an encoding.

    Attributes
    ----------
    max_bytes : callable
        ``(dense, first, last) -> int``: most bytes that values `first` to `last` (exclusive) can take.
    write : callable
        ``(dense, first, last, out, pos) -> int``: writes them into `out` at `pos`, returns the end position.
    """

    max_bytes: Callable[[DenseLeaf, int, int], int]
    write: Callable[[DenseLeaf, int, int, np.ndarray, int], int]


def _indices_room(dense: DenseLeaf, first: int, last: int) -> int:
    return 1 + max_hybrid_bytes(last - first, index_bit_width(dense.values.count))


def _write_indices(dense: DenseLeaf, first: int, last: int, out: np.ndarray, pos: int) -> int:
    width = index_bit_width(dense.values.count)
    out[pos] = width
    return writing_kernels.encode_hybrid_i4(dense.codes, first, last, width, out, pos + 1)


INDEX_ENCODER = Encoder(_indices_room, _write_indices)


def _fixed_room(dense: DenseLeaf, first: int, last: int) -> int:
    return (last - first) * dense.values.width


def _write_fixed(dense: DenseLeaf, first: int, last: int, out: np.ndarray, pos: int) -> int:
    width = dense.values.width
    end = pos + (last - first) * width
    out[pos:end] = dense.values.raw[first * width : last * width]
    return end


_FIXED = Encoder(_fixed_room, _write_fixed)


def _split_room(dense: DenseLeaf, first: int, last: int) -> int:
    return max_byte_stream_split_bytes(last - first, dense.values.width)


def _write_split(dense: DenseLeaf, first: int, last: int, out: np.ndarray, pos: int) -> int:
    values = dense.values
    return delta_writing_kernels.encode_byte_stream_split(values.raw, values.width, first, last, out, pos)


_SPLIT = Encoder(_split_room, _write_split)


def _delta_byte_array_room(dense: DenseLeaf, first: int, last: int) -> int:
    starts, ends = _bounds_of_values(dense, first, last)
    return max_delta_byte_array_bytes(last - first, int((ends - starts).sum()))


def _write_delta_byte_array(dense: DenseLeaf, first: int, last: int, out: np.ndarray, pos: int) -> int:
    count = last - first
    starts, ends = _bounds_of_values(dense, first, last)
    prefixes, suffixes = np.empty(count, np.int32), np.empty(count, np.int32)
    return delta_writing_kernels.encode_delta_byte_array(
        dense.values.raw, starts, ends, 0, count, prefixes, suffixes, out, pos
    )


_PREFIXES = Encoder(_delta_byte_array_room, _write_delta_byte_array)


def _boolean_room(dense: DenseLeaf, first: int, last: int) -> int:
    return (last - first + 7) // 8


def _write_booleans(dense: DenseLeaf, first: int, last: int, out: np.ndarray, pos: int) -> int:
    return writing_kernels.encode_plain_booleans(dense.values.data, first, last, out, pos)


def _binary_room(dense: DenseLeaf, first: int, last: int) -> int:
    return _num_bytes(dense, first, last) + 4 * (last - first)


def _write_binary(dense: DenseLeaf, first: int, last: int, out: np.ndarray, pos: int) -> int:
    values = dense.values
    return writing_kernels.encode_plain_binary(
        values.data, len(values.data), values.starts, values.ends, first, last, out, pos
    )


def _runs_room(dense: DenseLeaf, first: int, last: int) -> int:
    return 4 + max_hybrid_bytes(last - first, 1)


def _write_runs(dense: DenseLeaf, first: int, last: int, out: np.ndarray, pos: int) -> int:
    end = writing_kernels.encode_hybrid_u1(dense.values.data, first, last, 1, out, pos + 4)
    out[pos : pos + 4] = np.frombuffer((end - pos - 4).to_bytes(4, "little"), np.uint8)
    return end


def _delta_room(dense: DenseLeaf, first: int, last: int) -> int:
    return max_delta_bytes(last - first, dense.values.width)


def _write_delta4(dense: DenseLeaf, first: int, last: int, out: np.ndarray, pos: int) -> int:
    return delta_writing_kernels.encode_delta4(dense.values.data, first, last, out, pos)


def _write_delta8(dense: DenseLeaf, first: int, last: int, out: np.ndarray, pos: int) -> int:
    return delta_writing_kernels.encode_delta8(dense.values.data, first, last, out, pos)


def _delta_length_room(dense: DenseLeaf, first: int, last: int) -> int:
    return max_delta_length_bytes(last - first, _num_bytes(dense, first, last))


def _write_delta_length(dense: DenseLeaf, first: int, last: int, out: np.ndarray, pos: int) -> int:
    values, lengths = dense.values, np.empty(last - first, np.int32)
    return delta_writing_kernels.encode_delta_length(
        values.data, values.starts, values.ends, first, last, lengths, out, pos
    )


def _alp_room(dense: DenseLeaf, first: int, last: int) -> int:
    return max_alp_bytes(last - first, dense.values.width)


def _write_alp4(dense: DenseLeaf, first: int, last: int, out: np.ndarray, pos: int) -> int:
    data, work = dense.values.data, np.empty(WORK_SIZE, np.int64)
    return alp_writing_kernels.encode_alp4(data, data.view("i4"), first, last, work, out, pos)


def _write_alp8(dense: DenseLeaf, first: int, last: int, out: np.ndarray, pos: int) -> int:
    data, work = dense.values.data, np.empty(WORK_SIZE, np.int64)
    return alp_writing_kernels.encode_alp8(data, data.view("i8"), first, last, work, out, pos)


# (encoding, physical type) -> encoder, in the order of Encodings.md.
ENCODERS: dict[tuple[int, int], Encoder] = {
    **{(PLAIN, physical): _FIXED for physical in (INT32, INT64, INT96, FLOAT, DOUBLE, FIXED_LEN_BYTE_ARRAY)},
    (PLAIN, BOOLEAN): Encoder(_boolean_room, _write_booleans),
    (PLAIN, BYTE_ARRAY): Encoder(_binary_room, _write_binary),
    (RLE, BOOLEAN): Encoder(_runs_room, _write_runs),
    **{(RLE_DICTIONARY, physical): INDEX_ENCODER for physical in range(INT32, FIXED_LEN_BYTE_ARRAY + 1)},
    (DELTA_BINARY_PACKED, INT32): Encoder(_delta_room, _write_delta4),
    (DELTA_BINARY_PACKED, INT64): Encoder(_delta_room, _write_delta8),
    (DELTA_LENGTH_BYTE_ARRAY, BYTE_ARRAY): Encoder(_delta_length_room, _write_delta_length),
    **{(DELTA_BYTE_ARRAY, physical): _PREFIXES for physical in (BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY)},
    **{(BYTE_STREAM_SPLIT, physical): _SPLIT for physical in (INT32, INT64, FLOAT, DOUBLE, FIXED_LEN_BYTE_ARRAY)},
    (ALP, FLOAT): Encoder(_alp_room, _write_alp4),
    (ALP, DOUBLE): Encoder(_alp_room, _write_alp8),
}

_ALP = 10
_ALL_PHYSICAL_TYPES = tuple(range(BOOLEAN, FIXED_LEN_BYTE_ARRAY + 1))
ENCODING_PHYSICAL_TYPES: dict[int, tuple[int, ...]] = {
    PLAIN: _ALL_PHYSICAL_TYPES,
    PLAIN_DICTIONARY: _ALL_PHYSICAL_TYPES,
    RLE_DICTIONARY: _ALL_PHYSICAL_TYPES,
    RLE: (BOOLEAN,),
    DELTA_BINARY_PACKED: (INT32, INT64),
    DELTA_LENGTH_BYTE_ARRAY: (BYTE_ARRAY,),
    DELTA_BYTE_ARRAY: (BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY),
    BYTE_STREAM_SPLIT: (INT32, INT64, FLOAT, DOUBLE, FIXED_LEN_BYTE_ARRAY),
    _ALP: (FLOAT, DOUBLE),
}


for _encoding, _physical in TRANSCODED_TYPES.items():
    TRANSCODERS[_encoding, _physical] = ALP_TRANSCODER if _encoding == ALP else DELTA_TRANSCODER


def uses_delta_kernels(encoding: int, physical: int) -> bool:
    """Whether the delta kernels transcode fixed-size values of this encoding to PLAIN."""
    return (
        encoding < len(TRANSCODERS)
        and encoding != DELTA_BYTE_ARRAY
        and TRANSCODERS[encoding, physical] == DELTA_TRANSCODER
    )


def index_bit_width(num_entries: int) -> int:
    """Return the bits of an index into a dictionary of `num_entries` entries."""
    return max(num_entries - 1, 0).bit_length()


def encoder_for(dense: DenseLeaf, encoding: int) -> Encoder:
    """Return the encoder of `encoding` for these values.

    Raises UnsupportedError if the encoding cannot hold the values' physical type.
    """
    physical = dense.values.physical
    found = ENCODERS.get((encoding, physical))
    if found is None:
        raise UnsupportedError(
            f"{PHYSICAL_NAMES[physical]} values cannot be written in encoding {_encoding_name(encoding)}; use "
            f"{', '.join(name for name, number in ENCODING_NAMES.items() if can_encode(number, physical))}"
        )
    return found


def _encoding_name(encoding: int) -> str:
    return next((name for name, number in ENCODING_NAMES.items() if number == encoding), str(encoding))


def can_encode(encoding: int, physical: int) -> bool:
    """Whether values of a physical type can be written in an encoding."""
    return (encoding, physical) in ENCODERS


def _num_bytes(dense: DenseLeaf, first: int, last: int) -> int:
    values = dense.values
    assert values.starts is not None
    assert values.ends is not None
    return int((values.ends[first:last] - values.starts[first:last]).sum())


def _bounds_of_values(dense: DenseLeaf, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the starts and exclusive ends of values in bytes, computed for FIXED_LEN_BYTE_ARRAY."""
    values = dense.values
    if values.starts is not None and values.ends is not None:
        return values.starts[first:last], values.ends[first:last]
    starts = np.arange(first * values.width, last * values.width, values.width, dtype=np.int64)
    return starts, starts + values.width
