"""The rows of one file, a unit after the other: frames and Arrow tables of the same types throughout."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..column.buffer import ColumnBuffer
from ..column.chunks import RowSlice
from ..errors import InvalidFileError, LimitError, ParquetError, UnsupportedError, located
from ..frame import Layout, allocate
from ..frame.strings import text_of
from ..opened import OpenedFile
from ..pandas_metadata import RangeLevel
from ..reading.choices import Choices
from ..reading.columns import ReadColumns, columns_of
from ..reading.rows import FileRows
from ..selection import checked_count, select_rows
from ..threads import Crew, thread_count
from .batches import Labels
from .budget import RowCosts, checked_size, in_words, may_be_null, scratch_bytes
from .locating import PageFinder
from .plan import UnitPlan

if TYPE_CHECKING:
    import pandas as pd

    from ..filtering.condition import Condition
    from .arrow import ArrowColumns

__all__ = ["FileUnits", "Sizes"]


class Sizes:
    """How large units and batches are to be.

    Parameters
    ----------
    memory_limit : int
        Bytes that may be held at once: of the unit that is worked on, of the next one, and of what it takes to decode.
    batch_rows : int or None
        Rows of a batch; None for the default, and where `batch_bytes` says.
    batch_bytes : int or None
        About so many bytes of a batch.
    """

    DEFAULT_LIMIT = 256 << 20
    DEFAULT_ROWS = 65_536

    def __init__(self, memory_limit: int | None, batch_rows: int | None, batch_bytes: int | None) -> None:
        if batch_rows is not None and batch_bytes is not None:
            raise ValueError("batches have batch_rows or batch_bytes, not both")
        self.memory_limit = self.DEFAULT_LIMIT if memory_limit is None else checked_size(memory_limit, "memory_limit")
        self.batch_rows = None if batch_rows is None else checked_size(batch_rows, "batch_rows")
        self.batch_bytes = None if batch_bytes is None else checked_size(batch_bytes, "batch_bytes")

    def rows_of_batch(self, row_bytes: float) -> int:
        """Give how many rows a batch has, of so many bytes each."""
        if self.batch_rows is not None:
            return self.batch_rows
        if self.batch_bytes is not None:
            return max(int(self.batch_bytes / row_bytes), 1)
        return self.DEFAULT_ROWS


class FileUnits:
    """The rows of a file in units.

    Parameters
    ----------
    file : OpenedFile
        The file.
    columns : sequence of str or tuple, or None
        As in `numparq.read_parquet`.
    choices : Choices
        What else is asked for; ``nrows`` counts rows that satisfy the filters.
    sizes : Sizes
        How large units are.

    Attributes
    ----------
    is_ahead : bool
        Whether memory suffices for two units at once.
    batch_rows : int
        Rows of a batch.
    labels : Labels
        Of rows without an index.
    """

    def __init__(self, file: OpenedFile, columns: Any, choices: Choices, sizes: Sizes) -> None:
        self._file = file
        self._asked = columns
        self._choices = choices
        self._sizes = sizes
        self._stamp = _stamp(file)
        self._columns = self._made_columns()
        self._condition = self._made_condition()
        limit = None if self._condition else choices.nrows
        counts = file.footer.row_group_num_rows.tolist()
        self._slices = select_rows(counts, choices.row_groups, choices.row_range, limit)
        self._may_be_null = may_be_null(file, self._columns.leaves)
        self._targets = self._columns.settled_targets(self._may_be_null)
        self.labels = self._labels()
        self._set_sizes()

    def _made_columns(self) -> ReadColumns:
        """Find the columns; a RangeIndex that the footer tells of is none of a part of the rows."""
        made = columns_of(self._file, self._asked, self._choices)
        if made.metadata is not None and any(isinstance(level, RangeLevel) for level in made.metadata.index):
            made.metadata = copy(made.metadata)
            made.metadata.index = made.metadata.index_fields
        return made

    def _labels(self) -> Labels:
        """Give the labels of a read of all these rows at once, where it has no index of columns."""
        metadata = self._file.pandas_metadata
        levels = metadata.index if metadata is not None else ()
        if self._condition or self._choices.explode is not None or len(levels) != 1:
            return Labels()
        level, count = levels[0], sum(map(len, self._slices))
        if isinstance(level, RangeLevel) and len(range(level.start, level.stop, level.step)) == count:
            return Labels(level.start, level.step, level.name)
        return Labels()

    def _made_condition(self) -> Condition | None:
        choices = self._choices
        if choices.filters is None and not choices.runtime_filters:
            return None
        from ..filtering.condition import Condition

        return Condition(self._file, choices.filters, choices.runtime_filters)

    def _set_sizes(self) -> None:
        """Divide the memory: what threads need, then two units, or one where two would be too small."""
        groups = [rows.row_group for rows in self._slices]
        as_objects = self._choices.dtype_backend != "pyarrow"
        self._costs = costs = RowCosts(self._file, self._columns.leaves, self._targets, groups, as_objects)
        limit = self._sizes.memory_limit
        threads = thread_count(self._choices.threads)
        while threads > 1 and scratch_bytes(costs, threads) > limit // 3:
            threads -= 1
        self._threads = threads
        room = int((limit - scratch_bytes(costs, threads)) / _MARGIN)
        largest = max((costs.of_row(group) for group in set(groups)), default=1.0)
        self.batch_rows = self._sizes.rows_of_batch(largest)
        batch = int(self.batch_rows * largest)
        self.is_ahead = self._sizes.batch_rows is None or 2 * batch <= room
        self._room = max(room // 2 if self.is_ahead else room - batch, 0)
        if not self.is_ahead and self._room < batch:
            raise LimitError(
                f"a batch of {self.batch_rows:,} rows takes about {in_words(batch)}, which is to be decoded while "
                f"another one is in use; memory_limit is {in_words(limit)}"
            )
        self.batch_rows = max(min(self.batch_rows, int(self._room / largest)), 1)

    # --- frames ------------------------------------------------------------------------------------------------------

    def frames(self) -> Iterator[pd.DataFrame]:
        """Give the rows of each unit as a frame, its RangeIndex from 0 where it has no other; at least one frame."""
        shown = 0
        for rows, layout, buffers in self._units():
            columns = self._columns
            if self._choices.explode is not None:  # which is taken apart for each frame anew
                columns = self._made_columns()
                columns.settled_targets(self._may_be_null)
            virtual = [(name, self._virtual(rows, name)) for name in columns.virtual]
            frame = columns.frame(layout, buffers, virtual)
            if rows.count or not shown:
                shown += 1
                yield frame

    # --- Arrow -------------------------------------------------------------------------------------------------------

    def for_arrow(self) -> FileUnits:
        """Give the same rows as Arrow tables."""
        if self._choices.explode is not None:
            raise UnsupportedError("explode=... gives no Arrow stream yet: use the frames")
        return FileUnits(self._file, self._asked, replace(self._choices, dtype_backend="pyarrow"), self._sizes)

    @cached_property
    def _arrow(self) -> ArrowColumns:
        from .arrow import ArrowColumns

        with located(file=self._file.source.name):
            return ArrowColumns(self._file, self._columns, self._targets)

    @property
    def schema(self) -> Any:
        """The schema of the tables (pyarrow.Schema)."""
        return self._arrow.schema

    def tables(self) -> Iterator[Any]:
        """Give the rows of each unit as a pyarrow.Table."""
        for rows, layout, buffers in self._units():
            virtual = {
                name: self._file.source.name if name == "file" else rows.virtual(name) for name in self._columns.virtual
            }
            yield self._arrow.table(layout.targets, buffers, rows.count, virtual)

    # --- what both are made of ---------------------------------------------------------------------------------------

    def _virtual(self, rows: FileRows, name: str) -> Any:
        if name == "file":
            return text_of([self._file.source.name]).take(np.zeros(rows.count, np.intp))
        return rows.virtual(name)

    def _units(self) -> Iterator[tuple[FileRows, Layout, list[ColumnBuffer]]]:
        """Decode one unit after the other."""
        finder = PageFinder(self._file, self._columns.leaves, self._targets)
        plan = UnitPlan(self._slices, self._costs, self._room, self.batch_rows, self._divider(finder))
        left = None if self._choices.nrows is None else checked_count(self._choices.nrows, "nrows")
        nothing = True
        with located(file=self._file.source.name):
            for slices in plan.units():
                rows, layout, buffers = self._decoded(slices, left)
                plan.observed(rows.slices, _bytes_of(layout, buffers))
                if rows.count or nothing:
                    nothing = False
                    yield rows, layout, buffers
                if self._condition and left is not None:
                    left -= rows.count
                    if left <= 0:
                        return
            if nothing:
                yield self._decoded(self._no_rows(), left)

    def _no_rows(self) -> list[RowSlice]:
        """Give what is decoded where there is no row: of our own files the categories, which a row group has."""
        has_dictionaries = self._file.is_own and self._file.num_row_groups
        return [RowSlice(0, 0, 0, 0)] if has_dictionaries else []

    def _divider(self, finder: PageFinder) -> Callable[[int], list[str]]:
        """Give what finds the pages of a row group that is to be divided."""

        def divide(row_group: int) -> list[str]:
            self._check_unchanged()
            whole = [leaf.name for leaf in finder.whole(row_group)]
            if not whole:
                finder.find(row_group)
            return whole

        return divide

    def _decoded(self, slices: Sequence[RowSlice], limit: int | None) -> tuple[FileRows, Layout, list[ColumnBuffer]]:
        self._check_unchanged()
        columns = self._columns
        rows = FileRows(self._file, columns.leaves, slices, self._condition)
        with self._named(rows), Crew(self._threads) as crew:
            rows.begin(crew, self._choices.verify_crc)
            with closing(rows):
                rows.find(self._targets, limit)
                layout = allocate(self._targets, rows.count, columns.separate)
                wanted = range(len(self._targets))
                buffers = rows.decode(layout, [at for at in wanted if rows.count or self._targets[at].entries])
        return rows, layout, buffers

    @contextmanager
    def _named(self, rows: FileRows) -> Iterator[None]:
        """Say in errors where they came up."""
        try:
            yield
        except ParquetError as error:
            rows.tables.name_file(error)
            raise
        except MemoryError as error:
            what = f"{rows.count:,} rows of {len(self._columns.names)} columns"
            raise LimitError(f"there is not enough memory to read {what}") from error

    def _check_unchanged(self) -> None:
        """Refuse to go on in a file that is no longer what its footer tells of."""
        if _stamp(self._file) != self._stamp:
            raise InvalidFileError("the file has changed while it was read", file=self._file.source.name)


# What is allocated while columns are finished, and by the system besides.
_MARGIN = 1.2


def _stamp(file: OpenedFile) -> Any:
    """Give what changes when a file does, where that can be told."""
    stamp = getattr(file.source, "stamp", None)
    return None if stamp is None else stamp()


def _bytes_of(layout: Layout, buffers: Sequence[ColumnBuffer]) -> int:
    """Give the bytes that columns were decoded to."""
    arrays = [array for array in (*layout.blocks, *layout.validity) if array is not None]
    arrays += [values for values, block in zip(layout.values, layout.block_of, strict=True)
               if values is not None and block is None]  # fmt: skip
    total = sum(array.nbytes for array in arrays)
    for buffer in buffers:
        for piece in buffer.pieces:
            total += sum(
                getattr(piece, name).nbytes
                for name in ("offsets", "data", "validity", "codes", "definition", "repetition")
                if getattr(piece, name, None) is not None
            )
    return total
