"""Error policy `on_error="skip"`: intact rows and columns, and a report of the lost ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.column.buffers import DecodedColumn
from numparq.column.read.row_selection import RowSlice
from numparq.errors import LimitError, ParquetError, SchemaError, UnsupportedError
from numparq.format.footer.file_metadata import Footer
from numparq.format.key_values.pandas import PandasMetadata
from numparq.format.schema import Leaf
from numparq.to_pandas.frame import BlockLayout
from numparq.to_pandas.labels import row_index
from numparq.to_pandas.nested.column import NestedOutput

from .footer_checks import TolerantChunkTables, is_within
from .losses import LOST_ATTR, Losses, Lost
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
        self._intact: np.ndarray | None = None
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
    def select(rows: FileRowReader, targets: Any, limit: Any) -> Sequence[Any]:
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
            self._damaged_chunks[row_group, leaf] = error
            return columns
        wanted = list(known if columns is None else columns)
        guilty = [name for name in wanted if is_within(leaf, _path_of(name)) or is_within(_path_of(name), leaf)]
        if not guilty:
            raise error
        for name in guilty:
            self._damaged_columns[name] = error
        return [name for name in wanted if name not in guilty]

    def chunk_tables(
        self, footer: Footer, leaves: Sequence[Leaf], row_groups: Sequence[int], end: int, files: MultiFileSource | None
    ) -> TolerantChunkTables:
        """Build the chunk tables."""
        return TolerantChunkTables(footer, leaves, row_groups, end, files, self._damaged_chunks)

    def decode_few(self, *rows: Any) -> dict[int, DecodedColumn]:
        """Decode nothing inline: only jobs record losses."""
        return {}

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
        virtual: list[tuple[str, Any]],
        leaves: list[Leaf],
        slices: Sequence[Any],
    ) -> tuple[BlockLayout, list[DecodedColumn], list[str | None], list[NestedOutput], list[tuple[str, Any]]]:
        """Return layout, buffers, labels, nested and virtual columns without lost rows.

        Columns are tried in the order of lost rows, fewest first; a column that would leave no intact row is dropped.
        """
        self._report = self._losses.to_list([leaf.name for leaf in leaves])
        self._intact = None
        if not self._losses:
            return layout, buffers, labels, nested, virtual
        dropped, kept = self._choose_intact(labels, nested, slices)
        layout, buffers = drop_lost_rows(layout, buffers, leaves, kept)
        labels = [None if position in dropped else label for position, label in enumerate(labels)]
        nested = [column for column in nested if column.leaf_slice.start not in dropped]
        self._intact = kept
        return layout, buffers, labels, nested, [(name, values.take(np.flatnonzero(kept))) for name, values in virtual]

    def _choose_intact(
        self, labels: Sequence[str | None], nested: Sequence[NestedOutput], slices: Sequence[RowSlice]
    ) -> tuple[set[int], np.ndarray]:
        """Return the positions of leaves to drop, and for each row whether to keep it (bool array)."""
        places = {column.leaf_slice.start: range(column.leaf_slice.start, column.leaf_slice.stop) for column in nested}
        columns = [
            places.get(position, range(position, position + 1))
            for position, label in enumerate(labels)
            if label is not None
        ]
        inside = {leaf for leaves in columns for leaf in leaves}
        kept = self._losses.intact_rows(slices, set(range(len(labels))) - inside)  # leaves of the exploded collection
        dropped: set[int] = set()
        for leaves in sorted(columns, key=lambda leaves: self._losses.num_lost_rows(slices, leaves)):
            if not self._losses.num_lost_rows(slices, leaves):
                continue
            left = kept & self._losses.intact_rows(slices, leaves)
            if left.any():
                kept = left
            else:
                dropped.update(leaves)
        return dropped, kept

    def relabel(self, frame: pd.DataFrame, metadata: PandasMetadata | None) -> None:
        """Set the row labels that a read without losses has."""
        if self._intact is not None and _is_range(frame.index):
            frame.index = row_index(metadata, {}, len(self._intact))[np.flatnonzero(self._intact)]


def _is_range(index: pd.Index) -> bool:
    import pandas as pd

    return isinstance(index, pd.RangeIndex)


def _path_of(name: Any) -> str:
    """Return a user's column name as a dotted path."""
    return ".".join(map(str, name)) if isinstance(name, tuple) else str(name)
