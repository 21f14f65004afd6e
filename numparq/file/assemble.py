"""Assemble a file: magic number, row groups, Bloom filters, page indexes, footer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numparq.column.scratch import ThreadScratch
from numparq.column.write.chunk import EncodedLeaf
from numparq.errors import SchemaError, UnsupportedError
from numparq.format.footer.retype import replace_chunks, retype_chunks, row_group_rows
from numparq.format.footer.rewrite import FooterParts
from numparq.format.footer.tail import MAGIC
from numparq.format.schema_node import SchemaNode, leaf_columns
from numparq.format.thrift.encode import EncodedThrift, encode_struct
from numparq.io.sink import Sink
from numparq.util.version import CREATED_BY

from .null_leaves import NullLevels, moved_leaf
from .row_groups import Placement, WrittenRowGroups
from .write_plan import WritePlan

if TYPE_CHECKING:
    from numparq.column.write.sealed_pages import PageSealing
    from numparq.format.file_encryption import FileEncryption


class FileAssembler:
    """Bytes written of a file so far, and the contents of its footer.

    With `existing`, the sink already holds the row groups of that footer. `version` is numparq's.

    Attributes
    ----------
    alignment : int or None
        Row groups start at multiples of so many bytes.
    sorting_columns : list of dict, or None
        SortingColumn structs of all row groups.
    encryption : FileEncryption or None
        Sealers of an encrypted file.
    null_levels : NullLevels
        Levels of the nested null leaves.
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
        self.encryption: FileEncryption | None = None
        self.sorting_columns: list[dict[str, Any]] | None = None
        self._unindexed: list[WrittenRowGroups] = []
        self._last_end = (-1, b"")  # end and bytes of the last footer
        self.null_levels = NullLevels()
        self._existing = existing
        self._row_groups += existing.row_groups if existing else []
        self.num_rows = existing.num_rows if existing else 0
        self.num_row_groups = len(self._row_groups)

    @property
    def last_footer(self) -> bytes:
        """Footer that was written last, as bytes; empty before."""
        return self._last_end[1]

    @property
    def footer_digest(self) -> str | None:
        """SHA-256 of the footer as stored, if it is encrypted or signed and was written; else None."""
        return None if self.encryption is None else self.encryption.footer_digest

    def retype_leaves(
        self,
        plan: WritePlan,
        leaves: Mapping[int, SchemaNode],
        rewritten: Collection[int],
        existing: FooterParts | None,
        scratch: ThreadScratch,
    ) -> None:
        """Continue by a plan that has other nodes in place of leaf columns, by index, which have only nulls so far.

        `existing` is the footer with these nodes. The chunks of the leaves in `rewritten` are written again.
        """
        self._write_indexes()  # which completes the RowGroup structs
        self.plan, self._existing = plan, existing
        types = {index: node.physical for index, node in leaves.items() if node.physical is not None}
        self._row_groups = [retype_chunks(group, types) for group in self._row_groups]
        counts = {index: len(leaf_columns([leaves[index]])) for index in rewritten}
        if counts:
            groups = enumerate(self._row_groups)
            self._row_groups = [self._rewrite_chunks(number, group, counts, scratch) for number, group in groups]
            self.null_levels.replace_leaves(counts)
            for column in self.sorting_columns or ():
                column["column_idx"] = moved_leaf(column["column_idx"], counts)

    def check_rewritten(self, rewritten: Collection[int], leaves: Mapping[int, SchemaNode]) -> None:
        """Raise SchemaError or UnsupportedError if leaves, by index, cannot be written again as other nodes."""
        column = leaves[min(rewritten)].name
        self.null_levels.check(column)
        if self.encryption is not None:  # leaf columns that follow would have other ordinals
            raise UnsupportedError("a column of nulls cannot become nested in an encrypted file; pass schema=")
        sorted_by = {each["column_idx"] for each in self.sorting_columns or ()}
        if any(leaves[index].physical is None for index in sorted_by.intersection(rewritten)):
            raise SchemaError("the rows are sorted by a column that cannot become nested", column=column)

    def _rewrite_chunks(
        self, number: int, row_group: EncodedThrift, counts: Mapping[int, int], scratch: ThreadScratch
    ) -> EncodedThrift:
        """Write chunks of nothing but nulls for leaves, by index, that became so many; return the RowGroup."""
        plan, num_rows = self.plan, row_group_rows(row_group)
        encoded, paths = [], []
        for before, count in sorted(counts.items()):
            levels, first = self.null_levels.read(before, number, num_rows), moved_leaf(before, counts)
            for leaf in plan.leaves[first : first + count]:
                encoded.append(plan.encoder.encode_nulls(leaf, *levels, num_rows, scratch))
                paths.append(plan.paths[leaf.index])
        written = WrittenRowGroups(self._sink, encoded, paths, [num_rows], Placement())
        written.write_bloom_filters(self._sink)
        written.write_page_indexes(self._sink)
        return replace_chunks(row_group, counts, written.encode(0, None)[0])

    def write_magic(self) -> None:
        """Write the magic number at the start of the file."""
        self._sink.write(MAGIC if self.encryption is None else self.encryption.magic)

    def page_sealing(self, num_row_groups: int) -> PageSealing | None:
        """Return what seals the pages of the next row groups; UnsupportedError if there would be too many."""
        if self.encryption is None:
            return None
        from numparq.column.write.sealed_pages import PageSealing

        self.encryption.check_row_groups(self.num_row_groups + num_row_groups)
        return PageSealing(self.encryption.sealers, self.num_row_groups, self.encryption.checksum)

    def add_row_groups(self, leaves: Sequence[EncodedLeaf], num_rows: Sequence[int]) -> None:
        """Write consecutive row groups of `num_rows` rows each; `leaves` holds their chunks by leaf column."""
        for index in self.plan.null_leaves:
            for group, levels in enumerate(leaves[index].levels, self.num_row_groups):
                self.null_levels.add(index, group, *levels)
        self._unindexed.append(
            WrittenRowGroups(
                self._sink,
                leaves,
                self.plan.paths,
                num_rows,
                Placement(self.alignment, self.encryption, self.num_row_groups),
            )
        )
        self.num_rows += sum(num_rows)
        self.num_row_groups += len(num_rows)

    def write_footer(self, key_value_metadata: Mapping[str, str | bytes]) -> None:
        """Write Bloom filters, page indexes and the footer; row groups may follow, and the last footer counts.

        Skips the footer if the same one already ends the file.
        """
        self._write_indexes()
        if self.encryption is not None:
            key_value_metadata = self.encryption.visible_key_values(key_value_metadata)
        footer = self._encode_footer(key_value_metadata)
        if self.encryption is not None:
            self._sink.write(self.encryption.seal_footer(footer))
        elif self._last_end != (self._sink.position, footer):
            self._sink.write(footer + len(footer).to_bytes(4, "little") + MAGIC)
            self._last_end = (self._sink.position, footer)

    def _encode_footer(self, key_value_metadata: Mapping[str, str | bytes]) -> bytes:
        if self._existing:
            return self._existing.encode(self._row_groups, self.num_rows, key_value_metadata, self._created_by)
        row_groups = self._row_groups
        if self.encryption is not None:
            row_groups = [self.encryption.seal_row_group(each, number) for number, each in enumerate(row_groups)]
        pairs = [{"key": key, "value": value} for key, value in key_value_metadata.items()]
        return encode_struct(
            "FileMetaData",
            {
                "version": 1,
                "schema": self.plan.schema,
                "num_rows": self.num_rows,
                "row_groups": row_groups,
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
