"""Build the dictionaries of consecutive column chunks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numparq.column.dense_values import DenseValues
from numparq.kernels import writing_kernels
from numparq.kernels.encodings.dictionary import ENTRY_FIELDS
from numparq.kernels.page_writing import table_bits

# Give up on a dictionary if more than this share of the first values is distinct.
PROBE_COUNT = 1 << 14
MAX_NEW_SHARE = 0.75


@dataclass(slots=True)
class Dictionaries:
    """Dictionaries of consecutive column chunks, and the codes of all their values.

    Attributes
    ----------
    codes : numpy.ndarray
        int32, the index of each value into the entries of its chunk; arbitrary for a chunk without a dictionary.
    entries : DenseValues
        Entries of all chunks.
    firsts : list of int
        First entry of each chunk.
    counts : list of int
        Number of entries of each chunk; negative for one without a dictionary.
    """

    codes: np.ndarray
    entries: DenseValues
    firsts: list[int]
    counts: list[int]


def build_dictionaries(values: DenseValues, bounds: np.ndarray, page_size: int) -> Dictionaries:
    """Index the values of each chunk: bounds[c] to bounds[c + 1] (exclusive), entries of at most `page_size` bytes."""
    codes, counts = np.empty(values.count, np.int32), np.empty(len(bounds) - 1, np.int64)
    index = _index_fixed if values.starts is None else _index_binary
    entries = index(values, bounds, page_size, codes, counts)
    ends = np.cumsum(np.maximum(counts, 0))
    return Dictionaries(codes, entries, [0, *ends[:-1].tolist()], counts.tolist())


_PROBE = (PROBE_COUNT, int(PROBE_COUNT * MAX_NEW_SHARE))


def _rooms(bounds: np.ndarray, limit: int) -> tuple[int, int]:
    """Return the most entries of a chunk, and of all, given those that fit in a page."""
    rooms = np.maximum(np.minimum(np.diff(bounds), limit), 1)
    return int(rooms.max()), int(rooms.sum())


def _hash_table(room: int) -> np.ndarray:
    """Return a hash table for chunks of at most `room` entries."""
    return np.empty(1 << table_bits(room), np.int32)  # type: ignore[no-untyped-call]


def _index_fixed(
    values: DenseValues, bounds: np.ndarray, page_size: int, codes: np.ndarray, counts: np.ndarray
) -> DenseValues:
    room, total = _rooms(bounds, page_size // values.width)
    table = _hash_table(room)
    entries = np.empty(total * values.width // values.data.itemsize, values.data.dtype)
    writing_kernels.index_fixed_chunks(
        values.raw, values.width, bounds, len(counts), page_size, table, *_PROBE, entries.view("u1"), codes, counts
    )
    found = int(np.maximum(counts, 0).sum())
    used = found * values.width // values.data.itemsize
    return DenseValues(values.physical, values.width, found, entries[:used].copy())


def _index_binary(
    values: DenseValues, bounds: np.ndarray, page_size: int, codes: np.ndarray, counts: np.ndarray
) -> DenseValues:
    assert values.starts is not None
    assert values.ends is not None
    room, total = _rooms(bounds, page_size // 4)
    firsts, known = np.empty(total, np.int32), np.empty(ENTRY_FIELDS * room, np.int64)
    table = _hash_table(room)
    places = (values.data, len(values.data), values.starts, values.ends)
    writing_kernels.index_binary_chunks(
        *places, bounds, len(counts), page_size, table, known, *_PROBE, firsts, codes, counts
    )
    firsts = firsts[: int(np.maximum(counts, 0).sum())]
    return DenseValues(values.physical, 0, len(firsts), values.data, values.starts[firsts], values.ends[firsts])
