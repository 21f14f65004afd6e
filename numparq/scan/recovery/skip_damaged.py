"""Error policy `on_error="skip"`: intact rows and columns of one file or many, and a report of the lost ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from numparq.column.buffers import DecodedColumn
from numparq.column.read.row_selection import RowSlice, RowSlices
from numparq.errors import LimitError, ParquetError, SchemaError
from numparq.format.key_values.pandas import PandasMetadata
from numparq.format.open_file import OpenFile
from numparq.plan.row_ranges import RowRanges
from numparq.scan.projected_columns import ProjectedColumns
from numparq.to_pandas.frame import BlockLayout
from numparq.to_pandas.labels import row_index

from .file_policy import SkipDamagedFile
from .footer_checks import is_within
from .intact_pages import DamagedChunk
from .losses import LOST_ATTR, Lost, choose_columns, without_frames
from .lost_rows import keep_rows

if TYPE_CHECKING:
    import pandas as pd

    from numparq.scan.file_reader import FileReader

_NO_ROWS = np.empty((0, 2), np.int64)
_Unit = TypeVar("_Unit")


class _DecodedFile(NamedTuple):
    """Decoded rows of a file in a frame, `first` its first output row; parameters of `SkipDamaged.drop_lost`."""

    rows: FileReader
    first: int
    positions: Mapping[int, Sequence[int]] | None = None

    @property
    def policy(self) -> SkipDamagedFile:
        """The policy that the file was decoded with."""
        assert isinstance(self.rows.policy, SkipDamagedFile)
        return self.rows.policy

    def lost_rows(self, leaves: Sequence[int]) -> RowRanges:
        """Return the output rows with a loss in leaves of the frame."""
        own = leaves if self.positions is None else [at for leaf in leaves for at in self.positions.get(leaf, ())]
        return self.policy.losses.lost_rows(self.rows.selections, own).shift(self.first)

    @property
    def matching(self) -> RowRanges:
        """Output rows that satisfy the predicate."""
        matching = self.policy.matching
        return (RowRanges.all(self.rows.num_rows) if matching is None else matching).shift(self.first)

    def keep(self, kept: RowRanges) -> RowRanges:
        """Select the output rows in `kept`; return those of the file, from 0."""
        own = kept.clip(self.first, self.first + self.rows.num_rows).shift(-self.first)
        self.rows.selections = _take_slices(self.rows.selections, own)
        return own


class SkipDamaged:
    """Error policy that skips damage and reports it: a failed column chunk is decoded again, page by page.

    If no page is to blame, the read restarts without that chunk or column. `lost` grows from unit to unit of a stream.
    """

    def __init__(self, lost: list[Lost] | None = None) -> None:
        self.lost: list[Lost] = [] if lost is None else lost
        self._report: list[Lost] = []
        self._intact: RowRanges | None = None
        self._num_rows = 0
        self._damaged_chunks: dict[str, dict[tuple[int, str], ParquetError]] = {}
        self._damaged_pages: dict[str, dict[tuple[int, str], DamagedChunk]] = {}
        self._damaged_columns: dict[Any, ParquetError] = {}

    def file_policy(self, file: OpenFile) -> SkipDamagedFile:
        """Return the policy for another attempt at the rows of a file."""
        name = file.source.name
        chunks, pages = self._damaged_chunks.get(name, {}), self._damaged_pages.setdefault(name, {})
        return SkipDamagedFile(name, file.footer, chunks, pages)

    def read_with_retries(
        self, attempt: Callable[[Any], pd.DataFrame], columns: Any, known: Callable[[], Sequence[str]]
    ) -> pd.DataFrame:
        """Read, and retry without the damaged chunk or column, until nothing fails.

        `attempt` reads columns, given as by the user; the frame gets a list of `Lost` as ``attrs["numparq.lost"]``.
        """
        while True:
            try:
                frame = attempt(columns)
            except (LimitError, SchemaError):
                raise
            except ParquetError as error:
                columns = self._drop_culprit(error, columns, known)
                continue
            gone = [
                Lost(str(error.where.get("file")), None, str(name), None, error.message)
                for name, error in self._damaged_columns.items()
            ]
            frame.attrs = {**frame.attrs, LOST_ATTR: gone + self._report}
            return frame

    def _drop_culprit(self, error: ParquetError, columns: Any, known: Callable[[], Sequence[str]]) -> Any:
        """Record the chunk or column of an error, and return the columns to go on with.

        Raises the error if it names no projected column.
        """
        leaf, row_group, file = (error.where.get(name) for name in ("column", "row_group", "file"))
        if not isinstance(leaf, str):
            raise error
        if isinstance(row_group, int) and isinstance(file, str):
            damaged = self._damaged_chunks.setdefault(file, {})
            if (row_group, leaf) not in damaged:
                damaged[row_group, leaf] = without_frames(error)
                return columns
        wanted = list(known() if columns is None else columns)
        guilty = [name for name in wanted if is_within(leaf, _path_of(name)) or is_within(_path_of(name), leaf)]
        if not guilty:
            raise error
        for name in guilty:
            self._damaged_columns[name] = without_frames(error)
        return [name for name in wanted if name not in guilty]

    def read_unit(self, attempt: Callable[[], _Unit], row_groups: Mapping[str, Collection[int]]) -> _Unit:
        """Return what `attempt` reads; retry without damaged chunks of the unit, whose row groups are given by file."""
        while True:
            try:
                unit = attempt()
            except (LimitError, SchemaError):
                raise
            except ParquetError as error:
                if not self._drop_chunks(without_frames(error), row_groups):
                    raise
                continue
            self.lost.extend(self._report)
            return unit

    def _drop_chunks(self, error: ParquetError, row_groups: Mapping[str, Collection[int]]) -> bool:
        """Record the chunk of an error; if it names none, all chunks of its column. Return whether there are any."""
        leaf, row_group, file = (error.where.get(name) for name in ("column", "row_group", "file"))
        named = {file: [row_group]} if isinstance(file, str) and isinstance(row_group, int) else row_groups
        is_new = False
        if not isinstance(leaf, str):
            return is_new
        for name, groups in named.items():
            damaged = self._damaged_chunks.setdefault(name, {})
            for group in groups:
                is_new = is_new or (group, leaf) not in damaged
                damaged.setdefault((group, leaf), error)
        return is_new

    def drop_lost(
        self,
        columns: ProjectedColumns,
        layout: BlockLayout,
        buffers: list[DecodedColumn],
        decoded: Sequence[tuple[FileReader, int, Mapping[int, Sequence[int]] | None]],
        limit: int | None = None,
    ) -> tuple[BlockLayout, list[DecodedColumn], list[RowRanges]]:
        """Return the layout and the columns without lost rows, and the rows that each file keeps, counted in it.

        `decoded` has of each file its rows, the output row of the first, and the positions of its leaves by that of the
        frame's leaf (None: they are the same). Only rows that satisfy the predicates are kept, at most `limit`. Columns
        are tried in the order of lost rows, fewest first; a column that would leave no intact row is dropped.
        """
        files = [_DecodedFile(*file) for file in decoded]
        self._report = [lost for file in files for lost in file.policy.report()]
        self._num_rows = layout.num_rows
        dropped, kept = self._choose_intact(columns, files)
        if limit is not None and kept.count > limit:
            kept = kept.select(RowRanges.all(limit))
        self._intact = kept if dropped or kept.count < self._num_rows else None
        if self._intact is not None:
            layout, buffers = keep_rows(layout, buffers, columns.leaves, kept, dropped)
            columns.labels = [None if position in dropped else label for position, label in enumerate(columns.labels)]
            columns.nested = [column for column in columns.nested if column.leaf_slice.start not in dropped]
        return layout, buffers, [file.keep(kept) for file in files]

    def _choose_intact(self, columns: ProjectedColumns, files: Sequence[_DecodedFile]) -> tuple[set[int], RowRanges]:
        """Return the positions of leaves to drop, and the output rows to keep."""
        matching = _unite(file.matching for file in files)
        if not any(file.policy.losses for file in files):
            return set(), matching
        nested = {column.leaf_slice.start: column.leaf_slice.stop for column in columns.nested}
        shown = [
            range(position, nested.get(position, position + 1))
            for position, label in enumerate(columns.labels)
            if label is not None
        ]
        exploded = sorted(set(range(len(columns.labels))).difference(*shown))
        lost = [_unite(file.lost_rows(leaves) for file in files) for leaves in (exploded, *shown)]
        dropped, kept = self._choose_columns(lost[1:], matching - lost[0])
        return {leaf for column in dropped for leaf in shown[column]}, kept

    def _choose_columns(self, lost_rows: Sequence[RowRanges], kept: RowRanges) -> tuple[list[int], RowRanges]:
        """Return the columns to drop, by position, and the rows of `kept` that are intact in all others."""
        return choose_columns(lost_rows, kept)

    def relabel(self, frame: pd.DataFrame, metadata: PandasMetadata | None) -> None:
        """Set the row labels that a read without losses has."""
        if self._intact is not None and _is_range(frame.index):
            labels = row_index(metadata, [], self._num_rows)
            whole = self._intact.count == self._num_rows
            frame.index = labels if whole else labels.take(self._intact.indices())


class SkipDamagedRows(SkipDamaged):
    """The policy of a read in units, all of the same columns: no column is dropped for its losses."""

    def _choose_columns(self, lost_rows: Sequence[RowRanges], kept: RowRanges) -> tuple[list[int], RowRanges]:
        return [], kept - _unite(lost_rows)


def _unite(rows: Iterable[RowRanges]) -> RowRanges:
    return RowRanges(np.concatenate([_NO_ROWS, *(some.bounds for some in rows)]))


def _take_slices(slices: RowSlices, kept: RowRanges) -> RowSlices:
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
