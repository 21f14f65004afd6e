"""Error policy `on_error="skip"`: intact rows and columns, and a report of the lost ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.column.buffers import DecodedColumn
from numparq.column.read.row_selection import RowSlice, RowSlices, SelectedRows
from numparq.errors import LimitError, ParquetError, SchemaError, UnsupportedError
from numparq.format.footer.file_metadata import Footer
from numparq.format.key_values.pandas import PandasMetadata
from numparq.format.schema import Leaf
from numparq.plan.row_ranges import RowRanges
from numparq.to_pandas.frame import BlockLayout
from numparq.to_pandas.labels import row_index
from numparq.to_pandas.nested.column import NestedOutput

from .footer_checks import TolerantChunkTables, is_within
from .losses import LOST_ATTR, Losses, Lost, choose_columns, without_frames
from .lost_rows import drop_lost_rows
from .retry import TolerantContext, TolerantJobMaker

if TYPE_CHECKING:
    import pandas as pd

    from numparq.io.multi_file_source import MultiFileSource
    from numparq.scan.file_rows import FileRowReader

__all__ = ["SkipDamaged"]


class SkipDamaged:
    """Error policy that skips damage and reports it: a failed column chunk is decoded again, page by page.

    If no page is to blame, the read restarts without that chunk or column.
    """

    context = TolerantContext

    def __init__(self, file: str, footer: Footer) -> None:
        self._file = file
        self._starts = [0, *np.cumsum(footer.row_group_num_rows).tolist()]
        self._losses = Losses(file, self._starts)
        self._report: list[Lost] = []
        self._intact: RowRanges | None = None
        self._num_rows = 0
        self._damaged_chunks: dict[tuple[int, str], ParquetError] = {}
        self._damaged_columns: dict[Any, ParquetError] = {}

    def read_with_retries(
        self, attempt: Callable[[Any], pd.DataFrame], columns: Any, known: Sequence[str]
    ) -> pd.DataFrame:
        """Read, and retry without the damaged chunk or column, until nothing fails.

        `attempt` reads columns, given as by the user; the frame gets a list of `Lost` as ``attrs["numparq.lost"]``.
        """
        while True:
            self._losses = Losses(self._file, self._starts)
            try:
                frame = attempt(columns)
            except (LimitError, SchemaError):
                raise
            except ParquetError as error:
                columns = self._drop_culprit(error, columns, known)
                continue
            gone = [
                Lost(self._file, None, str(name), None, error.message) for name, error in self._damaged_columns.items()
            ]
            frame.attrs = {**frame.attrs, LOST_ATTR: gone + self._report}
            return frame

    @staticmethod
    def select(rows: FileRowReader, targets: Any, limit: Any) -> SelectedRows:
        """Return the rows selected by position; refuse a predicate, since a lost value cannot be tested."""
        if rows.has_predicate:
            raise UnsupportedError(
                "on_error='skip' does not support filters; read without them, then filter the DataFrame"
            )
        return rows.selections

    def _drop_culprit(self, error: ParquetError, columns: Any, known: Sequence[str]) -> Any:
        """Record the chunk or column of an error, and return the columns to go on with.

        Raises the error if it names no projected column.
        """
        leaf, row_group = error.where.get("column"), error.where.get("row_group")
        if not isinstance(leaf, str):
            raise error
        if isinstance(row_group, int) and (row_group, leaf) not in self._damaged_chunks:
            self._damaged_chunks[row_group, leaf] = without_frames(error)
            return columns
        wanted = list(known if columns is None else columns)
        guilty = [name for name in wanted if is_within(leaf, _path_of(name)) or is_within(_path_of(name), leaf)]
        if not guilty:
            raise error
        for name in guilty:
            self._damaged_columns[name] = without_frames(error)
        return [name for name in wanted if name not in guilty]

    def chunk_tables(
        self, footer: Footer, leaves: Sequence[Leaf], row_groups: Sequence[int], end: int, files: MultiFileSource | None
    ) -> TolerantChunkTables:
        """Build the chunk tables."""
        return TolerantChunkTables(footer, leaves, row_groups, end, files, self._damaged_chunks)

    def job_maker(
        self, context: Any, tables: Any, leaves: Sequence[Leaf], memory: BlockLayout, slices: Sequence[Any]
    ) -> TolerantJobMaker:
        """Build the job scheduler."""
        return TolerantJobMaker(context, tables, memory, self._losses)

    def drop_lost(
        self,
        layout: BlockLayout,
        buffers: list[DecodedColumn],
        labels: list[str | None],
        nested: list[NestedOutput],
        leaves: list[Leaf],
        slices: SelectedRows,
    ) -> tuple[BlockLayout, list[DecodedColumn], list[str | None], list[NestedOutput], SelectedRows]:
        """Return layout, buffers, labels, nested columns and row slices without lost rows.

        Columns are tried in the order of lost rows, fewest first; a column that would leave no intact row is dropped.
        """
        self._report = self._losses.to_list([leaf.name for leaf in leaves])
        self._intact = None
        assert isinstance(slices, RowSlices)  # there is no predicate
        if not self._losses:
            return layout, buffers, labels, nested, slices
        dropped, kept = self._choose_intact(labels, nested, slices)
        layout, buffers = drop_lost_rows(layout, buffers, leaves, kept, dropped)
        labels = [None if position in dropped else label for position, label in enumerate(labels)]
        nested = [column for column in nested if column.leaf_slice.start not in dropped]
        self._intact, self._num_rows = kept, slices.num_rows
        return layout, buffers, labels, nested, _slices_of(slices, kept)

    def _choose_intact(
        self, labels: Sequence[str | None], nested: Sequence[NestedOutput], slices: RowSlices
    ) -> tuple[set[int], RowRanges]:
        """Return the positions of leaves to drop, and the output rows to keep."""
        places = {column.leaf_slice.start: range(column.leaf_slice.start, column.leaf_slice.stop) for column in nested}
        columns = [
            places.get(position, range(position, position + 1))
            for position, label in enumerate(labels)
            if label is not None
        ]
        inside = {leaf for leaves in columns for leaf in leaves}
        others = set(range(len(labels))) - inside  # leaves of the exploded collection
        kept = RowRanges.all(slices.num_rows) - self._losses.lost_rows(slices, others)
        dropped, kept = choose_columns([self._losses.lost_rows(slices, leaves) for leaves in columns], kept)
        return {leaf for column in dropped for leaf in columns[column]}, kept

    def relabel(self, frame: pd.DataFrame, metadata: PandasMetadata | None) -> None:
        """Set the row labels that a read without losses has."""
        if self._intact is not None and _is_range(frame.index):
            labels = row_index(metadata, [], self._num_rows)
            whole = self._intact.count == self._num_rows
            frame.index = labels if whole else labels.take(self._intact.indices())


def _slices_of(slices: RowSlices, kept: RowRanges) -> RowSlices:
    """Return the slices of the output rows in `kept`, which are numbered anew."""
    found, out = [], 0
    for rows in slices:
        for start, stop in kept.clip(rows.out, rows.out + len(rows)):
            found.append(RowSlice(rows.row_group, start - rows.out + rows.start, stop - rows.out + rows.start, out))
            out += stop - start
    return RowSlices.of(found)


def _is_range(index: pd.Index) -> bool:
    import pandas as pd

    return isinstance(index, pd.RangeIndex)


def _path_of(name: Any) -> str:
    """Return a user's column name as a dotted path."""
    return ".".join(map(str, name)) if isinstance(name, tuple) else str(name)
