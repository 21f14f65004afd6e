"""Encode one leaf of one row group as a column chunk, with its metadata, indexes and Bloom filter."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from numparq.column.dense_values import DenseLeaf, drop_nulls, gather_values
from numparq.column.encodings import INDEX_ENCODER, encoder_for
from numparq.column.leaf_values import LeafValues
from numparq.column.scratch import Scratch
from numparq.compression.codecs import compressor
from numparq.format.bloom_filter import BloomFilter, hash_equal_values, hash_values
from numparq.format.column_order import ColumnOrder
from numparq.format.page_bounds import PageBounds, compute_page_bounds
from numparq.format.page_index import build_column_index, build_offset_index
from numparq.format.schema import Leaf
from numparq.format.size_statistics import PageSizeStatistics, build_size_statistics, compute_page_sizes
from numparq.format.statistics import build_chunk_statistics, build_page_statistics
from numparq.format.thrift.encode import EncodedThrift, encode_field, encode_struct
from numparq.kernels.enums import DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE, PLAIN, RLE, RLE_DICTIONARY

from .encoding_choice import choose_encoding
from .options import BloomFilterOptions, ColumnOptions
from .page_splits import PageSplits, split_pages
from .pages import EncodedPage, PageSpan, PageWriter


@dataclass(slots=True)
class EncodedChunk:
    """A column chunk ready to be written; page offsets follow once its position in the file is known.

    Attributes
    ----------
    pages : list of EncodedPage
        Data pages; empty after `take_buffers`.
    page_lengths : list of int
        Bytes of each data page, header included.
    first_rows : list of int
        First row of each data page, within the row group.
    metadata_fields : dict
        ColumnMetaData without file offsets.
    column_index : dict or None
        ColumnIndex.
    bloom_filter : bytes or None
        Header and bitset.
    offset_index : dict or None
        OffsetIndex, set by `column_metadata`.
    """

    pages: list[EncodedPage]
    dictionary: EncodedPage | None
    page_lengths: list[int]
    first_rows: list[int]
    metadata_fields: dict[str, Any]
    sizes: PageSizeStatistics
    column_index: dict[str, Any] | None
    has_offset_index: bool
    bloom_filter: bytes | None
    offset_index: dict[str, Any] | None = None

    def column_metadata(self, leaf: Leaf, position: int) -> dict[str, Any]:
        """Return the ColumnMetaData, by field names of the IDL, of a chunk whose first page starts at `position`.

        Sets `offset_index` if the chunk has one.
        """
        first = position + (self.dictionary.size if self.dictionary else 0)
        if self.has_offset_index:
            offsets = first + np.cumsum([0, *self.page_lengths[:-1]])
            self.offset_index = build_offset_index(offsets.tolist(), self.page_lengths, self.first_rows, self.sizes)
        return self.metadata_fields | {
            "type": leaf.physical,
            "path_in_schema": list(leaf.path),
            "data_page_offset": first,
            "dictionary_page_offset": position if self.dictionary else None,
        }

    def take_buffers(self) -> list[Any]:
        """Return headers and bodies of all pages in file order, and release them."""
        pages = [self.dictionary, *self.pages] if self.dictionary else self.pages
        parts = [part for page in pages for part in (page.header, page.body)]
        self.pages, self.dictionary = [], None
        return [memoryview(part).cast("B") for part in parts]


def encode_chunk(
    leaf: Leaf, order: ColumnOrder, leaf_values: LeafValues, num_rows: int, options: ColumnOptions, scratch: Scratch
) -> EncodedChunk:
    """Encode the values of a leaf in one row group of `num_rows` rows."""
    values, encoding = choose_encoding(drop_nulls(leaf, leaf_values, num_rows), options, leaf_values.keep_dictionary)
    cuts = split_pages(values, options)
    bounds, sizes = _page_statistics(leaf, order, values, cuts, options)
    null_counts = cuts.null_counts()
    index = None
    if bounds is not None and options.page_index:
        index = build_column_index(bounds, null_counts, sizes, length=options.truncate_length)
    in_headers = None if options.page_index else bounds
    dictionary, pages = _pages(leaf, values, encoding, cuts, options, in_headers, null_counts, scratch)
    every = [dictionary, *pages] if dictionary else pages
    columns = {
        "encodings": _encodings(dictionary is not None, encoding),
        "codec": options.codec,
        "num_values": values.num_entries,
        "total_uncompressed_size": sum(page.uncompressed for page in every),
        "total_compressed_size": sum(page.size for page in every),
        "statistics": bounds and build_chunk_statistics(bounds, sum(null_counts), length=options.truncate_length),
        "size_statistics": build_size_statistics(sizes),
        "encoding_stats": _encoding_stats(dictionary is not None, len(pages), encoding, options.data_page_version),
    }
    bloom = None if options.bloom_filter is None else _bloom_filter(leaf, values, options.bloom_filter)
    return EncodedChunk(
        pages,
        dictionary,
        [page.size for page in pages],
        cuts.rows[:-1].tolist(),
        columns,
        sizes,
        index,
        options.page_index,
        bloom,
    )


def _pages(
    leaf: Leaf,
    values: DenseLeaf,
    encoding: int,
    cuts: PageSplits,
    options: ColumnOptions,
    bounds: PageBounds | None,
    null_counts: list[int],
    scratch: Scratch,
) -> tuple[EncodedPage | None, list[EncodedPage]]:
    """Encode the dictionary page, if any, and the data pages."""
    how = INDEX_ENCODER if encoding == RLE_DICTIONARY else encoder_for(values, encoding)
    compress = compressor(options.codec, options.level)
    writer = PageWriter(leaf, values, encoding, how, compress, options.checksum, scratch)
    plain = writer.write_dictionary(encoder_for(values, PLAIN)) if encoding == RLE_DICTIONARY else None
    write = writer.write_v1 if options.data_page_version == 1 else writer.write_v2
    rows, entries, dense_values = (bound.tolist() for bound in cuts)
    pages = []
    for page in range(len(rows) - 1):
        span = PageSpan(
            entries[page], entries[page + 1], dense_values[page], dense_values[page + 1], rows[page + 1] - rows[page]
        )
        statistics = None
        if bounds is not None:
            statistics = build_page_statistics(bounds, page, null_counts[page], length=options.truncate_length)
        pages.append(write(span, statistics))
    return plain, pages


def _page_statistics(
    leaf: Leaf, order: ColumnOrder, values: DenseLeaf, cuts: PageSplits, options: ColumnOptions
) -> tuple[PageBounds | None, PageSizeStatistics]:
    """Compute bounds and sizes of all pages."""
    if not options.statistics:
        return None, PageSizeStatistics()
    of = values.values
    bounds = compute_page_bounds(order, of.data, cuts.values, starts=of.starts, ends=of.ends, codes=values.codes)
    sizes = compute_page_sizes(
        leaf,
        cuts.values,
        cuts.entries,
        definition=values.definition,
        repetition=values.repetition,
        starts=of.starts,
        ends=of.ends,
        codes=values.codes,
    )
    return bounds, sizes


# Thrift fields that are the same in most chunks are encoded once.


@lru_cache(maxsize=64)
def _encodings(has_dictionary: bool, encoding: int) -> EncodedThrift:
    found = sorted({RLE, encoding, *([PLAIN] if has_dictionary else [])})
    return EncodedThrift(encode_field("ColumnMetaData", "encodings", found))


@lru_cache(maxsize=1024)
def _encoding_stats(has_dictionary: bool, count: int, encoding: int, version: int) -> EncodedThrift:
    data_page = DATA_PAGE if version == 1 else DATA_PAGE_V2
    found = [{"page_type": data_page, "encoding": encoding, "count": count}]
    if has_dictionary:
        found.insert(0, {"page_type": DICTIONARY_PAGE, "encoding": PLAIN, "count": 1})
    return EncodedThrift(encode_field("ColumnMetaData", "encoding_stats", found))


def _bloom_filter(leaf: Leaf, values: DenseLeaf, options: BloomFilterOptions) -> bytes | None:
    """Build the Bloom filter of a chunk; only used dictionary entries are added."""
    of = values.values
    if values.codes is not None:
        of = gather_values(of, np.unique(values.codes).astype(np.int32))
    hashes = np.concatenate([hash_values(leaf, of.data, of.starts, of.ends), hash_equal_values(leaf, of.data)])
    found = BloomFilter.build(hashes, options.fpp, options.ndv)
    return encode_struct("BloomFilterHeader", found.header) + found.to_bytes()
