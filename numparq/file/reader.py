"""Parquet file open for reading: metadata, plans, DataFrames, batches and FILE references."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from numparq.errors import ParquetError, error_context
from numparq.format.open_file import OpenFile
from numparq.scan.options import ScanOptions
from numparq.scan.scan import Scan
from numparq.typing import ColumnName, Columns, Filters, PathOrBuffer, RowRange
from numparq.util.arguments import explain_unknown_arguments

from .argument_advice import opening_advice
from .table import READ_OPTIONS, ReadableTable

if TYPE_CHECKING:
    import pandas as pd

    from numparq.plan.read_plan import ReadPlan
    from numparq.scan.recovery.skip_damaged import SkipDamaged

    from .column_statistics import ColumnStatistics

_Result = TypeVar("_Result")


class ParquetFile(ReadableTable, OpenFile):
    """Parquet file, open for reading.

    Parameters
    ----------
    path : str, os.PathLike, bytes-like, or binary file object
        File name or URL, the file's bytes, or an object with ``read`` and ``seek``.
    storage_options, filesystem, coalescing
        As in `numparq.read_parquet`.
    external_files : bool
        As in `numparq.read_parquet`.

    Attributes
    ----------
    metadata : Record
        The complete FileMetaData, with the specification's field names.
    schema : Schema
        Schema of the file.
    num_rows : int
        Number of rows.
    num_row_groups : int
        Number of row groups.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    InvalidFileError
        If it is not a Parquet file, or its footer is damaged.

    Notes
    -----
    It can be pickled and copied, unless it was opened from a file object. The pickle holds the path, or the bytes, and
    the copy opens the file at first use; a file that has changed since is an InvalidFileError.

    Examples
    --------
    >>> import io, pandas, numparq
    >>> buffer = io.BytesIO()
    >>> pandas.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]}).to_parquet(buffer)
    >>> with numparq.ParquetFile(buffer) as file:
    ...     file.num_rows, file.schema.columns
    (3, ['a', 'b'])
    """

    __init__ = explain_unknown_arguments(opening_advice(READ_OPTIONS))(OpenFile.__init__)

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

    def statistics(self, column: ColumnName) -> list[ColumnStatistics]:
        """Return the statistics of a column in each row group, with typed bounds.

        Parameters
        ----------
        column : str or tuple of str
            A flat column, or the path of a leaf column within a nested one.

        Returns
        -------
        list of ColumnStatistics
            One for each row group. What a writer is known to get wrong is None.

        Raises
        ------
        SchemaError
            If the file has no such leaf column.

        Examples
        --------
        >>> import pandas, numparq
        >>> frame = pandas.DataFrame({"day": pandas.to_datetime(["2024-05-01", "2024-05-03"])})
        >>> (day,) = numparq.ParquetFile(numparq.to_parquet(frame)).statistics("day")
        >>> day.min, day.max, day.null_count
        (Timestamp('2024-05-01 00:00:00'), Timestamp('2024-05-03 00:00:00'), 0)
        """
        from .column_statistics import column_statistics

        with error_context(file=self.source.name):
            return column_statistics(self, column)

    def plan(
        self,
        columns: Columns = None,
        filters: Filters = None,
        *,
        row_groups: Sequence[int] | None = None,
        row_range: RowRange = None,
        nrows: int | None = None,
    ) -> ReadPlan:
        """Plan a read: which pages statistics, Bloom filters and indexes leave to decode, and why.

        Parameters
        ----------
        columns, filters, row_groups, row_range, nrows
            As in `numparq.read_parquet`.

        Returns
        -------
        ReadPlan
            Projected columns, followed by the other filter columns. `ReadPlan.explain` describes it in words; notebooks
            draw it. Only indexes are read to make it. With filters, the rows left are filtered when their columns are
            decoded, and `nrows` counts the rows that pass.

        Examples
        --------
        >>> import pandas, numparq
        >>> frame = pandas.DataFrame({"a": range(10_000)})
        >>> data = numparq.to_parquet(frame, row_group_size=5000, max_rows_per_page=1000)
        >>> print(numparq.ParquetFile(data).plan(filters=numparq.col("a") == 7).explain().splitlines()[-1])
          row group 0: 1,000 of 5,000 rows in 1 range; a: 1 of 5 pages
        """
        options = ScanOptions(filters=filters, row_groups=row_groups, row_range=row_range, nrows=nrows)
        with error_context(file=self.source.name):
            ((_, plan),) = Scan.of_file(self, columns, options).plans()
            return plan

    def file_bytes(self, reference: Mapping[str, Any], *, verify_checksum: bool = True) -> bytes:
        """Read the bytes that a FILE value refers to.

        Parameters
        ----------
        reference, verify_checksum
            As in `numparq.file_bytes`.

        Returns
        -------
        bytes
        """
        from numparq.format.file_reference import FileReferenceReader

        with error_context(file=self.source.name):
            return FileReferenceReader(self.source, self.multi_file_source, verify_checksum).read_reference(reference)

    def __repr__(self) -> str:
        return (
            f"<numparq.ParquetFile {self.source.name!r}: {self.num_rows} rows, {self.schema.num_columns} columns, "
            f"{self.num_row_groups} row groups>"
        )


def file_bytes(
    path: PathOrBuffer, reference: Mapping[str, Any], *, external_files: bool = False, verify_checksum: bool = True
) -> bytes:
    """Read the bytes that a FILE value refers to (LogicalTypes.md, section FILE).

    Parameters
    ----------
    path : str, os.PathLike, bytes-like, or binary file object
        Parquet file that contains the reference.
    reference : mapping of str to object
        Reference as `read_parquet` returns it: any of ``inline``, ``uri``, ``offset``, ``size``, ``checksum``.
    external_files : bool
        Whether to open sibling files, whose ``uri`` is a relative path, as in `read_parquet`. URLs are never opened.
        Paths are taken literally, without percent-decoding.
    verify_checksum : bool
        Whether to verify the checksum, if it is MD5, CRC32, CRC32C or SHA-256.

    Returns
    -------
    bytes

    Raises
    ------
    InvalidFileError
        If the reference is invalid, or its target does not exist or may not be read.
    CorruptPageError
        If the bytes do not match the checksum.
    UnsupportedError
        For sibling files without `external_files`, and for URLs.

    Examples
    --------
    >>> import io, pandas, numparq
    >>> buffer = io.BytesIO()
    >>> pandas.DataFrame({"a": [1]}).to_parquet(buffer)
    >>> numparq.file_bytes(buffer, {"offset": 0, "size": 4})
    b'PAR1'
    """
    with ParquetFile(path, external_files=external_files) as file:
        return file.file_bytes(reference, verify_checksum=verify_checksum)
