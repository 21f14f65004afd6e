"""`Dataset`: many Parquet files open as one table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from numparq.crypto.key import check_named
from numparq.errors import InvalidFileError, short_traceback
from numparq.file.argument_advice import opening_advice
from numparq.file.table import READ_OPTIONS, ReadableTable
from numparq.format.schema import Schema
from numparq.io.opened_path import OpenedPath, Reopenable
from numparq.io.source import Source
from numparq.keys.provider import as_key_source
from numparq.plan.dataset_plan import DatasetPlan
from numparq.scan.options import ScanOptions
from numparq.typing import Columns, Filters, PathOrPaths, Resolve, RowRange, StorageOptions, TableFormat
from numparq.util.arguments import check_list, explain_unknown_arguments, thread_count
from numparq.util.pluralize import agree_noun

from .discover.expected_parts import PartNames
from .discover.open_files import keys_of_file
from .discover.snapshot import DatasetSnapshot
from .prune.file_query import QueryPruner, check_query_pruner
from .prune.pruners import FilePruner
from .scan.query import DatasetQuery

if TYPE_CHECKING:
    import pandas as pd

    from numparq.crypto.key import KeySource
    from numparq.io.coalesce import Coalescing
    from numparq.scan.recovery.skip_damaged import SkipDamaged
    from numparq.scan.scan import Scan

_Result = TypeVar("_Result")


class Dataset(ReadableTable, Reopenable):
    """Many Parquet files, open as one table.

    Parameters
    ----------
    path : str, os.PathLike, or list of these
        A directory, a glob, a file, or a list of these; URLs too.
    partitioning : {"hive"}, None, list or dict, default "hive"
        How directory names give partition columns: by ``key=value``, not at all (None), or by position (a list of
        names). A dict gives the types of ``key=value`` columns, a list of (name, type) pairs those of positional ones.
    schema : Schema, pyarrow.Schema, sequence or dict, optional
        Columns of the table; by default the columns of all files.
    resolve : {"name", "position", "field_id"}, default "name"
        How columns of a file are mapped to columns of the table.
    categories : collection of str, optional
        Partition columns with a given type to return as Categorical.
    table_format : {"auto", "parquet"}
        As in `numparq.read_parquet`.
    storage_options, filesystem, coalescing
        As in `numparq.read_parquet`.
    pruners : sequence of FilePruner
        Additional file pruners, called once for each read. An object with a method ``for_query`` builds one for each.
    skipping : numparq.skipping.Store, optional
        Data-skipping store of the dataset: files that it rules out are not opened.
    threads : int, optional
        Default number of threads of each read, as in `numparq.read_parquet`.
    decryption : Decryption or str, optional
        As in `numparq.read_parquet`. A ``_metadata`` file is not used. The dataset can be pickled only if a provider is
        named.
    expected_parts : collection of str, or dict of str to (str or None), optional
        Parts that the dataset must have, and no others: paths in its folder, or a dict of these to the fingerprints of
        `parts`. By default removed and added parts are not noticed.

    Attributes
    ----------
    files : list of str
        Names of the files, in row order.
    parts : dict of str to (str or None)
        Fingerprint of each part by its path in the dataset's folder: a hash of the footer, which identifies an
        encrypted file; reads all footers. None for a file of zero bytes.
    partition_keys : tuple of str
        Names of the partition columns.
    schema : Schema
        Merged schema of all files, without partition columns; reads all footers. Columns without a common type have no
        values in it.
    num_rows : int
        Number of rows; reads all footers.

    Raises
    ------
    FileNotFoundError
        If nothing exists at the path.
    InvalidFileError
        If a directory has no Parquet files, or the files are partitioned by different columns; if its parts are not
        those of `expected_parts`.
    UnsupportedError
        If the path belongs to a table of Delta Lake, Hudi or Iceberg.
    ValueError, TypeError
        If `partitioning` is invalid, or gives the type of a column that is no partition column.

    Notes
    -----
    It can be pickled and copied. The pickle holds the path and the options, and the copy lists the files at first use;
    files that have changed since are an InvalidFileError.

    Examples
    --------
    >>> import pandas, tempfile, numparq
    >>> frame = pandas.DataFrame({"year": [2023, 2023, 2024], "sold": [5, 7, 9]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     numparq.to_parquet(frame, folder, partition_cols=["year"])
    ...     with numparq.Dataset(folder) as sales:
    ...         print(len(sales.files), sales.count_rows())
    ...         print(sales.read(filters=[("year", "=", 2024)]))
    2 3
       sold  year
    0     9  2024
    """

    @short_traceback
    @explain_unknown_arguments(opening_advice(READ_OPTIONS))
    def __init__(
        self,
        path: PathOrPaths,
        *,
        partitioning: Any = "hive",
        schema: Any = None,
        resolve: Resolve = "name",
        categories: Collection[str] | None = None,
        table_format: TableFormat = "auto",
        storage_options: StorageOptions = None,
        filesystem: Any = None,
        coalescing: Coalescing | None = None,
        pruners: Sequence[FilePruner | QueryPruner] = (),
        skipping: QueryPruner | None = None,
        threads: int | None = None,
        decryption: KeySource | str | None = None,
        expected_parts: PartNames | None = None,
    ) -> None:
        if categories is not None:
            check_list(categories, "categories")
        if threads is not None:
            thread_count(threads)
        self._opened_path = OpenedPath(path, storage_options, filesystem)
        self._options: dict[str, Any] = {
            "partitioning": partitioning,
            "schema": schema,
            "resolve": resolve,
            "categories": categories,
            "coalescing": coalescing,
            "table_format": table_format,
            "decryption": None if decryption is None else as_key_source(decryption),
            "expected_parts": expected_parts,
        }
        self._pruners = tuple(check_list(pruners, "pruners", "FilePruner"))
        if skipping is not None:
            self._pruners = *self._pruners, check_query_pruner(skipping)
        self._threads = threads
        self._contents = self._list_files()

    def _list_files(self) -> DatasetSnapshot:
        return DatasetSnapshot(self._opened_path, **self._options)

    def refresh(self) -> None:
        """List the files again."""
        self.close()
        self._contents = self._list_files()

    @property
    def files(self) -> list[str]:
        """Names of the files, in row order."""
        return [file.name for file in self._contents.files]

    @property
    def parts(self) -> dict[str, str | None]:
        """Fingerprint of each part by its path in the dataset's folder; reads all footers."""
        return self._attempt(lambda: self._contents.parts())

    def _single_source(self) -> Source | None:
        """Open the source of the only file; return None for several files, and with partition columns."""
        return self._attempt(lambda: self._contents.single_source())

    def _keys_of_single_file(self) -> KeySource | None:
        """Return the keys of the only file."""
        keys = self._contents.keys
        return None if keys is None else keys_of_file(keys, self._contents.files[0], self._contents.listing)

    @property
    def partition_keys(self) -> tuple[str, ...]:
        """Names of the partition columns."""
        return tuple(self._contents.partitions.keys)

    @property
    def schema(self) -> Schema:
        """Merged schema of all files, without partition columns; reads all footers.

        Columns without a common type have no values in it, and its text names the conflict with both files.
        """
        return self._contents.schema_of(range(len(self._contents.files))).schema_with_conflicts()

    @property
    def num_rows(self) -> int:
        """Number of rows; reads all footers."""
        return self.count_rows()

    def _read(self, columns: Columns, options: ScanOptions, skip: SkipDamaged | None = None) -> pd.DataFrame:
        if skip is not None:
            return self._query(columns, options, skip).scan.read()
        options = options if options.threads is not None else replace(options, threads=self._threads)
        if options.on_error == "skip":
            return self._attempt(lambda: self._read_intact(columns, options))
        return self._attempt(lambda: self._query(columns, options).scan.read())

    def _scan(self, columns: Columns, options: ScanOptions, skip: SkipDamaged | None, is_stream: bool) -> Scan:
        return self._query(columns, options, skip).scan

    def _column_names(self) -> Sequence[str]:
        return list(dict.fromkeys([*self.schema.columns, *self.partition_keys]))

    def plan(
        self,
        columns: Columns = None,
        filters: Filters = None,
        *,
        row_groups: Sequence[int] | None = None,
        row_range: RowRange = None,
        nrows: int | None = None,
    ) -> DatasetPlan:
        """Plan a read: which files are pruned and why, and what is read of the others.

        Parameters
        ----------
        columns, filters, row_groups, row_range, nrows
            As in `read`.

        Returns
        -------
        DatasetPlan
            `DatasetPlan.explain` prints it as text.
        """
        options = ScanOptions(
            filters=filters, row_groups=row_groups, row_range=row_range, nrows=nrows, threads=self._threads
        )
        return self._attempt(lambda: self._query(columns, options).plan())

    def _query(self, columns: Columns, options: ScanOptions, skip: SkipDamaged | None = None) -> DatasetQuery:
        return DatasetQuery(self._contents, self._pruners, columns, options, skip)

    def _attempt(self, do: Callable[[], _Result]) -> _Result:
        """Call a function; if a file is gone, as when it was replaced, list the files again and call it once more."""
        try:
            return do()
        except FileNotFoundError:
            self.refresh()
            return do()

    def close(self) -> None:
        """Close all files."""
        self._contents.close()

    def __repr__(self) -> str:
        keys = f", partitioned by {', '.join(self.partition_keys)}" if self.partition_keys else ""
        count = len(self._contents.files)
        return f"<numparq.Dataset {self._opened_path.path!r}: {count} {agree_noun(count, 'file')}{keys}>"

    def _reopener(self) -> _DatasetReopener:
        check_named(self._options["decryption"], "a dataset")
        options = {**self._options, "pruners": self._pruners, "threads": self._threads}
        return _DatasetReopener(self._opened_path, options, self._contents.identity())


@dataclass(frozen=True)
class _DatasetReopener:
    """Opens a dataset again, if its files have not changed."""

    path: OpenedPath
    options: dict[str, Any]
    identity: bytes

    def __call__(self) -> Dataset:
        at = self.path.from_here()
        dataset = Dataset(at.path, storage_options=at.storage_options, filesystem=at.filesystem, **self.options)
        if dataset._contents.identity() != self.identity:
            raise InvalidFileError(
                "the files of the dataset have changed since it was pickled: open it again", file=str(at.path)
            )
        return dataset
