"""Columns of a file that are cast: decoded as the file's own types into memory of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numparq.column.projection import projection_of
from numparq.errors import ParquetError
from numparq.format.arrow_type import ArrowType
from numparq.plan.row_ranges import RowRanges
from numparq.to_pandas.frame import allocate_blocks
from numparq.types.output_type import OutputType

from .options import ScanOptions
from .projected_columns import ProjectedColumns

if TYPE_CHECKING:
    from .file_reader import FileReader

__all__ = ["CastColumns"]

_NOTHING = OutputType("null", "nulls", ArrowType("null"))


class CastColumns:
    """The columns that a reader's file casts; `output_types` are those of their leaves."""

    def __init__(self, reader: FileReader, options: ScanOptions) -> None:
        columns = reader.columns
        self._reader = reader
        self._first = len(columns.positions)
        try:
            projection = projection_of([columns.stored[at] for at in columns.cast])
            self._columns = ProjectedColumns(reader.file, projection, options)
            self.output_types = self._columns.schema_only_types(reader.may_be_null[self._first :])
        except ParquetError as error:
            reader.add_file(error)
            raise

    def decode(self) -> None:
        """Decode the columns."""
        leading = [_NOTHING] * self._first
        layout = allocate_blocks([*leading, *self.output_types], self._reader.num_rows)
        self._decoded = layout, self._reader.decode(layout, range(self._first, len(layout.targets)))

    def arrays(self, kept: RowRanges | None = None) -> dict[int, Any]:
        """Return the decoded columns, the rows `kept` of each, by position in the projection."""
        try:
            layout, buffers = self._decoded
            if kept is not None:
                from numparq.scan.recovery.lost_rows import drop_lost_rows

                layout, buffers = drop_lost_rows(layout, buffers, self._reader.leaves, kept, range(self._first))
            arrays = self._columns.to_arrays(layout.targets[self._first :], buffers[self._first :], layout.num_rows)
            return dict(zip(self._reader.columns.cast, arrays, strict=True))
        except ParquetError as error:
            self._reader.add_file(error)
            raise
