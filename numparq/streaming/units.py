"""The rows of one file, a unit after the other: frames and Arrow tables of the same types throughout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..column.buffer import BinaryPiece, ColumnBuffer, DictionaryPiece
from ..column.chunks import RowSlice
from ..errors import LimitError, ParquetError, UnsupportedError, located
from ..frame import Layout, allocate
from ..frame.strings import text_of
from ..memory_budget import RowCosts
from ..opened import OpenedFile
from ..reading.choices import Choices
from ..reading.columns import ReadColumns, columns_of
from ..reading.nulls import may_be_null
from ..reading.rows import FileRows
from ..selection import checked_count, select_rows
from ..threads import Crew
from .batches import Labels, without_ranges
from .division import Division, Shares, Sizes, with_asked
from .release import give_back

if TYPE_CHECKING:
    import pandas as pd

    from ..filtering.condition import Condition
    from .arrow import ArrowColumns

__all__ = ["FileUnits", "decoded_bytes"]


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
    batch_rows, is_exact, is_ahead
        As of `Shares`.
    labels : Labels
        Of rows without an index.
    """

    def __init__(self, file: OpenedFile, columns: Any, choices: Choices, sizes: Sizes) -> None:
        self._file = file
        self._asked = columns
        self._choices = choices
        self._sizes = sizes
        self._columns = self._made_columns()
        self._condition = self._made_condition()
        limit = None if self._condition else choices.nrows
        counts = file.footer.row_group_num_rows.tolist()
        self._slices = select_rows(counts, choices.row_groups, choices.row_range, limit)
        self._may_be_null = may_be_null(file, self._columns.leaves)
        self._targets = self._columns.settled_targets(self._may_be_null)
        is_open = self._condition is not None or choices.explode is not None
        self.labels = Labels.of(file.pandas_metadata, None if is_open else sum(map(len, self._slices)))
        self._division, shares = self._divided()
        self._threads = shares.threads
        self.batch_rows, self.is_exact, self.is_ahead = shares.batch_rows, shares.is_exact, shares.is_ahead

    def _made_columns(self) -> ReadColumns:
        return without_ranges(columns_of(self._file, self._asked, self._choices))

    def _made_condition(self) -> Condition | None:
        choices = self._choices
        if choices.filters is None and not choices.runtime_filters:
            return None
        from ..filtering.condition import Condition

        return Condition(self._file, choices.filters, choices.runtime_filters)

    def _divided(self) -> tuple[Division, Shares]:
        leaves, targets = with_asked(self._columns.leaves, self._targets, self._condition)
        groups = [rows.row_group for rows in self._slices]
        costs = RowCosts(self._file, leaves, targets, groups, self._choices.dtype_backend != "pyarrow")
        shares = Shares([costs], costs.of(self._slices), self._sizes, self._choices.threads)
        return Division(self._file, leaves, targets, self._slices, costs, shares), shares

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
        left = None if self._choices.nrows is None else checked_count(self._choices.nrows, "nrows")
        nothing = True
        with located(file=self._file.source.name):
            for slices in self._division.units(self._file.check_unchanged):
                rows, layout, buffers = self._decoded(slices, left)
                self._division.observed(rows.slices, decoded_bytes(layout, buffers))
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

    def _decoded(self, slices: Sequence[RowSlice], limit: int | None) -> tuple[FileRows, Layout, list[ColumnBuffer]]:
        give_back()
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


def decoded_bytes(layout: Layout, buffers: Sequence[ColumnBuffer]) -> int:
    """Give the bytes that columns were decoded to."""
    arrays = [array for array in (*layout.blocks, *layout.validity) if array is not None]
    places = zip(layout.values, layout.block_of, strict=True)
    arrays += [values for values, block in places if values is not None and block is None]
    total = sum(array.nbytes for array in arrays)
    return total + sum(_piece_bytes(piece) for buffer in buffers for piece in buffer.pieces)


def _piece_bytes(piece: Any) -> int:
    """Give the bytes of a BinaryPiece, DictionaryPiece or NestedPiece that were written to."""
    if isinstance(piece, BinaryPiece):
        marks = 0 if piece.validity is None else piece.validity.nbytes
        return piece.offsets.nbytes + int(piece.offsets[-1] - piece.offsets[0]) + marks
    if isinstance(piece, DictionaryPiece):
        return piece.codes.nbytes + _piece_bytes(piece.dictionary)
    levels = sum(array.nbytes for array in (piece.definition, piece.repetition) if array is not None)
    values = piece.values
    return levels + (values.nbytes if isinstance(values, np.ndarray) else sum(map(_piece_bytes, values)))
