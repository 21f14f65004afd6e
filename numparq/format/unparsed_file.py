"""An open file whose footer differs from another's in its rows alone: parsed on first use."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from numparq.errors import InvalidFileError

from .module_reader import ModuleReader
from .open_file import OpenFile

if TYPE_CHECKING:
    from numparq.io.coalesce import Coalescing
    from numparq.io.small_files import UnloadedFileSource

    from .footer.file_metadata import Footer
    from .footer.footer_table import FooterTable
    from .key_values.arrow import ArrowSchema
    from .schema import Schema


class UnparsedFile(OpenFile):
    """An open file that a table of footers knows.

    Attributes
    ----------
    table : FooterTable
        The table.
    position : int
        Position of the file in it.
    has_rows : bool
        Whether it has any row.
    """

    model: OpenFile

    def __init__(
        self,
        source: UnloadedFileSource,
        coalescing: Coalescing | None,
        model: OpenFile,
        table: FooterTable,
        position: int,
    ) -> None:
        self._opened_path, self._is_closed, self.calendar = None, False, model.calendar
        self.source, self.user_coalescing = source, coalescing
        self.bloom_filters = {}
        self._current_stamp, self.stamp = source.stamp, source.stamp_as_read
        self.footer_start = source.size - 8 - table.lengths[position]
        self.model, self.table, self.position = model, table, position
        self.has_rows = table.row_counts[position] > 0

    @cached_property
    def reader(self) -> ModuleReader:  # type: ignore[override]
        """Reader of everything but the footer."""
        return ModuleReader(self.source, self.user_coalescing)

    @cached_property
    def footer(self) -> Footer:  # type: ignore[override]
        """The file's own footer."""
        try:
            return self.table.footer(self.position)
        except InvalidFileError as error:
            error.message = f"the footer is damaged: {error.message}"
            error.where.setdefault("file", self.source.name)
            raise

    @property
    def schema(self) -> Schema:
        """The schema of the file."""
        return self.model.schema

    @property
    def arrow_schema(self) -> ArrowSchema:
        """The writer's Arrow schema."""
        return self.model.arrow_schema
