"""Assemble a file: magic number, row groups, Bloom filters, page indexes, footer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numparq.column.write.chunk import EncodedLeaf
from numparq.format.footer.rewrite import FooterParts, retype_chunks
from numparq.format.footer.tail import MAGIC
from numparq.format.schema_node import SchemaNode
from numparq.format.thrift.encode import EncodedThrift, encode_struct
from numparq.io.sink import Sink
from numparq.util.version import CREATED_BY

from .row_groups import WrittenRowGroups
from .write_plan import WritePlan


class FileAssembler:
    """Bytes written of a file so far, and the contents of its footer.

    With `existing`, the sink already holds the row groups of that footer. `version` is numparq's.

    Attributes
    ----------
    alignment : int or None
        Row groups start at multiples of so many bytes.
    sorting_columns : list of dict, or None
        SortingColumn structs of all row groups.
    """

    def __init__(
        self,
        sink: Sink,
        plan: WritePlan,
        version: str,
        existing: FooterParts | None = None,
    ) -> None:
        self._sink = sink
        self.plan = plan
        self._created_by = CREATED_BY.format(version=version)
        self._row_groups: list[EncodedThrift] = []
        self.alignment: int | None = None
        self.sorting_columns: list[dict[str, Any]] | None = None
        self._unindexed: list[WrittenRowGroups] = []
        self._last_end = (-1, b"")  # end and bytes of the last footer
        self._existing = existing
        self._row_groups += existing.row_groups if existing else []
        self.num_rows = existing.num_rows if existing else 0
        self.num_row_groups = len(self._row_groups)

    @property
    def last_footer(self) -> bytes:
        """Footer that was written last, as bytes; empty before."""
        return self._last_end[1]

    def retype_leaves(self, plan: WritePlan, leaves: Mapping[int, SchemaNode]) -> None:
        """Continue by a plan that gives other types to leaf columns, by index, which have only nulls so far."""
        self._write_indexes()  # which completes the RowGroup structs
        self.plan = plan
        types = {index: node.physical for index, node in leaves.items() if node.physical is not None}
        self._row_groups = [retype_chunks(group, types) for group in self._row_groups]
        if self._existing:
            self._existing = self._existing.retype_leaves(leaves)

    def write_magic(self) -> None:
        """Write the magic number at the start of the file."""
        self._sink.write(MAGIC)

    def add_row_groups(self, leaves: Sequence[EncodedLeaf], num_rows: Sequence[int]) -> None:
        """Write consecutive row groups of `num_rows` rows each; `leaves` holds their chunks by leaf column."""
        self._unindexed.append(WrittenRowGroups(self._sink, leaves, self.plan.paths, num_rows, self.alignment))
        self.num_rows += sum(num_rows)
        self.num_row_groups += len(num_rows)

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
                "schema": self.plan.schema,
                "num_rows": self.num_rows,
                "row_groups": self._row_groups,
                "key_value_metadata": pairs or None,
                "created_by": self._created_by,
                "column_orders": self.plan.column_orders,
            },
        )

    def _write_indexes(self) -> None:
        """Write the pending Bloom filters and page indexes, and encode the RowGroup structs with their offsets."""
        for written in self._unindexed:
            written.write_bloom_filters(self._sink)
        for written in self._unindexed:
            written.write_page_indexes(self._sink)
            self._row_groups += written.encode(len(self._row_groups), self.sorting_columns)
        self._unindexed.clear()
