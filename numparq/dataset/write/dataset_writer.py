"""`DatasetWriter`: frames into a partitioned dataset, committed together on close."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Any, Unpack

from numparq.crypto.key import KeySource
from numparq.dataset.commit.local_stage import LocalJob
from numparq.dataset.commit.record import CommitChanges
from numparq.dataset.commit.remote_stage import RemoteJob
from numparq.dataset.commit.stage import Job
from numparq.dataset.listing.files import DirectoryListing
from numparq.dataset.listing.patterns import COMMON_METADATA_FILE, METADATA_FILE
from numparq.dataset.listing.table_formats import check_no_table_below, check_plain_folder
from numparq.errors import DecryptionError, ParquetError, UnsupportedError, error_context
from numparq.file.argument_advice import WRITE_ADVICE
from numparq.file.category_order import CategoryOrder
from numparq.file.encryption import hide_values
from numparq.file.fit_frame import check_merges, fits, frame_schema
from numparq.file.writer import ParquetWriter
from numparq.file.writer_context import WriterContext
from numparq.file.writer_options import DEFAULT_ROW_GROUP_ROWS, check_option_names
from numparq.format.footer.file_metadata import Footer
from numparq.format.footer.tail import read_footer
from numparq.format.open_file import OpenFile
from numparq.from_pandas.arrow_stream import is_arrow_data, read_tables
from numparq.from_pandas.frame import ShreddedFrame
from numparq.from_pandas.user_schema import UserColumn, parse_schema
from numparq.io.filesystem import ResolvedPaths, resolve_paths
from numparq.keys.part_keys import commit_keys
from numparq.keys.provider import as_encryption_keys, as_key_source
from numparq.typing import ExistingDataBehavior, FileOptions, FrameOrArrow, PathLike, StorageOptions, TableFormat
from numparq.util.arguments import check_flag, check_list, check_optional_positive_int, check_seconds
from numparq.util.transaction import TransactionalWriter

from .existing_data import (
    EXISTING_DATA_BEHAVIORS,
    check_empty,
    check_keeps_nothing,
    check_schemas_compatible,
    plan_changes,
    read_stored_columns,
)
from .metadata_file import encode_metadata_files, parse_footer
from .partition_files import FileLimits, PartitionedFileWriter, PartitionFiles, writer_factory
from .partition_frame import (
    FramePartitioner,
    PartitionedFrame,
    PartitionValues,
    partition_frame,
    partition_table,
    shred_without_rows,
)
from .store_refresh import RefreshableStore, check_refreshable, refresh_store

_NO_METADATA_FILE = "write_metadata_file=True would copy the footers of encrypted files as plaintext; leave it out"


class DatasetWriter(TransactionalWriter):
    """Writes frames into a dataset: a directory of many files.

    A frame may change again once `write` returns. Its rows enter the dataset when the ``with`` block ends, together
    with those of all other frames. Leaving it by an exception leaves the dataset as it was. A writer that is never
    closed loses its rows, with a ResourceWarning.

    Parameters
    ----------
    path : str or os.PathLike
        Directory of the dataset.
    schema : pyarrow.Schema, sequence or dict, optional
        Types of the columns; by default those of an existing file where they hold all values of the first frame, else
        the frame's.
    partition_cols : sequence of labels, optional
        Columns whose values divide rows into nested directories ``key=value``, in this order. The files do not hold
        these columns. Values may be strings, integers, booleans, dates, times, timestamps, floats, decimals,
        Categoricals of these, and null.
    existing_data_behavior : {"error", "overwrite_or_ignore", "delete_matching"}, default "error"
        What to do with existing files: raise an error, keep them, or replace those in partitions that get rows.
    max_rows_per_file : int, optional
        Maximum number of rows of a file; no limit by default.
    max_bytes_per_file : int, optional
        Approximate maximum size of a file in bytes; no limit by default.
    write_metadata_file : bool, default False
        Whether to write ``_metadata`` with the footers of all files, and ``_common_metadata`` with the schema. If not,
        those of earlier writes are removed, because they would be out of date.
    keep_replaced, table_format, threads, progress, storage_options, filesystem
        As in `numparq.to_parquet`.
    decryption : Decryption or str, optional
        Keys of the existing files, with whose columns new ones are compared; default: those of `encryption`.
    skipping : numparq.skipping.Store, optional
        Data-skipping store of the dataset, which is refreshed after the commit; if that fails, it warns.
    **options
        Options of each file, as in `numparq.ParquetWriter`.

    Attributes
    ----------
    parts : dict of str to (str or None)
        Fingerprint of each complete file by its path in the dataset, for `expected_parts` of `numparq.Dataset`; None
        for files that are not encrypted.

    Raises
    ------
    FileExistsError
        If the dataset has files and `existing_data_behavior` is ``"error"``.
    SchemaError
        If a partition column is missing or its values cannot be directory names; if frames have different columns; or
        if existing files are partitioned by other columns.
    UnsupportedError
        If the directory belongs to a table of another system (``docs/table-formats.md``).

    Examples
    --------
    >>> import pandas, numparq, tempfile
    >>> from numparq.dataset.write.dataset_writer import DatasetWriter
    >>> folder = tempfile.mkdtemp()
    >>> with DatasetWriter(folder, partition_cols=["year"]) as writer:
    ...     for year in (2020, 2021):
    ...         writer.write(pandas.DataFrame({"year": year, "x": [1, 2]}))
    >>> len(numparq.read_parquet(folder))
    4
    """

    def __init__(
        self,
        path: PathLike,
        schema: Any = None,
        *,
        partition_cols: Sequence[Any] | None = None,
        existing_data_behavior: ExistingDataBehavior = "error",
        max_rows_per_file: int | None = None,
        max_bytes_per_file: int | None = None,
        write_metadata_file: bool = False,
        keep_replaced: float = 0,
        decryption: KeySource | str | None = None,
        skipping: RefreshableStore | None = None,
        table_format: TableFormat = "auto",
        threads: int | None = None,
        progress: bool = False,
        storage_options: StorageOptions = None,
        filesystem: Any = None,
        **options: Unpack[FileOptions],
    ) -> None:
        if existing_data_behavior not in EXISTING_DATA_BEHAVIORS:
            raise ValueError(
                f"existing_data_behavior must be one of {', '.join(EXISTING_DATA_BEHAVIORS)}, "
                f"not {existing_data_behavior!r}"
            )
        check_flag(write_metadata_file, "write_metadata_file")
        own = {**DatasetWriter.__init__.__annotations__, **ParquetWriter.__init__.__annotations__}
        check_option_names("DatasetWriter", options, own, WRITE_ADVICE)
        self._encryption = as_encryption_keys(options.get("encryption"))
        if write_metadata_file and self._encryption is not None:
            raise UnsupportedError(_NO_METADATA_FILE)
        ParquetWriter(None, **options, threads=1, progress=False).abort()  # raises for wrong options
        self._schema, self._behavior = schema, existing_data_behavior
        self._columns = FramePartitioner(_labels(partition_cols))
        self._path, self._skipping = path, check_refreshable(skipping)
        limits = FileLimits(
            check_optional_positive_int(max_rows_per_file, "max_rows_per_file"),
            check_optional_positive_int(max_bytes_per_file, "max_bytes_per_file"),
        )
        self._keep_footers = bool(write_metadata_file)
        self._written: set[PartitionValues] = set()
        self._known: list[UserColumn] | None = None
        self._own: list[UserColumn] | None = None  # types of the first frame, if written as an existing file's
        self._samples: list[bytes] = []  # files without rows, one for each set of columns
        self._all_columns: bytes | None = None  # the same with partition columns, while there are no rows
        self._order = CategoryOrder()
        self._workshop = WriterContext(threads, progress)
        self._table_format = table_format
        keep_seconds = check_seconds(keep_replaced, "keep_replaced")
        place = _resolve_folder(path, table_format, storage_options, filesystem)
        self._job = _job(place, keep_seconds, alone=existing_data_behavior != "overwrite_or_ignore")
        self._keys = commit_keys(as_key_source(decryption), self._encryption, self._job.base, self._job.is_local)
        make_writer = writer_factory(self._job, self._workshop, options)
        files = PartitionFiles(
            self._job.id, self._job.create_file, make_writer, limits, keep_footers=self._keep_footers
        )
        self._spread = PartitionedFileWriter(files.writer_of, self._columns.folder, self._workshop.pool)
        self._begin_writing()
        try:
            if existing_data_behavior == "error":
                check_empty(self._job.base, self._job.list_files().files)
        except BaseException:
            self.abort()
            raise

    # --- frames -----------------------------------------------------------------------------------------------------

    def write(self, df: FrameOrArrow, index: bool | None = None) -> None:
        """Write a frame, or Arrow data, which are read in parts of a row group.

        Parameters
        ----------
        df : pandas.DataFrame, or Arrow data such as a polars.DataFrame
            Rows with the columns of the first ones.
        index : bool, optional
            As in `numparq.to_parquet`, except that a RangeIndex is kept only if it has a name, and then as a column.
        """
        self._check_writing()
        try:
            for frame in self._partition(df, index):
                self._fit(frame)
                self._workshop.progress.add_total(frame.whole.num_rows)
                for batch in frame.batches():
                    self._written |= {stretch.values for stretch in batch}
                    self._spread.write(batch)
        except BaseException as error:  # part of the frame may be written already
            self.abort()
            if isinstance(error, ParquetError):
                hide_values(error, self._encryption)
            raise

    def _partition(self, df: FrameOrArrow, index: bool | None) -> Iterator[PartitionedFrame]:
        if is_arrow_data(df):
            for table in read_tables(df, DEFAULT_ROW_GROUP_ROWS, index):
                yield partition_table(table, self._columns, self._schema)
                self._keep_schema(table, index)
        else:
            yield partition_frame(df, self._columns, index, self._schema)
            self._keep_schema(df, index)

    def _keep_schema(self, data: Any, index: bool | None) -> None:
        """Keep the columns of a frame or table, in case no rows are written to tell them."""
        if not self._written:
            self._all_columns = _without_rows(shred_without_rows(data, self._columns.names, index, self._schema))

    def _fit(self, frame: PartitionedFrame) -> None:
        """Fit the columns of a frame to those of earlier ones; raise SchemaError if they differ.

        The first frame is fitted to an existing file where it can be. A later one that cannot begins new files.
        """
        self._order.check_append(frame.whole.ordered_categories)
        unfitted = frame.whole
        if self._known is None:
            self._fit_to_existing(frame)
            self._own = frame_schema(unfitted) if frame.whole is not unfitted else None
        elif self._own is not None and not fits(unfitted, self._known):
            check_merges(unfitted, self._known)
            self._known, self._own = self._own, None
            self._spread.close()
        known = frame.fit(self._known)
        if known != self._known and self._behavior != "error":
            self._samples.append(_without_rows(frame.whole))
        self._known = known

    def _fit_to_existing(self, frame: PartitionedFrame) -> None:
        """Cast the columns of the first frame to the types of a file that stays, where these hold all values."""
        if self._behavior == "error":
            return
        listing = self._job.list_files()
        changes = self._plan(listing, frame.partitions)
        file = read_stored_columns(listing, changes, self._job.open_source, self._keys)
        typed = parse_schema(self._schema).columns
        frame.fit_where_exact([each for each in file.columns if each.node.name not in typed], file.key_value_metadata)

    @property
    def parts(self) -> dict[str, str | None]:
        """Fingerprint of each complete file by its path, as in `numparq.Dataset.parts`; None for plain files."""
        return {written.name: written.fingerprint for written in self._spread.written}

    # --- close and abort --------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Complete all files, and commit them together."""
        if not self._process:
            return
        self._check_writing()
        try:
            self._spread.close()
            with error_context(file=self._job.base):
                self._job.commit(self._changes)
        except BaseException:
            self.abort()
            raise
        self._end_writing()
        self._workshop.close()
        refresh_store(self._skipping, self._path)

    def _changes(self, found: DirectoryListing) -> CommitChanges:
        if not self._written:
            return self._with_schema(found)
        check_no_table_below(found, self._job.base, self._table_format)
        changes = self._plan(found, self._written)
        if self._samples:
            samples = list(map(OpenFile, self._samples))
            check_schemas_compatible(found, changes, self._job.open_source, self._keys, samples)
        return self._with_metadata(changes, found) if self._keep_footers else changes

    def _plan(self, listing: DirectoryListing, written: Collection[PartitionValues]) -> CommitChanges:
        """Plan which existing files go if some partitions get rows."""
        rule, columns = EXISTING_DATA_BEHAVIORS[self._behavior], self._columns
        return plan_changes(rule, self._job.base, listing, columns.names, written, columns.kinds)

    def _with_schema(self, found: DirectoryListing) -> CommitChanges:
        """Keep the columns of frames without rows in ``_common_metadata``, if the dataset has no files.

        A file in a partition would need values, and one outside of all partitions would stand in the way of later ones.
        """
        if found.files or self._all_columns is None or self._encryption is not None:
            return CommitChanges()
        stale = os.path.join(self._job.base, METADATA_FILE)
        gone = [entry.path for entry in found.hidden if entry.path == stale]
        return CommitChanges(gone, {COMMON_METADATA_FILE: self._all_columns})

    def _with_metadata(self, changes: CommitChanges, found: DirectoryListing) -> CommitChanges:
        """Add new ``_metadata`` and ``_common_metadata`` files to the changes of a commit."""
        new = [(written.name, parse_footer(written.footer)) for written in self._spread.written]
        if not new or self._known is None:
            return changes
        going, start = set(changes.gone), len(self._job.base.rstrip("/")) + 1
        staying = [entry.path for entry in found.files if entry.path not in going]
        footers: dict[str, Footer] = {}
        self._workshop.pool.run([partial(_read_footer, self._job, path, footers) for path in staying])
        files = sorted([*new, *((path[start:], footer) for path, footer in footers.items())], key=lambda file: file[0])
        over = encode_metadata_files(files, [column.node for column in self._known], new[0][1])
        return CommitChanges([path for path in changes.gone if path[start:] not in over], over)

    def _discard(self) -> None:
        self._workshop.close()  # after Ctrl-C, threads may still be writing
        self._spread.abort()
        self._job.abort()

    @property
    def _target(self) -> str:
        return self._job.base


def _without_rows(taken: ShreddedFrame) -> bytes:
    """Encode a file with the columns of a frame and no rows."""
    with ParquetWriter(None) as writer:
        writer._write_shredded(taken.slice(0, 0))
    return writer.getvalue()


def _read_footer(job: Job, path: str, footers: dict[str, Footer]) -> None:
    source = job.open_source(path)
    try:
        with error_context(file=path):
            try:
                footers[path] = read_footer(source)[0]
            except DecryptionError:
                raise UnsupportedError(_NO_METADATA_FILE) from None
    finally:
        source.close()


def _resolve_folder(
    path: PathLike, table_format: str, storage_options: StorageOptions, filesystem: Any
) -> ResolvedPaths:
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"path must be the directory of a dataset, a str or os.PathLike, not {type(path).__name__}")
    place = resolve_paths([path], storage_options, filesystem)
    check_plain_folder(place, table_format)
    return place


def _job(place: ResolvedPaths, keep_seconds: float, *, alone: bool) -> Job:
    (base,) = place.paths
    if place.filesystem is not None:
        check_keeps_nothing(keep_seconds)
        return RemoteJob(place.filesystem, base.rstrip("/"), place.display_name, alone)
    return LocalJob(base.rstrip("/") or base[:1] or ".", keep_seconds)


def _labels(partition_cols: Any) -> list[Any]:
    if partition_cols is None:
        return []
    is_label = isinstance(partition_cols, (str, tuple))
    return [partition_cols] if is_label else check_list(partition_cols, "partition_cols", "labels")


def write_dataset(
    df: FrameOrArrow,
    path: Any,
    index: bool | None = None,
    *,
    append: bool = False,
    existing_data_behavior: ExistingDataBehavior = "error",
    **options: Any,
) -> None:
    """Write a frame as a dataset in one commit; options are those of `DatasetWriter`.

    ``append`` is the same as ``existing_data_behavior="overwrite_or_ignore"``.
    """
    if path is None:
        raise ValueError("partitions and size limits need many files; path must be a directory, not None")
    if append:
        if existing_data_behavior == "delete_matching":
            raise ValueError(
                "append=True adds files, but existing_data_behavior='delete_matching' replaces them; use one of them"
            )
        existing_data_behavior = "overwrite_or_ignore"
    with DatasetWriter(path, existing_data_behavior=existing_data_behavior, **options) as writer:
        writer.write(df, index)
