"""A read with ``on_error="skip"``: the rows and columns that are whole, and the list of what was lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..column.buffer import ColumnBuffer
from ..column.chunks import RowSlice
from ..errors import LimitError, ParquetError, SchemaError, UnsupportedError
from ..frame.labels import row_index
from ..frame.layout import Layout
from ..metadata.footer import Footer
from ..nested_columns import NestedRead
from ..pandas_metadata import PandasMetadata
from ..schema import Leaf
from .chunks import SoundTables, is_within
from .jobs import RecoveringContext, RecoveringMaker
from .lost import Losses, Lost
from .rows import kept_rows

if TYPE_CHECKING:
    import pandas as pd

    from ..io.joint import JointSource
    from ..reading.rows import FileRows

__all__ = ["LOST", "Recovery"]

LOST = "numparq.lost"


class Recovery:
    """How a read goes on behind damages.

    A chunk that fails is decoded again page by page (`numparq.recovery.jobs`). Where something fails that no page is to
    blame for, the read begins again without the chunk or column that it failed at.

    Parameters
    ----------
    file : str
        The file's name.
    footer : Footer
        Its footer.
    """

    context = RecoveringContext

    def __init__(self, file: str, footer: Footer) -> None:
        self._file = file
        self._starts = [0, *np.cumsum(footer.row_group_num_rows).tolist()]
        self._losses = Losses(file, self._starts)
        self._listed: list[Lost] = []
        self._kept: np.ndarray | None = None
        self._chunks: dict[tuple[int, str], ParquetError] = {}
        self._columns: dict[Any, ParquetError] = {}

    def read(self, attempt: Callable[[Any], pd.DataFrame], columns: Any, known: Sequence[str]) -> pd.DataFrame:
        """Read, and read again without what it failed at, until nothing fails.

        Parameters
        ----------
        attempt : callable
            Reads columns; given those still wanted, as the user would.
        columns : sequence of str or tuple, or None
            The columns wanted.
        known : sequence of str
            Those of the file.

        Returns
        -------
        pandas.DataFrame
            With a list of `Lost` as ``attrs["numparq.lost"]``.
        """
        while True:
            self._losses = Losses(self._file, self._starts)
            try:
                frame = attempt(columns)
            except (LimitError, SchemaError):
                raise
            except ParquetError as error:
                columns = self._without(error, columns, known)
                continue
            gone = [Lost(self._file, None, str(name), None, error.message) for name, error in self._columns.items()]
            frame.attrs = {**frame.attrs, LOST: gone + self._listed}
            return frame

    @staticmethod
    def rows(rows: FileRows, targets: Any, limit: Any) -> Sequence[Any]:
        """Give the rows to decode: all that were chosen by position, for pages that are lost answer no filter."""
        if rows.has_condition:
            raise UnsupportedError("on_error='skip' does not go with filters: read without them, and filter the frame")
        return rows.slices

    def _without(self, error: ParquetError, columns: Any, known: Sequence[str]) -> Any:
        """Note what an error is about, and give the columns to go on with; raise it where that is not known."""
        leaf, row_group = error.where.get("column"), error.where.get("row_group")
        if not isinstance(leaf, str):
            raise error
        if isinstance(row_group, int) and (row_group, leaf) not in self._chunks:
            self._chunks[row_group, leaf] = error
            return columns
        wanted = list(known if columns is None else columns)
        guilty = [name for name in wanted if is_within(leaf, _path_of(name)) or is_within(_path_of(name), leaf)]
        if not guilty:
            raise error
        for name in guilty:
            self._columns[name] = error
        return [name for name in wanted if name not in guilty]

    def tables(
        self, footer: Footer, leaves: Sequence[Leaf], row_groups: Sequence[int], end: int, files: JointSource | None
    ) -> SoundTables:
        """Make the chunk tables, as `ChunkTables` does."""
        return SoundTables(footer, leaves, row_groups, end, files, self._chunks)

    def few(self, *rows: Any) -> dict[int, ColumnBuffer]:
        """Decode nothing beside the jobs, which note what is lost."""
        return {}

    def maker(
        self, context: Any, tables: Any, leaves: Sequence[Leaf], memory: Layout, slices: Sequence[Any]
    ) -> RecoveringMaker:
        """Make what makes the jobs, as `JobMaker`."""
        return RecoveringMaker(context, tables, memory, self._losses)

    def whole(
        self, layout: Layout, buffers: list[ColumnBuffer], labels: list[str | None], nested: list[NestedRead],
        virtual: list[tuple[str, Any]], leaves: list[Leaf], slices: Sequence[Any],
    ) -> tuple[Layout, list[ColumnBuffer], list[str | None], list[NestedRead], list[tuple[str, Any]]]:  # fmt: skip
        """Give the columns and rows that are whole.

        Columns count in the order of the rows that they have lost, fewest first; one with which no row would be whole
        is left out. Of the others, a row stays that is whole in all.

        Parameters
        ----------
        layout, buffers
            What the leaves were decoded to.
        labels : list of str or None
            For each leaf the name of the column that it is, or begins.
        nested : list of NestedRead
            The nested columns.
        virtual : list of (str, array)
            The virtual columns.
        leaves : list of Leaf
            The leaves.
        slices : list of RowSlice
            The rows read.

        Returns
        -------
        layout, buffers, labels, nested, virtual
        """
        self._listed = self._losses.listed([leaf.name for leaf in leaves])
        self._kept = None
        if not self._losses:
            return layout, buffers, labels, nested, virtual
        dropped, kept = self._choose(labels, nested, slices)
        layout, buffers = kept_rows(layout, buffers, leaves, kept)
        labels = [None if position in dropped else label for position, label in enumerate(labels)]
        nested = [column for column in nested if column.places.start not in dropped]
        self._kept = kept
        return layout, buffers, labels, nested, [(name, values.take(np.flatnonzero(kept))) for name, values in virtual]

    def _choose(
        self, labels: Sequence[str | None], nested: Sequence[NestedRead], slices: Sequence[RowSlice]
    ) -> tuple[set[int], np.ndarray]:
        """Choose columns to leave out, and rows to keep; gives the positions of the leaves, and a bool for each row."""
        places = {column.places.start: range(column.places.start, column.places.stop) for column in nested}
        columns = [places.get(position, range(position, position + 1)) for position, label in enumerate(labels)
                   if label is not None]  # fmt: skip
        inside = {leaf for leaves in columns for leaf in leaves}
        kept = self._losses.whole_rows(slices, set(range(len(labels))) - inside)  # of what is to be exploded
        dropped: set[int] = set()
        for leaves in sorted(columns, key=lambda leaves: self._losses.num_rows(slices, leaves)):
            if not self._losses.num_rows(slices, leaves):
                continue
            left = kept & self._losses.whole_rows(slices, leaves)
            if left.any():
                kept = left
            else:
                dropped.update(leaves)
        return dropped, kept

    def label(self, frame: pd.DataFrame, metadata: PandasMetadata | None) -> None:
        """Give the rows the labels that they would have if none were lost."""
        if self._kept is not None and _is_range(frame.index):
            frame.index = row_index(metadata, {}, len(self._kept))[np.flatnonzero(self._kept)]


def _is_range(index: pd.Index) -> bool:
    import pandas as pd

    return isinstance(index, pd.RangeIndex)


def _path_of(name: Any) -> str:
    """Give the path of a column as a user names it, joined by dots."""
    return ".".join(map(str, name)) if isinstance(name, tuple) else str(name)
