"""Encode one leaf of consecutive row groups as column chunks, with statistics and Bloom filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from numparq.column.dense_values import DenseLeaf, drop_nulls, gather_values, split_rows
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

from .encoding_choice import choose_encoding
from .options import BloomFilterOptions, ColumnOptions
from .page_splits import PageSplits, split_pages
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
    """Column chunks of a leaf in consecutive row groups, and the statistics of all their pages; `path` is encoded."""

    leaf: Leaf
    path: bytes
    options: ColumnOptions
    chunks: list[EncodedChunk]
    statistics: PageStatistics | None
    sizes: PageSizeStatistics


class LeafEncoder:
    """Encoder of a leaf column: what its type and options decide is decided once for the file."""

    def __init__(self, leaf: Leaf, order: ColumnOrder, options: ColumnOptions) -> None:
        self._leaf, self._order, self._options = leaf, order, options
        self._pages = PageWriter(leaf, options)
        self._path = encode_field("ColumnMetaData", "path_in_schema", list(leaf.path))

    def encode(self, leaf_values: LeafValues, rows: Sequence[int], scratch: Scratch) -> EncodedLeaf:
        """Encode the values of consecutive row groups; group g has the rows rows[g] to rows[g + 1] (exclusive)."""
        options = self._options
        whole = drop_nulls(self._leaf, leaf_values, rows[-1])
        groups = [
            choose_encoding(dense, options, leaf_values.keep_dictionary and not group)
            for group, dense in enumerate([whole] if len(rows) == 2 else split_rows(whole, rows))
        ]
        splits = [split_pages(dense, options) for dense, _ in groups]
        if len(groups) == 1:
            whole, cuts = groups[0][0], splits[0]
        else:
            cuts = PageSplits.concatenate(splits)
        first_pages = [0]
        for split in splits:
            first_pages.append(first_pages[-1] + len(split.rows) - 1)
        statistics, sizes = self._statistics(whole, cuts, first_pages)
        chunks = []
        for (dense, encoding), split, first_page in zip(groups, splits, first_pages, strict=False):
            dictionary = self._pages.write_dictionary(dense, scratch) if encoding == RLE_DICTIONARY else None
            pages = self._pages.write(dense, encoding, split, scratch)
            bloom = None if options.bloom_filter is None else _bloom_filter(self._leaf, dense, options.bloom_filter)
            rows_of_pages = split.rows[:-1].tolist()
            chunks.append(
                EncodedChunk(encoding, dictionary, pages, first_page, dense.num_entries, rows_of_pages, bloom)
            )
        return EncodedLeaf(self._leaf, self._path, options, chunks, statistics, sizes)

    def _statistics(
        self, dense: DenseLeaf, cuts: PageSplits, first_pages: Sequence[int]
    ) -> tuple[PageStatistics | None, PageSizeStatistics]:
        """Compute bounds and sizes of all pages."""
        if not self._options.statistics:
            return None, PageSizeStatistics()
        of = dense.values
        bounds = compute_page_bounds(
            self._order, of.data, cuts.values, starts=of.starts, ends=of.ends, codes=dense.codes
        )
        if self._order.nan_free:
            drop_bounds_of_nan_chunks(bounds, first_pages)
        sizes = compute_page_sizes(
            self._leaf,
            cuts.values,
            cuts.entries,
            definition=dense.definition,
            repetition=dense.repetition,
            starts=of.starts,
            ends=of.ends,
            codes=dense.codes,
        )
        return PageStatistics(bounds, cuts.null_counts(), self._options.truncate_length), sizes


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


def _bloom_filter(leaf: Leaf, values: DenseLeaf, options: BloomFilterOptions) -> bytes | None:
    """Build the Bloom filter of a chunk; only used dictionary entries are added."""
    of = values.values
    if values.codes is not None:
        of = gather_values(of, np.unique(values.codes).astype(np.int32))
    hashes = np.concatenate([hash_values(leaf, of.data, of.starts, of.ends), hash_equal_values(leaf, of.data)])
    found = BloomFilter.build(hashes, options.fpp, options.ndv)
    return encode_struct("BloomFilterHeader", found.header) + found.to_bytes()
