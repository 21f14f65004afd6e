"""Table of encodings, both ways: how each is written, and which kernels transcode it to PLAIN (Encodings.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from numparq.errors import UnsupportedError
from numparq.format.physical_type import PHYSICAL_NAMES
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
from numparq.kernels.kernel_groups import alp_writing_kernels, delta_writing_kernels
from numparq.kernels.tables import ALP_TRANSCODER, DELTA_TRANSCODER, ENCODINGS, NO_TRANSCODER, PHYSICAL_TYPES

from .dense_values import DenseValues

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
        ``(values, first, last) -> int``: most bytes that values `first` to `last` (exclusive) can take.
    write : callable or None
        ``(values, first, last, out, pos) -> int``: writes them into `out` at `pos`, returns the end position. None: the
        kernel that encodes pages writes them.
    """

    max_bytes: Callable[[DenseValues, int, int], int]
    write: Callable[[DenseValues, int, int, np.ndarray, int], int] | None = None


_MAX_INDEX_BITS = 32


def _indices_room(values: DenseValues, first: int, last: int) -> int:
    return 1 + max_hybrid_bytes(last - first, _MAX_INDEX_BITS)


_INDICES = Encoder(_indices_room)


def _fixed_room(values: DenseValues, first: int, last: int) -> int:
    return (last - first) * values.width


def _split_room(values: DenseValues, first: int, last: int) -> int:
    return max_byte_stream_split_bytes(last - first, values.width)


def _write_split(values: DenseValues, first: int, last: int, out: np.ndarray, pos: int) -> int:
    return delta_writing_kernels.encode_byte_stream_split(values.raw, values.width, first, last, out, pos)


_SPLIT = Encoder(_split_room, _write_split)


def _delta_byte_array_room(values: DenseValues, first: int, last: int) -> int:
    starts, ends = _bounds_of_values(values, first, last)
    return max_delta_byte_array_bytes(last - first, int((ends - starts).sum()))


def _write_delta_byte_array(values: DenseValues, first: int, last: int, out: np.ndarray, pos: int) -> int:
    count = last - first
    starts, ends = _bounds_of_values(values, first, last)
    prefixes, suffixes = np.empty(count, np.int32), np.empty(count, np.int32)
    return delta_writing_kernels.encode_delta_byte_array(
        values.raw, starts, ends, 0, count, prefixes, suffixes, out, pos
    )


_PREFIXES = Encoder(_delta_byte_array_room, _write_delta_byte_array)


def _boolean_room(values: DenseValues, first: int, last: int) -> int:
    return (last - first) // 8 + 1


def _binary_room(values: DenseValues, first: int, last: int) -> int:
    return _num_bytes(values, first, last) + 4 * (last - first)


def _runs_room(values: DenseValues, first: int, last: int) -> int:
    return 4 + max_hybrid_bytes(last - first, 1)


def _delta_room(values: DenseValues, first: int, last: int) -> int:
    return max_delta_bytes(last - first, values.width)


def _delta_length_room(values: DenseValues, first: int, last: int) -> int:
    return max_delta_length_bytes(last - first, _num_bytes(values, first, last))


def _write_delta_length(values: DenseValues, first: int, last: int, out: np.ndarray, pos: int) -> int:
    lengths = np.empty(last - first, np.int32)
    return delta_writing_kernels.encode_delta_length(
        values.data, values.starts, values.ends, first, last, lengths, out, pos
    )


def _alp_room(values: DenseValues, first: int, last: int) -> int:
    return max_alp_bytes(last - first, values.width)


def _write_alp4(values: DenseValues, first: int, last: int, out: np.ndarray, pos: int) -> int:
    data, work = values.data, np.empty(WORK_SIZE, np.int64)
    return alp_writing_kernels.encode_alp4(data, data.view("i4"), first, last, work, out, pos)


def _write_alp8(values: DenseValues, first: int, last: int, out: np.ndarray, pos: int) -> int:
    data, work = values.data, np.empty(WORK_SIZE, np.int64)
    return alp_writing_kernels.encode_alp8(data, data.view("i8"), first, last, work, out, pos)


# (encoding, physical type) -> encoder, in the order of Encodings.md.
ENCODERS: dict[tuple[int, int], Encoder] = {
    **{
        (PLAIN, physical): Encoder(_fixed_room)
        for physical in (INT32, INT64, INT96, FLOAT, DOUBLE, FIXED_LEN_BYTE_ARRAY)
    },
    (PLAIN, BOOLEAN): Encoder(_boolean_room),
    (PLAIN, BYTE_ARRAY): Encoder(_binary_room),
    (RLE, BOOLEAN): Encoder(_runs_room),
    **{(RLE_DICTIONARY, physical): _INDICES for physical in range(INT32, FIXED_LEN_BYTE_ARRAY + 1)},
    (DELTA_BINARY_PACKED, INT32): Encoder(_delta_room),
    (DELTA_BINARY_PACKED, INT64): Encoder(_delta_room),
    (DELTA_LENGTH_BYTE_ARRAY, BYTE_ARRAY): Encoder(_delta_length_room, _write_delta_length),
    **{(DELTA_BYTE_ARRAY, physical): _PREFIXES for physical in (BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY)},
    **{(BYTE_STREAM_SPLIT, physical): _SPLIT for physical in (INT32, INT64, FLOAT, DOUBLE, FIXED_LEN_BYTE_ARRAY)},
    (ALP, FLOAT): Encoder(_alp_room, _write_alp4),
    (ALP, DOUBLE): Encoder(_alp_room, _write_alp8),
}


def _physical_types() -> dict[int, tuple[int, ...]]:
    """Return the physical types of each encoding."""
    found: dict[int, tuple[int, ...]] = {}
    for encoding, physical in ENCODERS:
        found[encoding] = (*found.get(encoding, ()), physical)
    return found | {PLAIN_DICTIONARY: found[PLAIN], RLE_DICTIONARY: found[PLAIN]}


ENCODING_PHYSICAL_TYPES = _physical_types()
# (encoding, physical type) -> kernels that transcode such a page to PLAIN.
TRANSCODERS = np.full((ENCODINGS, PHYSICAL_TYPES), NO_TRANSCODER)
for _encoding in ENCODING_PHYSICAL_TYPES.keys() - {PLAIN, RLE, PLAIN_DICTIONARY, RLE_DICTIONARY}:
    TRANSCODERS[_encoding, ENCODING_PHYSICAL_TYPES[_encoding]] = (
        ALP_TRANSCODER if _encoding == ALP else DELTA_TRANSCODER
    )


def index_bit_width(num_entries: int) -> int:
    """Return the bits of an index into a dictionary of `num_entries` entries.

    At least 1, as of other writers: fastparquet divides by it in pages of version 2.
    """
    return max((num_entries - 1).bit_length(), 1)


def encoder_for(physical: int, encoding: int) -> Encoder:
    """Return the encoder of `encoding` for a physical type; UnsupportedError if it cannot hold such values."""
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


def _num_bytes(values: DenseValues, first: int, last: int) -> int:
    assert values.starts is not None
    assert values.ends is not None
    if first == last:
        return 0
    return int((values.ends[first:last] - values.starts[first:last]).sum())


def _bounds_of_values(values: DenseValues, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the starts and exclusive ends of values in bytes, computed for FIXED_LEN_BYTE_ARRAY."""
    if values.starts is not None and values.ends is not None:
        return values.starts[first:last], values.ends[first:last]
    starts = np.arange(first * values.width, last * values.width, values.width, dtype=np.int64)
    return starts, starts + values.width
