"""An open file that can be read: what `ParquetFile` shows to users, and other modules use as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from numparq.errors import ParquetError, error_context
from numparq.format.open_file import OpenFile
from numparq.scan.options import ScanOptions
from numparq.scan.scan import Scan
from numparq.typing import Columns

from .table import ReadableTable

if TYPE_CHECKING:
    import pandas as pd

    from numparq.plan.read_plan import ReadPlan
    from numparq.scan.recovery.skip_damaged import SkipDamaged

_Result = TypeVar("_Result")


class ReadableFile(ReadableTable, OpenFile):
    """An open file with the reads of a table."""

    def _read(self, columns: Columns, options: ScanOptions, skip: SkipDamaged | None = None) -> pd.DataFrame:
        if skip is None and options.on_error == "skip":
            return self._read_intact(columns, options)
        try:  # an error context would cost more calls
            return Scan.of_file(self, columns, options, skip).read()
        except ParquetError as error:
            error.where.setdefault("file", self.source.name)
            raise

    def _scan(self, columns: Columns, options: ScanOptions, skip: SkipDamaged | None, is_stream: bool) -> Scan:
        return Scan.of_file(self, columns, options, skip, is_stream)

    def _attempt(self, do: Callable[[], _Result]) -> _Result:
        with error_context(file=self.source.name):
            return do()

    def _column_names(self) -> Sequence[str]:
        return self.schema.columns

    def plan(self, columns: Columns, options: ScanOptions) -> ReadPlan:
        """Plan a read."""
        with error_context(file=self.source.name):
            ((_, plan),) = Scan.of_file(self, columns, options).plans()
            return plan

    def read_reference(self, reference: Mapping[str, Any], verify_checksum: bool) -> bytes:
        """Read the bytes that a FILE value refers to."""
        from numparq.format.file_reference import FileReferenceReader

        with error_context(file=self.source.name):
            is_encrypted = self.footer.keys is not None
            reader = FileReferenceReader(self.source, self.multi_file_source, verify_checksum, is_encrypted)
            return reader.read_reference(reference)
