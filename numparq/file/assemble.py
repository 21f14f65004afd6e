"""Assemble a file: magic number, row groups, Bloom filters, page indexes, footer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numparq.column.write.chunk import EncodedChunk
from numparq.format.column_order import ColumnOrder
from numparq.format.footer.rewrite import FooterParts
from numparq.format.footer.tail import MAGIC
from numparq.format.schema_node import SchemaNode, leaf_columns, to_schema_elements
from numparq.format.thrift.encode import EncodedThrift, encode_struct
from numparq.io.sink import Sink
from numparq.util.version import CREATED_BY


class FileAssembler:
    """Bytes written of a file so far, and the contents of its footer.

    With `existing`, the sink already holds the row groups of that footer. `version` is numparq's.
    """

    def __init__(
        self,
        sink: Sink,
        columns: Sequence[SchemaNode],
        version: str,
        orders: Sequence[ColumnOrder],
        existing: FooterParts | None = None,
    ) -> None:
        self._sink = sink
        self.leaves = leaf_columns(list(columns))
        self._schema = to_schema_elements(columns)
        self._orders = [order.thrift_union for order in orders]
        self._created_by = CREATED_BY.format(version=version)
        self._row_groups: list[EncodedThrift | dict[str, Any]] = []
        self._unindexed: list[tuple[dict[str, Any], list[EncodedChunk]]] = []  # indexes not written yet
        self._last_end = (-1, b"")  # end and bytes of the last footer
        self._existing = existing
        self._row_groups += existing.row_groups if existing else []
        self.num_rows = existing.num_rows if existing else 0
        self.num_row_groups = len(self._row_groups)

    @property
    def last_footer(self) -> bytes:
        """Footer that was written last, as bytes; empty before."""
        return self._last_end[1]

    def write_magic(self) -> None:
        """Write the magic number at the start of the file."""
        self._sink.write(MAGIC)

    def align(self, block: int) -> None:
        """Pad with zeros, so that the next row group starts at a multiple of `block` bytes."""
        padding = -self._sink.position % block
        if padding:
            self._sink.write(bytes(padding))

    def add_row_group(
        self, chunks: list[EncodedChunk], num_rows: int, sorting: list[dict[str, Any]] | None = None
    ) -> None:
        """Write a row group of one chunk for each leaf; `sorting` holds SortingColumn structs."""
        start = self._sink.position
        metadata_of: list[dict[str, Any]] = []
        for leaf, chunk in zip(self.leaves, chunks, strict=True):
            metadata = chunk.column_metadata(leaf, self._sink.position)
            for part in chunk.take_buffers():
                self._sink.write(part)
            metadata_of.append(metadata)
        group: dict[str, Any] = {
            "columns": [{"file_offset": 0, "meta_data": metadata} for metadata in metadata_of],
            "total_byte_size": sum(metadata["total_uncompressed_size"] for metadata in metadata_of),
            "num_rows": num_rows,
            "sorting_columns": sorting,
            "file_offset": start,
            "total_compressed_size": sum(metadata["total_compressed_size"] for metadata in metadata_of),
            "ordinal": self.num_row_groups if self.num_row_groups < 1 << 15 else None,
        }
        self._unindexed.append((group, chunks))
        self.num_rows += num_rows
        self.num_row_groups += 1

    def write_footer(self, key_value_metadata: Mapping[str, str | bytes]) -> None:
        """Write Bloom filters, page indexes and the footer; row groups may follow, and the last footer counts.

        Skips the footer if the same one already ends the file.
        """
        self._write_indexes()
        footer = self._encode_footer(key_value_metadata)
        if self._last_end != (self._sink.position, footer):
            self._sink.write(footer + len(footer).to_bytes(4, "little") + MAGIC)
            self._last_end = (self._sink.position, footer)

    def _encode_footer(self, key_value_metadata: Mapping[str, str | bytes]) -> bytes:
        if self._existing:
            return self._existing.encode(self._row_groups, self.num_rows, key_value_metadata, self._created_by)
        pairs = [{"key": key, "value": value} for key, value in key_value_metadata.items()]
        return encode_struct(
            "FileMetaData",
            {
                "version": 1,
                "schema": self._schema,
                "num_rows": self.num_rows,
                "row_groups": self._row_groups,
                "key_value_metadata": pairs or None,
                "created_by": self._created_by,
                "column_orders": self._orders,
            },
        )

    def _write_indexes(self) -> None:
        """Write the pending Bloom filters and page indexes, and encode the RowGroup structs with their offsets."""
        for group, chunks in self._unindexed:
            for column, chunk in zip(group["columns"], chunks, strict=True):
                if chunk.bloom_filter is not None:
                    place = self._write_struct(chunk.bloom_filter)
                    column["meta_data"]["bloom_filter_offset"], column["meta_data"]["bloom_filter_length"] = place
        for group, chunks in self._unindexed:
            for column, chunk in zip(group["columns"], chunks, strict=True):
                if chunk.column_index is not None:
                    place = self._write_struct(encode_struct("ColumnIndex", chunk.column_index))
                    column["column_index_offset"], column["column_index_length"] = place
            for column, chunk in zip(group["columns"], chunks, strict=True):
                if chunk.offset_index is not None:
                    place = self._write_struct(encode_struct("OffsetIndex", chunk.offset_index))
                    column["offset_index_offset"], column["offset_index_length"] = place
            self._row_groups.append(EncodedThrift(encode_struct("RowGroup", group)))
        self._unindexed.clear()

    def _write_struct(self, data: bytes) -> tuple[int, int]:
        offset = self._sink.position
        self._sink.write(data)
        return offset, len(data)
