"""Encode one leaf of consecutive row groups as column chunks, with statistics and Bloom filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

import numpy as np

from numparq.column.dense_values import DenseLeaf, DenseValues, drop_nulls, gather_values
from numparq.column.leaf_values import LeafValues
from numparq.column.scratch import Scratch
from numparq.format.bloom_filter import BloomFilter, hash_equal_values, hash_values
from numparq.format.column_order import ColumnOrder
from numparq.format.page_bounds import compute_page_bounds, drop_bounds_of_nan_chunks
from numparq.format.schema import Leaf
from numparq.format.size_statistics import PageSizeStatistics, compute_page_sizes
from numparq.format.statistics import PageStatistics
from numparq.format.thrift.encode import encode_field, encode_struct
from numparq.kernels.enums import DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE, PLAIN, RLE, RLE_DICTIONARY

from .encoding_choice import (
    MAX_DICTIONARY_BYTES,
    ChosenEncodings,
    choose_encodings,
    keep_dictionary,
    keep_first_dictionary,
    keeps_dictionary,
)
from .options import BloomFilterOptions, ColumnOptions
from .page_splits import Bounds, row_bounds, split_pages
from .pages import EncodedPage, PageWriter


@dataclass(slots=True)
class EncodedChunk:
    """A column chunk ready to be written.

    Attributes
    ----------
    first_page : int
        First of its pages in the statistics of the leaf.
    num_values : int
        Level entries, nulls included.
    first_rows : list of int
        First row of each data page, within the row group.
    bloom_filter : bytes or None
        Header and bitset.
    """

    encoding: int
    dictionary: EncodedPage | None
    pages: list[EncodedPage]
    first_page: int
    num_values: int
    first_rows: list[int]
    bloom_filter: bytes | None


@dataclass(slots=True)
class EncodedLeaf:
    """Column chunks of a leaf in consecutive row groups, and the statistics of all their pages, among others.

    Attributes
    ----------
    levels : list of (numpy.ndarray, numpy.ndarray or None)
        Definition and repetition levels of each row group, of a nested leaf of the null type; else empty.
    """

    leaf: Leaf
    options: ColumnOptions
    chunks: list[EncodedChunk]
    statistics: PageStatistics | None
    sizes: PageSizeStatistics
    levels: list[tuple[np.ndarray, np.ndarray | None]] = field(default_factory=list)


class LeafEncoder:
    """Encoder of the leaf columns of one type: what it and the options decide is decided once for the file."""

    def __init__(self, leaf: Leaf, order: ColumnOrder, options: ColumnOptions) -> None:
        self._leaf, self._order, self._options = leaf, order, options
        self._pages = PageWriter(leaf, options)
        self._keeps_levels = leaf.is_nested and leaf.logical is not None and leaf.logical.kind == "UNKNOWN"

    def encode(
        self, leaves: Sequence[Leaf], leaf_values: LeafValues, rows: Sequence[int], scratch: Scratch
    ) -> list[EncodedLeaf]:
        """Encode consecutive row groups of leaves, whose values follow each other.

        Row group g of each has the rows rows[g] to rows[g + 1] (exclusive).
        """
        options, writer, groups = self._options, self._pages, len(rows) - 1
        if len(leaves) > 1:
            rows = [0, *(number * rows[-1] + row for number in range(len(leaves)) for row in rows[1:])]
        dense = drop_nulls(self._leaf, leaf_values, rows[-1])
        bounds = row_bounds(dense, np.array(rows))
        chosen = self._choose(dense, bounds, leaf_values.keep_dictionary)
        cuts, first_pages = split_pages(dense, bounds, chosen, options)
        values, codes = dense.values, dense.codes
        if len(rows) == 2 and chosen.dictionaries is not None:
            values, codes = chosen.dictionaries.entries, chosen.dictionaries.codes
        statistics, sizes = self._statistics(dense, values, codes, cuts, first_pages)
        dictionaries = writer.write_dictionaries(chosen, scratch)
        pages = writer.write(dense, chosen, cuts, first_pages, scratch)
        blooms = self._bloom_filters(chosen, bounds)
        starts, entries, page_rows = (part.tolist() for part in (bounds.rows, bounds.entries, cuts.rows))
        chunks = [
            EncodedChunk(
                chosen.encodings[group],
                dictionaries[group],
                pages[first:last],
                first,
                entries[group + 1] - entries[group],
                [row - starts[group] for row in page_rows[first:last]],
                blooms[group],
            )
            for group, (first, last) in enumerate(pairwise(first_pages))
        ]
        levels = _split_levels(dense, entries) if self._keeps_levels else []
        return [
            EncodedLeaf(leaf, options, chunks[first : first + groups], statistics, sizes, levels)
            for leaf, first in zip(leaves, range(0, len(chunks), groups), strict=True)
        ]

    def _choose(self, dense: DenseLeaf, bounds: Bounds, is_whole: bool) -> ChosenEncodings:
        """Choose the encodings; `is_whole`: the first row group has to keep the dictionary, however large."""
        options = self._options
        if keeps_dictionary(dense, options):
            return keep_dictionary(dense, len(bounds.rows) - 1)
        keeps_first = is_whole and keeps_dictionary(dense, options, MAX_DICTIONARY_BYTES)
        if keeps_first and len(bounds.rows) == 2:
            return keep_dictionary(dense, 1)
        chosen = choose_encodings(dense, bounds.values, options)
        if keeps_first:
            keep_first_dictionary(chosen, dense, int(bounds.values[1]))
        return chosen

    def _bloom_filters(self, chosen: ChosenEncodings, bounds: Bounds) -> list[bytes | None]:
        """Build the Bloom filter of each chunk; only used dictionary entries are added."""
        options, dictionaries = self._options.bloom_filter, chosen.dictionaries
        found: list[bytes | None] = []
        if options is None:
            return [None] * len(chosen.encodings)
        for chunk, (first, last) in enumerate(pairwise(bounds.values.tolist())):
            values = chosen.values
            if chosen.encodings[chunk] == RLE_DICTIONARY and dictionaries is not None:
                used = np.unique(dictionaries.codes[first:last]) + dictionaries.firsts[chunk]
                values = gather_values(dictionaries.entries, used.astype(np.int32))
            else:
                values = values.slice(first, last)
            found.append(_bloom_filter(self._leaf, values, options))
        return found

    def _statistics(
        self,
        dense: DenseLeaf,
        values: DenseValues,
        codes: np.ndarray | None,
        cuts: Bounds,
        first_pages: Sequence[int],
    ) -> tuple[PageStatistics | None, PageSizeStatistics]:
        """Compute bounds and sizes of all pages."""
        if not self._options.statistics:
            return None, PageSizeStatistics()
        places = {"starts": values.starts, "ends": values.ends, "codes": codes}
        bounds = compute_page_bounds(self._order, values.data, cuts.values, **places)
        if self._order.nan_free:
            drop_bounds_of_nan_chunks(bounds, first_pages)
        sizes = compute_page_sizes(
            self._leaf,
            cuts.values,
            cuts.entries,
            definition=dense.definition,
            repetition=dense.repetition,
            **places,
        )
        return PageStatistics(bounds, cuts.null_counts(), self._options.truncate_length), sizes


def _split_levels(dense: DenseLeaf, entries: Sequence[int]) -> list[tuple[np.ndarray, np.ndarray | None]]:
    """Return the levels between bounds, in level entries."""
    definition, repetition = dense.definition, dense.repetition
    if definition is None:
        definition = np.zeros(dense.num_entries, np.uint8)
    return [
        (definition[first:last], None if repetition is None else repetition[first:last])
        for first, last in pairwise(entries)
    ]


# Thrift fields that are the same in most chunks are encoded once.


@lru_cache(maxsize=64)
def encode_encodings(has_dictionary: bool, encoding: int) -> bytes:
    """Return the list `ColumnMetaData.encodings`, encoded."""
    found = sorted({RLE, encoding, *([PLAIN] if has_dictionary else [])})
    return encode_field("ColumnMetaData", "encodings", found)


@lru_cache(maxsize=1024)
def encode_encoding_stats(has_dictionary: bool, count: int, encoding: int, version: int) -> bytes:
    """Return the list `ColumnMetaData.encoding_stats` of a chunk with `count` data pages, encoded."""
    data_page = DATA_PAGE if version == 1 else DATA_PAGE_V2
    found = [{"page_type": data_page, "encoding": encoding, "count": count}]
    if has_dictionary:
        found.insert(0, {"page_type": DICTIONARY_PAGE, "encoding": PLAIN, "count": 1})
    return encode_field("ColumnMetaData", "encoding_stats", found)


def _bloom_filter(leaf: Leaf, values: DenseValues, options: BloomFilterOptions) -> bytes:
    hashes = np.concatenate(
        [hash_values(leaf, values.data, values.starts, values.ends), hash_equal_values(leaf, values.data)]
    )
    found = BloomFilter.build(hashes, options.fpp, options.ndv)
    return encode_struct("BloomFilterHeader", found.header) + found.to_bytes()
