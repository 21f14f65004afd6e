"""Choose the encodings of consecutive column chunks by physical type and sampled values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise
from typing import NamedTuple

import numpy as np

from numparq.column.dense_values import DenseLeaf, DenseValues, concatenate_values, gather_values
from numparq.column.encodings import index_bit_width
from numparq.kernels.encodings.dictionary import ENTRY_FIELDS
from numparq.kernels.enums import BOOLEAN, DELTA_BINARY_PACKED, INT32, INT64, PLAIN, RLE, RLE_DICTIONARY
from numparq.kernels.kernel_groups import delta_writing_kernels, statistics_kernels, writing_kernels
from numparq.kernels.page_writing import table_bits

from .options import ColumnOptions

SAMPLES, SAMPLE_SIZE = 8, 1024
# Most bytes of DELTA_BINARY_PACKED relative to PLAIN, and to a dictionary (which is faster to read).
MAX_DELTA_TO_PLAIN = 0.7
MAX_DELTA_TO_DICTIONARY = 0.6
# Keep a dictionary only if it and the indices are at most this share of the PLAIN size (before compression).
MAX_DICTIONARY_TO_PLAIN = 0.8
# Size limit of a dictionary that must be kept: page headers hold sizes in 31 bits.
MAX_DICTIONARY_BYTES = 1 << 30
_NO_CODES = np.empty(0, np.int32)

# Give up on a dictionary if more than this share of the first values is distinct.
PROBE_COUNT = 1 << 14
MAX_NEW_SHARE = 0.75
_PROBE = (PROBE_COUNT, int(PROBE_COUNT * MAX_NEW_SHARE))


@dataclass(slots=True)
class ChosenEncodings:
    """Encodings of consecutive column chunks.

    Attributes
    ----------
    encodings : list of int
        Encoding of each chunk.
    values : DenseValues
        All values as they are; empty if every chunk keeps the dictionary that the column came with.
    plain_sizes : list of int
        Bytes of each chunk's values in PLAIN encoding.
    dictionaries : Dictionaries or None
        Those of the chunks in RLE_DICTIONARY, among others.
    """

    encodings: list[int]
    values: DenseValues
    plain_sizes: list[int]
    dictionaries: Dictionaries | None


def keeps_dictionary(dense: DenseLeaf, options: ColumnOptions, room: int = 0) -> bool:
    """Whether a column that comes with a dictionary keeps it; `room` may exceed `dictionary_page_size`."""
    wanted = options.use_dictionary if options.encoding is None else options.encoding == RLE_DICTIONARY
    if dense.codes is None or not wanted or dense.values.physical == BOOLEAN or not dense.values.count:
        return False
    return dense.values.plain_size <= max(options.dictionary_page_size, room)


def keep_dictionary(dense: DenseLeaf, num_chunks: int) -> ChosenEncodings:
    """Return the encodings of chunks that all keep the dictionary that the column came with."""
    assert dense.codes is not None
    entries = dense.values
    same = Dictionaries(dense.codes, entries, [0] * num_chunks, [entries.count] * num_chunks)
    return ChosenEncodings([RLE_DICTIONARY] * num_chunks, entries.slice(0, 0), [0] * num_chunks, same)


def keep_first_dictionary(chosen: ChosenEncodings, dense: DenseLeaf, num_values: int) -> None:
    """Keep the dictionary that the column came with in the first chunk, of `num_values` values."""
    assert dense.codes is not None
    given, built = dense.values, chosen.dictionaries
    chosen.encodings[0] = RLE_DICTIONARY
    if built is None:
        chunks = len(chosen.encodings)
        chosen.dictionaries = Dictionaries(dense.codes, given, [0] * chunks, [given.count] + [-1] * (chunks - 1))
        return
    built.codes[:num_values] = dense.codes[:num_values]
    built.firsts = [0, *(first + given.count for first in built.firsts[1:])]
    built.counts[0] = given.count
    built.entries = concatenate_values(given, built.entries)


def choose_encodings(dense: DenseLeaf, bounds: np.ndarray, options: ColumnOptions) -> ChosenEncodings:
    """Choose the encoding of each chunk of values bounds[c] to bounds[c + 1] (exclusive), by sizes."""
    values = dense.values if dense.codes is None else gather_values(dense.values, dense.codes)
    given, physical = options.encoding, values.physical
    ends = bounds.tolist()
    counts = [last - first for first, last in pairwise(ends)]
    plain = _plain_sizes(values, bounds, counts)
    encodings = [PLAIN if given is None or given == RLE_DICTIONARY else given] * len(counts)
    if given is not None and given != RLE_DICTIONARY:
        return ChosenEncodings(encodings, values, plain, None)
    if physical == BOOLEAN:
        if options.data_page_version == 2:  # old readers know no other encoding in V1 pages
            encodings = [RLE] * len(counts)
        return ChosenEncodings(encodings, values, plain, None)
    deltas = _delta_sizes(values, ends, counts)
    for chunk, size in enumerate(deltas):
        if size < MAX_DELTA_TO_PLAIN * plain[chunk]:
            encodings[chunk] = DELTA_BINARY_PACKED
    if not options.use_dictionary and given is None:
        return ChosenEncodings(encodings, values, plain, None)
    found = build_dictionaries(values, bounds, counts, options.dictionary_page_size)
    num_entries = [max(each, 0) for each in found.counts]
    entry_sizes = _plain_sizes(found.entries, np.array([*found.firsts, found.entries.count]), num_entries)
    for chunk, (count, entries, size) in enumerate(zip(counts, num_entries, entry_sizes, strict=True)):
        bits = count * index_bit_width(entries)
        is_smaller = entries > 0 and size + (bits + 7) // 8 <= MAX_DICTIONARY_TO_PLAIN * plain[chunk]
        by_delta = given is None and bool(deltas) and deltas[chunk] < MAX_DELTA_TO_DICTIONARY * (bits // 8 + size)
        if is_smaller and not by_delta:
            encodings[chunk] = RLE_DICTIONARY
    return ChosenEncodings(encodings, values, plain, found if RLE_DICTIONARY in encodings else None)


def _plain_sizes(values: DenseValues, bounds: np.ndarray, counts: list[int]) -> list[int]:
    """Return the bytes of each chunk's values in PLAIN encoding."""
    if values.starts is not None and values.ends is not None:
        sums = np.empty(len(counts), np.int64)
        statistics_kernels.sum_bytes_by_page(values.starts, values.ends, _NO_CODES, 0, bounds, len(counts), sums)
        return [size + 4 * count for size, count in zip(sums.tolist(), counts, strict=True)]
    if values.physical == BOOLEAN:
        return [(count + 7) // 8 for count in counts]
    return [count * values.width for count in counts]


def _delta_sizes(values: DenseValues, bounds: list[int], counts: list[int]) -> list[float]:
    """Estimate the bytes of DELTA_BINARY_PACKED of each chunk from samples; empty if the type has no such encoding."""
    measure = _MEASURES.get(values.physical)
    if measure is None:
        return []
    samples = SAMPLES * SAMPLE_SIZE
    ranges: list[int] = []
    for first, count in zip(bounds, counts, strict=False):
        if count <= samples:
            ranges += (first, first + count)
        else:
            for start in np.linspace(first, first + count - SAMPLE_SIZE, SAMPLES).astype(int).tolist():
                ranges += (start, start + SAMPLE_SIZE)
    out = np.empty(len(ranges) // 2, np.int64)
    measure(values.data, np.array(ranges, np.int64), len(out), out)
    sizes = iter(out.tolist())
    return [next(sizes) if count <= samples else sum(islice(sizes, SAMPLES)) / samples * count for count in counts]


_MEASURES: dict[int, Callable[[np.ndarray, np.ndarray, int, np.ndarray], int]] = {
    INT32: lambda values, ranges, count, out: delta_writing_kernels.delta_sizes4(values, ranges, count, out),
    INT64: lambda values, ranges, count, out: delta_writing_kernels.delta_sizes8(values, ranges, count, out),
}


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
