"""The table of encodings: what writes the values of a page, and how many bytes it may take."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..errors import UnsupportedError
from ..kernels import alp_writing_kernels, delta_writing_kernels, writing_kernels
from ..kernels.encode_alp import WORK, alp_room
from ..kernels.encode_byte_stream_split import byte_stream_split_room
from ..kernels.encode_delta import delta_room
from ..kernels.encode_delta_strings import delta_byte_array_room, delta_length_room
from ..kernels.encode_runs import runs_room
from ..kernels.tables import (
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
    RLE,
    RLE_DICTIONARY,
)
from .dense import Dense
from .dictionary import code_width

NAMES = {
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
    """How an encoding is written.

    Attributes
    ----------
    room : callable
        ``(dense, first, last) -> int``: the bytes that values `first` to `last` take at the most.
    write : callable
        ``(dense, first, last, out, pos) -> int``: writes them into `out` at `pos`, gives the position behind them.
    """

    room: Callable[[Dense, int, int], int]
    write: Callable[[Dense, int, int, np.ndarray, int], int]


def encoder(dense: Dense, encoding: int) -> Encoder:
    """Find what writes values in an encoding.

    Parameters
    ----------
    dense : Dense
        The values.
    encoding : int
        Encoding (parquet.thrift).

    Returns
    -------
    Encoder

    Raises
    ------
    UnsupportedError
        When the encoding is not one for values of this physical type.
    """
    found = _ENCODERS.get((encoding, dense.values.physical))
    if found is None:
        raise UnsupportedError(
            f"values of physical type {dense.values.physical} are not written in encoding {encoding}; "
            f"there is {', '.join(name for name, number in NAMES.items() if is_for(number, dense.values.physical))}"
        )
    return found


def is_for(encoding: int, physical: int) -> bool:
    """Say whether values of a physical type can be written in an encoding."""
    return (encoding, physical) in _ENCODERS


# --- PLAIN ----------------------------------------------------------------------------------------------------------


def _fixed_room(dense: Dense, first: int, last: int) -> int:
    return (last - first) * dense.values.width


def _write_fixed(dense: Dense, first: int, last: int, out: np.ndarray, pos: int) -> int:
    width = dense.values.width
    end = pos + (last - first) * width
    out[pos:end] = dense.values.raw[first * width : last * width]
    return end


def _num_bytes(dense: Dense, first: int, last: int) -> int:
    values = dense.values
    assert values.starts is not None and values.ends is not None
    return int((values.ends[first:last] - values.starts[first:last]).sum())


def _binary_room(dense: Dense, first: int, last: int) -> int:
    return _num_bytes(dense, first, last) + 4 * (last - first)


def _write_binary(dense: Dense, first: int, last: int, out: np.ndarray, pos: int) -> int:
    values = dense.values
    return writing_kernels.encode_plain_binary(
        values.data, len(values.data), values.starts, values.ends, first, last, out, pos
    )


def _boolean_room(dense: Dense, first: int, last: int) -> int:
    return (last - first + 7) // 8


def _write_booleans(dense: Dense, first: int, last: int, out: np.ndarray, pos: int) -> int:
    return writing_kernels.encode_booleans(dense.values.data, first, last, out, pos)


# --- RLE and dictionary indices -------------------------------------------------------------------------------------


def _runs_room(dense: Dense, first: int, last: int) -> int:
    return 4 + runs_room(last - first, 1)


def _write_runs(dense: Dense, first: int, last: int, out: np.ndarray, pos: int) -> int:
    end = writing_kernels.encode_runs_u1(dense.values.data, first, last, 1, out, pos + 4)
    out[pos : pos + 4] = np.frombuffer((end - pos - 4).to_bytes(4, "little"), np.uint8)
    return end


def _indices_room(dense: Dense, first: int, last: int) -> int:
    return 1 + runs_room(last - first, code_width(dense.values.count))


def _write_indices(dense: Dense, first: int, last: int, out: np.ndarray, pos: int) -> int:
    width = code_width(dense.values.count)
    out[pos] = width
    return writing_kernels.encode_runs_i4(dense.codes, first, last, width, out, pos + 1)


INDICES = Encoder(_indices_room, _write_indices)


# --- DELTA_*, BYTE_STREAM_SPLIT, ALP --------------------------------------------------------------------------------


def _delta_room(dense: Dense, first: int, last: int) -> int:
    return delta_room(last - first, dense.values.width)


def _write_delta4(dense: Dense, first: int, last: int, out: np.ndarray, pos: int) -> int:
    return delta_writing_kernels.encode_delta4(dense.values.data, first, last, out, pos)


def _write_delta8(dense: Dense, first: int, last: int, out: np.ndarray, pos: int) -> int:
    return delta_writing_kernels.encode_delta8(dense.values.data, first, last, out, pos)


def _delta_length_room(dense: Dense, first: int, last: int) -> int:
    return delta_length_room(last - first, _num_bytes(dense, first, last))


def _write_delta_length(dense: Dense, first: int, last: int, out: np.ndarray, pos: int) -> int:
    values, lengths = dense.values, np.empty(last - first, np.int32)
    return delta_writing_kernels.encode_delta_length(
        values.data, values.starts, values.ends, first, last, lengths, out, pos
    )


def _bounds_of_values(dense: Dense, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Give where values start and end; FIXED_LEN_BYTE_ARRAY has no such arrays of its own."""
    values = dense.values
    if values.starts is not None and values.ends is not None:
        return values.starts[first:last], values.ends[first:last]
    starts = np.arange(first * values.width, last * values.width, values.width, dtype=np.int64)
    return starts, starts + values.width


def _delta_byte_array_room(dense: Dense, first: int, last: int) -> int:
    starts, ends = _bounds_of_values(dense, first, last)
    return delta_byte_array_room(last - first, int((ends - starts).sum()))


def _write_delta_byte_array(dense: Dense, first: int, last: int, out: np.ndarray, pos: int) -> int:
    count = last - first
    starts, ends = _bounds_of_values(dense, first, last)
    prefixes, suffixes = np.empty(count, np.int32), np.empty(count, np.int32)
    return delta_writing_kernels.encode_delta_byte_array(
        dense.values.raw, starts, ends, 0, count, prefixes, suffixes, out, pos
    )


def _split_room(dense: Dense, first: int, last: int) -> int:
    return byte_stream_split_room(last - first, dense.values.width)


def _write_split(dense: Dense, first: int, last: int, out: np.ndarray, pos: int) -> int:
    values = dense.values
    return delta_writing_kernels.encode_byte_stream_split(values.raw, values.width, first, last, out, pos)


def _alp_room(dense: Dense, first: int, last: int) -> int:
    return alp_room(last - first, dense.values.width)


def _write_alp4(dense: Dense, first: int, last: int, out: np.ndarray, pos: int) -> int:
    data, work = dense.values.data, np.empty(WORK, np.int64)
    return alp_writing_kernels.encode_alp4(data, data.view("i4"), first, last, work, out, pos)


def _write_alp8(dense: Dense, first: int, last: int, out: np.ndarray, pos: int) -> int:
    data, work = dense.values.data, np.empty(WORK, np.int64)
    return alp_writing_kernels.encode_alp8(data, data.view("i8"), first, last, work, out, pos)


_FIXED = Encoder(_fixed_room, _write_fixed)
_SPLIT = Encoder(_split_room, _write_split)
_PREFIXES = Encoder(_delta_byte_array_room, _write_delta_byte_array)

# (encoding, physical type) -> what writes it: section by section as in Encodings.md.
_ENCODERS: dict[tuple[int, int], Encoder] = {
    **{(PLAIN, physical): _FIXED for physical in (INT32, INT64, INT96, FLOAT, DOUBLE, FIXED_LEN_BYTE_ARRAY)},
    (PLAIN, BOOLEAN): Encoder(_boolean_room, _write_booleans),
    (PLAIN, BYTE_ARRAY): Encoder(_binary_room, _write_binary),
    (RLE, BOOLEAN): Encoder(_runs_room, _write_runs),
    **{(RLE_DICTIONARY, physical): INDICES for physical in range(INT32, FIXED_LEN_BYTE_ARRAY + 1)},
    (DELTA_BINARY_PACKED, INT32): Encoder(_delta_room, _write_delta4),
    (DELTA_BINARY_PACKED, INT64): Encoder(_delta_room, _write_delta8),
    (DELTA_LENGTH_BYTE_ARRAY, BYTE_ARRAY): Encoder(_delta_length_room, _write_delta_length),
    **{(DELTA_BYTE_ARRAY, physical): _PREFIXES for physical in (BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY)},
    **{(BYTE_STREAM_SPLIT, physical): _SPLIT for physical in (INT32, INT64, FLOAT, DOUBLE, FIXED_LEN_BYTE_ARRAY)},
    (ALP, FLOAT): Encoder(_alp_room, _write_alp4),
    (ALP, DOUBLE): Encoder(_alp_room, _write_alp8),
}
