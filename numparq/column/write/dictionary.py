"""Build the dictionary of a column chunk if it makes the values smaller."""

from __future__ import annotations

import numpy as np

from numparq.column.dense_values import DenseLeaf, DenseValues
from numparq.column.encodings import index_bit_width
from numparq.kernels import writing_kernels
from numparq.kernels.encodings.dictionary import ENTRY_FIELDS
from numparq.kernels.enums import BOOLEAN

from .options import ColumnOptions

# Give up on a dictionary if more than this share of the first values is distinct.
PROBE_COUNT = 1 << 14
MAX_NEW_SHARE = 0.75
# Keep it only if dictionary and indices are at most this share of the PLAIN size (before compression).
MAX_SIZE_RATIO = 0.8


def build_dictionary(dense: DenseLeaf, options: ColumnOptions) -> DenseLeaf | None:
    """Return the values as a dictionary and codes; None if that is not smaller or exceeds `dictionary_page_size`."""
    values, count = dense.values, dense.num_values
    if values.physical == BOOLEAN or not count:
        return None
    index = _index_fixed if values.starts is None else _index_binary
    codes = np.empty(count, np.int32)
    entries = index(values, codes, options.dictionary_page_size)
    if entries is None:
        return None
    if entries.plain_size + (count * index_bit_width(entries.count) + 7) // 8 > MAX_SIZE_RATIO * values.plain_size:
        return None
    return DenseLeaf(
        entries, codes, count, dense.num_entries, dense.num_rows, dense.present, dense.definition, dense.repetition
    )


def _index_fixed(values: DenseValues, codes: np.ndarray, size: int) -> DenseValues | None:
    room = max(min(values.count, size // values.width), 1)
    bits = _table_bits(room)
    entries = np.empty(room * values.width // values.data.itemsize, values.data.dtype)
    found = writing_kernels.index_fixed(
        values.raw,
        values.width,
        values.count,
        np.zeros(1 << bits, np.int32),
        bits,
        room,
        PROBE_COUNT,
        int(PROBE_COUNT * MAX_NEW_SHARE),
        entries.view("u1"),
        codes,
    )
    if found < 0:
        return None
    used = found * values.width // values.data.itemsize
    return DenseValues(values.physical, values.width, found, entries[:used].copy())


def _index_binary(values: DenseValues, codes: np.ndarray, size: int) -> DenseValues | None:
    assert values.starts is not None
    assert values.ends is not None
    room = max(min(values.count, size // 4), 1)
    bits = _table_bits(room)
    firsts = np.empty(room, np.int32)
    found = writing_kernels.index_binary(
        values.data,
        len(values.data),
        values.starts,
        values.ends,
        values.count,
        np.zeros(1 << bits, np.int32),
        np.empty(ENTRY_FIELDS * room, np.int64),
        bits,
        room,
        size,
        PROBE_COUNT,
        int(PROBE_COUNT * MAX_NEW_SHARE),
        firsts,
        codes,
    )
    if found < 0:
        return None
    firsts = firsts[:found]
    return DenseValues(values.physical, 0, found, values.data, values.starts[firsts], values.ends[firsts])


def _table_bits(room: int) -> int:
    """Return log2 of the hash table's size: a crowded table costs more than a large one."""
    return max(min((8 * room - 1).bit_length(), 18), (2 * room - 1).bit_length(), 4)
