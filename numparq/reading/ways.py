"""What a read does where the file is damaged: the strict way, which is to end there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from ..column.buffer import ColumnBuffer
from ..column.chunks import ChunkTables, RowSlice
from ..column.context import Context
from ..column.jobs import JobMaker
from ..metadata.footer import Footer
from ..schema import Leaf

if TYPE_CHECKING:
    import pandas as pd

    from ..column.rounds import Replaceable
    from ..column.wanted import WantedRows
    from ..frame import Layout
    from ..io.joint import JointSource
    from ..nested_columns import NestedRead
    from ..pandas_metadata import PandasMetadata
    from ..targets import Target
    from .rows import FileRows

__all__ = ["Strict"]

_FEW = 64  # columns, whose tables are kept


class Strict:
    """A read that ends at the first damage: what it has decoded is whole. `numparq.recovery.Recovery` goes on."""

    context = Context

    @staticmethod
    def tables(
        footer: Footer, leaves: Sequence[Leaf], row_groups: Sequence[int], end: int, files: JointSource | None
    ) -> ChunkTables:
        """Make the tables of the chunks: those of few columns once, as far as they follow from the footer."""
        if files is not None or len(leaves) > _FEW:
            return ChunkTables(footer, leaves, row_groups, end, files)
        key = ("tables", end, tuple(leaves), *row_groups)
        return footer.kept.get(key, lambda: ChunkTables(footer, leaves, row_groups, end))

    @staticmethod
    def few(
        context: Context, tables: ChunkTables, leaves: Sequence[Leaf], memory: Replaceable,
        slices: Sequence[RowSlice | WantedRows], columns: Collection[int],
    ) -> dict[int, ColumnBuffer]:  # fmt: skip
        """Decode the columns that take no jobs: of few rows that are one run."""
        if len(slices) != 1 or isinstance(slices[0], RowSlice):
            return {}
        from ..column.few import FewRows

        return FewRows(context, tables, leaves, memory, slices[0]).decode(columns)

    @staticmethod
    def maker(
        context: Context, tables: ChunkTables, leaves: Sequence[Leaf], memory: Replaceable,
        slices: Sequence[RowSlice | WantedRows],
    ) -> JobMaker:  # fmt: skip
        """Make what makes the jobs: that for rows here and there where some are so."""
        if all(isinstance(part, RowSlice) for part in slices):
            return JobMaker(context, tables, leaves, memory)
        from ..column.selecting import SelectingMaker

        return SelectingMaker(context, tables, leaves, memory)

    @staticmethod
    def whole(
        layout: Layout, buffers: list[ColumnBuffer], labels: list[str | None], nested: list[NestedRead],
        virtual: list[tuple[str, Any]], leaves: list[Leaf], slices: Sequence[RowSlice | WantedRows],
    ) -> tuple[Layout, list[ColumnBuffer], list[str | None], list[NestedRead], list[tuple[str, Any]]]:  # fmt: skip
        """Give the columns and rows that the frame is made of."""
        return layout, buffers, labels, nested, virtual

    @staticmethod
    def rows(rows: FileRows, targets: Sequence[Target], limit: int | None) -> Sequence[RowSlice | WantedRows]:
        """Find the rows to decode."""
        return rows.left(targets, limit)

    @staticmethod
    def label(frame: pd.DataFrame, metadata: PandasMetadata | None) -> None:
        """Leave the labels as they are."""
