"""Build the dictionaries of consecutive column chunks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from numparq.column.dense_values import DenseValues, gather_values
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


def build_dictionaries(values: DenseValues, bounds: np.ndarray, sizes: Sequence[int], page_size: int) -> Dictionaries:
    """Index the values of each chunk: bounds[c] to bounds[c + 1] (exclusive), sizes[c] of them.

    The entries of a chunk take at most `page_size` bytes.
    """
    limit = page_size // (values.width or 4)
    rooms = [max(min(size, limit), 1) for size in sizes]
    codes, counts = np.empty(values.count, np.int32), np.empty(len(sizes), np.int64)
    table = np.empty(1 << table_bits(max(rooms)), np.int32)  # type: ignore[no-untyped-call]
    outputs = _Outputs(bounds, page_size, rooms, table, codes, counts)
    entries = (_index_fixed if values.starts is None else _index_binary)(values, outputs)
    found = counts.tolist()
    firsts = [0, *accumulate(max(count, 0) for count in found)]
    return Dictionaries(codes, entries(firsts[-1]), firsts[:-1], found)


_PROBE = (PROBE_COUNT, int(PROBE_COUNT * MAX_NEW_SHARE))


class _Outputs(NamedTuple):
    """Chunks to index, the most entries of each, and what the kernels write to."""

    bounds: np.ndarray
    page_size: int
    rooms: list[int]
    table: np.ndarray
    codes: np.ndarray
    counts: np.ndarray


def _index_fixed(values: DenseValues, out: _Outputs) -> Callable[[int], DenseValues]:
    """Index values of fixed size; return a function from the number of all entries to these."""
    items = values.width // values.data.itemsize
    entries = np.empty(sum(out.rooms) * items, values.data.dtype)
    chunks = (out.bounds, len(out.rooms), out.page_size, out.table)
    writing_kernels.index_fixed_chunks(
        values.raw, values.width, *chunks, *_PROBE, entries.view("u1"), out.codes, out.counts
    )
    return lambda count: DenseValues(values.physical, values.width, count, entries[: count * items].copy())


def _index_binary(values: DenseValues, out: _Outputs) -> Callable[[int], DenseValues]:
    """Index binary values, as `_index_fixed` does."""
    starts, ends = values.starts, values.ends
    assert starts is not None
    assert ends is not None
    firsts, known = np.empty(sum(out.rooms), np.int32), np.empty(ENTRY_FIELDS * max(out.rooms), np.int64)
    chunks = (out.bounds, len(out.rooms), out.page_size, out.table, known)
    writing_kernels.index_binary_chunks(
        values.data, len(values.data), starts, ends, *chunks, *_PROBE, firsts, out.codes, out.counts
    )
    return lambda count: gather_values(values, firsts[:count])
