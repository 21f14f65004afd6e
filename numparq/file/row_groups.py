"""Metadata of written row groups (parquet.thrift, RowGroup, ColumnChunk), their page indexes and Bloom filters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from numparq.column.write.chunk import EncodedChunk, EncodedLeaf, encode_encoding_stats, encode_encodings
from numparq.column.write.pages import EncodedPage
from numparq.crypto.aad import ModuleId, ModuleType
from numparq.format.page_header import page_header_template
from numparq.format.page_index import (
    ColumnIndexWriter,
    add_offset_index,
    column_index_template,
    offset_index_template,
)
from numparq.format.size_statistics import SIZE_FIELDS, size_words
from numparq.format.statistics import NO_STATISTICS, STATISTICS_FIELDS
from numparq.format.thrift.encode import EncodedThrift, encode_field, encode_list_header
from numparq.format.thrift.templates import StructRecords, StructTemplate
from numparq.io.sink import Sink
from numparq.kernels.thrift.encode import ABSENT

if TYPE_CHECKING:
    from numparq.format.file_encryption import FileEncryption

_ENCODED = ("meta_data.encodings", "meta_data.path_in_schema", "meta_data.encoding_stats")
_CHUNK_FIELDS = (
    "file_offset",
    "meta_data.type",
    "meta_data.encodings",
    "meta_data.path_in_schema",
    "meta_data.codec",
    "meta_data.num_values",
    "meta_data.total_uncompressed_size",
    "meta_data.total_compressed_size",
    "meta_data.data_page_offset",
    "meta_data.dictionary_page_offset",
    *(f"meta_data.statistics.{name}" for name in STATISTICS_FIELDS),
    "meta_data.encoding_stats",
    "meta_data.bloom_filter_offset",
    "meta_data.bloom_filter_length",
    *(f"meta_data.size_statistics.{name}" for name in SIZE_FIELDS),
    "offset_index_offset",
    "offset_index_length",
    "column_index_offset",
    "column_index_length",
)
_GROUP_FIELDS = (
    "columns",
    "total_byte_size",
    "num_rows",
    "sorting_columns",
    "file_offset",
    "total_compressed_size",
    "ordinal",
)
_MAX_ORDINAL = (1 << 15) - 1
_JOINED_BYTES = 1 << 19  # pages are written in pieces of about this size, beyond what sinks gather


@lru_cache(maxsize=1)
def _chunk_template() -> StructTemplate:
    return StructTemplate("ColumnChunk", _CHUNK_FIELDS, _ENCODED)


@lru_cache(maxsize=1)
def _group_template() -> StructTemplate:
    return StructTemplate("RowGroup", _GROUP_FIELDS, ("columns", "sorting_columns"))


class Placement(NamedTuple):
    """How row groups are written: the block at whose multiples they start, the sealers, and the first one's ordinal."""

    alignment: int | None = None
    encryption: FileEncryption | None = None
    first_row_group: int = 0


class _Group(NamedTuple):
    """Totals of a row group."""

    num_rows: int
    position: int
    uncompressed_size: int
    compressed_size: int


class WrittenRowGroups:
    """Consecutive row groups that are written to a sink; their indexes are not.

    `paths` are the encoded `path_in_schema` of the leaves.
    """

    def __init__(
        self,
        sink: Sink,
        leaves: Sequence[EncodedLeaf],
        paths: Sequence[bytes],
        num_rows: Sequence[int],
        placement: Placement,
    ) -> None:
        alignment, self._encryption, self._first_row_group = placement
        self._groups: list[_Group] = []
        self._num_leaves = len(leaves)
        self._chunks = StructRecords(_chunk_template())
        self._bloom_filters: list[bytes | None] = []
        self._column_records = StructRecords(column_index_template())
        self._offset_records = StructRecords(offset_index_template())
        self._has_column_index: list[bool] = []
        self._has_offset_index: list[bool] = []
        self._headers = _encode_headers(leaves, len(num_rows))
        self._parts: list[Any] = []
        self._encoding_words: dict[tuple[bool, int, int, int], tuple[int, ...]] = {}
        indexes, path_words = self._index_writers(leaves), [self._chunks.strings.add(path) for path in paths]
        end = written = sink.position
        for group, rows in enumerate(num_rows):
            if alignment:
                self._parts.append(bytes(-end % alignment))
                end += len(self._parts[-1])
            start, uncompressed = end, 0
            for leaf, path, index in zip(leaves, path_words, indexes, strict=True):
                size, end = self._add_chunk(leaf, path, index, group, end)
                uncompressed += size
                if end - written > _JOINED_BYTES:
                    self._write_parts(sink)
                    written = end
            self._groups.append(_Group(rows, start, uncompressed, end - start))
        self._write_parts(sink)
        self._column_indexes = list(self._column_records.encode())
        self._offset_indexes = list(self._offset_records.encode())
        del self._column_records, self._offset_records, self._headers

    def _index_writers(self, leaves: Sequence[EncodedLeaf]) -> list[ColumnIndexWriter | None]:
        """Return the writer of each leaf's column indexes, one for leaves that share statistics."""
        writers: dict[int, ColumnIndexWriter] = {}
        found: list[ColumnIndexWriter | None] = []
        for leaf in leaves:
            statistics = leaf.statistics if leaf.options.page_index else None
            if statistics is not None and id(statistics) not in writers:
                writers[id(statistics)] = ColumnIndexWriter(self._column_records, statistics, leaf.sizes)
            found.append(writers.get(id(statistics)))
        return found

    def _add_chunk(
        self,
        leaf: EncodedLeaf,
        path: tuple[int, int],
        index: ColumnIndexWriter | None,
        group: int,
        position: int,
    ) -> tuple[int, int]:
        """Add the pages of a chunk at a position, its metadata and indexes.

        Returns its bytes before compression, and where it ends.
        """
        chunk, parts, headers = leaf.chunks[group], self._parts, self._headers
        if self._encryption is not None:
            headers = self._seal_headers(self._encryption, leaf, group)
        locations: list[int] = []
        uncompressed, start = 0, position
        if chunk.dictionary is not None:
            header = next(headers[chunk.dictionary.type])
            parts += (header, chunk.dictionary.body)
            start += len(header) + len(chunk.dictionary.body)
            uncompressed += len(header) + chunk.dictionary.uncompressed_size
        end = start
        for page, row in zip(chunk.pages, chunk.first_rows, strict=True):
            header = next(headers[page.type])
            size = len(header) + len(page.body)
            parts += (header, page.body)
            locations += (end, size, row)
            end += size
            uncompressed += len(header) + page.uncompressed_size
        self._add_metadata(leaf, path, chunk, (uncompressed, end - position, start, position))
        first, last = chunk.first_page, chunk.first_page + len(chunk.pages)
        self._has_column_index.append(index is not None and index.add(first, last))
        self._has_offset_index.append(leaf.options.page_index)
        if leaf.options.page_index:
            counts = leaf.sizes.byte_array_bytes
            add_offset_index(self._offset_records, locations, None if counts is None else counts[first:last])
        self._bloom_filters.append(chunk.bloom_filter)
        chunk.pages, chunk.dictionary = [], None
        return uncompressed, end

    def _write_parts(self, sink: Sink) -> None:
        """Write the pages that were added, small ones joined: a write of its own costs each as much as its checksum."""
        parts, first, size = self._parts, 0, 0
        for at, part in enumerate(parts):
            size += len(part)
            if size > _JOINED_BYTES:
                sink.write(b"".join(parts[first:at]))
                first, size = at, len(part)
        sink.write(b"".join(parts[first:]))
        self._parts.clear()

    def _add_metadata(
        self, leaf: EncodedLeaf, path: tuple[int, int], chunk: EncodedChunk, places: tuple[int, int, int, int]
    ) -> None:
        """Add the ColumnChunk; `places` are its bytes uncompressed and compressed, and where its pages begin.

        `path` are the words of its `path_in_schema`.
        """
        uncompressed, compressed, first_data_page, position = places
        has_dictionary, options = chunk.dictionary is not None, leaf.options
        strings, items = self._chunks.strings, self._chunks.items
        first, last = chunk.first_page, chunk.first_page + len(chunk.pages)
        key = (has_dictionary, last - first, chunk.encoding, options.data_page_version)
        encodings = self._encoding_words.get(key)
        if encodings is None:
            lists = (encode_encodings(has_dictionary, chunk.encoding), encode_encoding_stats(*key))
            encodings = self._encoding_words[key] = (*strings.add(lists[0]), *strings.add(lists[1]))
        self._chunks.words += (
            0,
            leaf.leaf.physical,
            *encodings[:2],
            *path,
            options.codec,
            chunk.num_values,
            uncompressed,
            compressed,
            first_data_page,
            position if has_dictionary else ABSENT,
            *(NO_STATISTICS if leaf.statistics is None else leaf.statistics.words(first, last, strings)),
            *encodings[2:],
            ABSENT,
            ABSENT,
            *size_words(leaf.sizes, first, last, items),
            ABSENT,
            ABSENT,
            ABSENT,
            ABSENT,
        )

    def write_bloom_filters(self, sink: Sink) -> None:
        """Write the Bloom filters, and note where they are."""
        if any(self._bloom_filters):
            blooms = self._bloom_filters if self._encryption is None else self._seal_bloom_filters(self._encryption)
            self._set_locations("meta_data.bloom_filter_offset", [_write(sink, each) for each in blooms])

    def _seal_headers(
        self, encryption: FileEncryption, leaf: EncodedLeaf, group: int
    ) -> dict[int, Iterator[memoryview]]:
        """Return by page type the sealed headers of a chunk's pages, or all plain headers for a plain column."""
        from numparq.column.write.sealed_pages import seal_headers

        sealer, chunk = encryption.sealers[leaf.leaf.index], leaf.chunks[group]
        if sealer is None:
            return self._headers
        pages = chunk.pages if chunk.dictionary is None else [chunk.dictionary, *chunk.pages]
        plain = [next(self._headers[page.type]) for page in pages]
        sealed = seal_headers(sealer, chunk, self._first_row_group + group, leaf.leaf.index, plain)
        return dict.fromkeys((page.type for page in pages), sealed)

    def _seal_bloom_filters(self, encryption: FileEncryption) -> list[bytes | None]:
        """Return the Bloom filters of all chunks as they are stored."""
        return [
            None
            if data is None
            else encryption.seal_bloom_filter(
                data, self._first_row_group + at // self._num_leaves, at % self._num_leaves
            )
            for at, data in enumerate(self._bloom_filters)
        ]

    def write_page_indexes(self, sink: Sink) -> None:
        """Write column indexes and offset indexes of one row group after the other, and note where they are."""
        column_indexes, offset_indexes = iter(self._column_indexes), iter(self._offset_indexes)
        column_places: list[tuple[int, int]] = []
        offset_places: list[tuple[int, int]] = []
        parts: list[bytes | memoryview] = []
        position = sink.position
        starts = range(0, len(self._has_offset_index), max(self._num_leaves, 1))
        for ordinal, first in enumerate(starts, self._first_row_group):
            group = slice(first, first + self._num_leaves)
            for structs, places, flags, kind in (
                (column_indexes, column_places, self._has_column_index, ModuleType.COLUMN_INDEX),
                (offset_indexes, offset_places, self._has_offset_index, ModuleType.OFFSET_INDEX),
            ):
                for leaf, has in enumerate(flags[group]):
                    if not has:
                        places.append((ABSENT, ABSENT))
                        continue
                    data: bytes | memoryview = next(structs)
                    if self._encryption is not None:
                        data = self._encryption.seal_index(data, ModuleId(kind, ordinal, leaf))
                    parts.append(data)
                    places.append((position, len(parts[-1])))
                    position += len(parts[-1])
        sink.write(b"".join(parts))
        self._set_locations("column_index_offset", column_places)
        self._set_locations("offset_index_offset", offset_places)
        self._column_indexes, self._offset_indexes = [], []

    def _set_locations(self, field: str, places: list[tuple[int, int]]) -> None:
        """Set offset and length of all chunks."""
        width, word = self._chunks.template.num_words, self._chunks.template.slot(field)
        self._chunks.words[word::width] = [offset for offset, _ in places]
        self._chunks.words[word + 1 :: width] = [length for _, length in places]

    def encode(self, ordinal: int, sorting_columns: list[dict[str, Any]] | None) -> list[EncodedThrift]:
        """Return the RowGroup structs; `ordinal` is the number of the first row group in the file."""
        table = StructRecords(_group_template())
        sorting = None if sorting_columns is None else encode_field("RowGroup", "sorting_columns", sorting_columns)
        sorting_words = table.strings.add(sorting)
        head, chunks = encode_list_header("struct", self._num_leaves), list(self._chunks.encode())
        for number, group in enumerate(self._groups):
            first = number * self._num_leaves
            columns = b"".join((head, *chunks[first : first + self._num_leaves]))
            table.words += (
                *table.strings.add(columns),
                group.uncompressed_size,
                group.num_rows,
                *sorting_words,
                group.position,
                group.compressed_size,
                ordinal + number if ordinal + number <= _MAX_ORDINAL else ABSENT,
            )
        return [EncodedThrift(each) for each in table.encode()]


def _write(sink: Sink, data: bytes | memoryview | None) -> tuple[int, int]:
    """Write a struct; return its offset and length, ABSENT for None."""
    if data is None:
        return ABSENT, ABSENT
    offset = sink.position
    return offset, sink.write(data)


def _encode_headers(leaves: Sequence[EncodedLeaf], num_groups: int) -> dict[int, Iterator[memoryview]]:
    """Return by page type the headers of all pages, in the order of the file."""
    tables: dict[int, StructRecords] = {}

    def records(page: EncodedPage) -> StructRecords:
        found = tables.get(page.type)
        if found is None:
            found = tables[page.type] = StructRecords(page_header_template(page.type))
        return found

    for group in range(num_groups):
        for leaf in leaves:
            chunk = leaf.chunks[group]
            if chunk.dictionary is not None:
                records(chunk.dictionary).words += chunk.dictionary.header
            statistics = None if leaf.options.page_index else leaf.statistics
            for number, page in enumerate(chunk.pages, chunk.first_page):
                table = records(page)
                table.words += page.header
                table.words += (
                    NO_STATISTICS if statistics is None else statistics.words(number, number + 1, table.strings)
                )
    return {page_type: table.encode() for page_type, table in tables.items()}
