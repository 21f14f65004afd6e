"""Parquet file open for reading: metadata, plans, DataFrames, batches and FILE references."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from numparq.errors import error_context, short_traceback
from numparq.keys.part_keys import keys_of_single_file
from numparq.keys.provider import as_key_source
from numparq.scan.options import ScanOptions
from numparq.scan.scan import Scan
from numparq.typing import ColumnName, Columns, FileSystem, Filters, PathOrBuffer, RowRange, StorageOptions
from numparq.util.arguments import explain_unknown_arguments
from numparq.util.pluralize import pluralize

from .argument_advice import opening_advice
from .readable_file import ReadableFile
from .table import READ_OPTIONS, ReadableTable

if TYPE_CHECKING:
    from typing import Self

    import pandas as pd

    from numparq.crypto.key import KeySource
    from numparq.format.encryption_metadata import EncryptionMetadata
    from numparq.format.geospatial import GeospatialColumn
    from numparq.format.schema import Schema
    from numparq.format.thrift.decode import Record
    from numparq.io.coalesce import Coalescing
    from numparq.io.source import Source
    from numparq.plan.read_plan import ReadPlan
    from numparq.scan.recovery.skip_damaged import SkipDamaged

    from .column_statistics import ColumnStatistics

_Result = TypeVar("_Result")


class ParquetFile(ReadableTable):
    """Parquet file, open for reading.

    Parameters
    ----------
    path : str, os.PathLike, bytes-like, or binary file object
        File name or URL, the file's bytes, or an object with ``read`` and ``seek``.
    storage_options, filesystem, coalescing
        As in `numparq.read_parquet`.
    external_files : bool
        As in `numparq.read_parquet`.
    decryption : Decryption or str, optional
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
    geospatial : dict of str to GeospatialColumn
        Geospatial columns by name: kind, CRS, bounding boxes.
    encryption : EncryptionMetadata or None
        How the file is encrypted: mode, algorithm and key metadata, which take no keys; None: it is not.
    coalescing : Coalescing
        Rule for fetching byte ranges together: as given, or the default for local files or object stores.
    source : Source
        Source of the file's bytes, which counts its requests (`num_requests`) and their bytes (`num_bytes`).

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

    @short_traceback
    @explain_unknown_arguments(opening_advice(READ_OPTIONS))
    def __init__(
        self,
        path: PathOrBuffer,
        *,
        storage_options: StorageOptions = None,
        filesystem: FileSystem = None,
        coalescing: Coalescing | None = None,
        external_files: bool = False,
        decryption: KeySource | str | None = None,
    ) -> None:
        self._file = ReadableFile(
            path,
            storage_options=storage_options,
            filesystem=filesystem,
            coalescing=coalescing,
            external_files=external_files,
            decryption=None if decryption is None else keys_of_single_file(as_key_source(decryption), path, filesystem),
        )

    @property
    def metadata(self) -> Record:
        """The complete FileMetaData."""
        return self._file.metadata

    @property
    def schema(self) -> Schema:
        """Schema of the file."""
        return self._file.schema

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return self._file.num_rows

    @property
    def num_row_groups(self) -> int:
        """Number of row groups."""
        return self._file.num_row_groups

    @property
    def geospatial(self) -> dict[str, GeospatialColumn]:
        """Geospatial columns by name: kind, CRS, bounding boxes."""
        return self._file.geospatial

    @property
    def encryption(self) -> EncryptionMetadata | None:
        """How the file is encrypted; None: it is not."""
        return self._file.encryption

    @property
    def coalescing(self) -> Coalescing:
        """Rule for fetching byte ranges together."""
        return self._file.coalescing

    @property
    def source(self) -> Source:
        """Source of the file's bytes, which counts its requests and their bytes."""
        return self._file.source

    def close(self) -> None:
        """Close the file, if it was opened here."""
        self._file.close()

    def __copy__(self) -> Self:
        copied = object.__new__(type(self))
        copied._file = copy.copy(self._file)
        return copied

    def _read(self, columns: Columns, options: ScanOptions, skip: SkipDamaged | None = None) -> pd.DataFrame:
        return self._file._read(columns, options, skip)

    def _scan(self, columns: Columns, options: ScanOptions, skip: SkipDamaged | None, is_stream: bool) -> Scan:
        return self._file._scan(columns, options, skip, is_stream)

    def _attempt(self, do: Callable[[], _Result]) -> _Result:
        return self._file._attempt(do)

    def _column_names(self) -> Sequence[str]:
        return self._file._column_names()

    @short_traceback
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

        with error_context(file=self._file.source.name):
            return column_statistics(self._file, column)

    @short_traceback
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
        return self._file.plan(columns, options)

    @short_traceback
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
        return self._file.read_reference(reference, verify_checksum)

    def __repr__(self) -> str:
        groups = pluralize(self.num_row_groups, "row group")
        size = f"{pluralize(self.num_rows, 'row')}, {pluralize(self.schema.num_columns, 'column')}"
        return f"<numparq.ParquetFile {self._file.source.name!r}: {size}, {groups}>"


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
