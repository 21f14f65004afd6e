"""`Dataset`: many files, open as one table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ..column.chunks import RowSlice
from ..errors import SchemaError
from ..io.remote_source import open_on
from ..io.source import Source, open_local
from ..opened import OpenedFile
from ..reading.choices import Choices
from ..schema import Schema
from ..selection import checked_count, select_rows
from .columns import TableColumns, table_columns
from .file_filter import FileFilter
from .files import DataFile, list_files
from .metadata_pruner import metadata_pruner
from .opening import open_files
from .partitions import Partitions
from .plan import DatasetPlan, FileCut
from .pruners import FilePruner, PartitionPruner, kept_by
from .reading import TableRead, WantedFile
from .resolution import DatasetSchema

if TYPE_CHECKING:
    import pandas as pd

    from ..plan.byte_ranges import Coalescing
    from ..streaming.batches import Batches

__all__ = ["Dataset"]

_Result = TypeVar("_Result")


class Dataset:
    """Many Parquet files, open as one table.

    Parameters
    ----------
    path : str, os.PathLike, or list of these
        A directory, a glob, a file, or a list of such; URLs too.
    partitioning : {"hive"}, None, list or dict
        How partition columns are told from the names of directories: ``key=value``, not at all, or by position; a
        dict (or a list of pairs) gives their types.
    schema : Schema, pyarrow.Schema, sequence or dict, optional
        The columns of the table; by default those of all files.
    resolve : {"name", "position", "field_id"}
        How the columns of a file are found that are those of the table.
    categories : collection of str, optional
        Partition columns with types that are to be Categorical.
    storage_options, filesystem, coalescing
        As in `numparq.read_parquet`.
    pruners : sequence of FilePruner
        What else can say that a file has no wanted rows; they are asked once for each read.

    Attributes
    ----------
    files : list of str
        The names of the files, in the order in which their rows come.

    Raises
    ------
    FileNotFoundError
        When there is nothing at the path.
    SchemaError
        When the directories do not name the same partition columns.

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

    def __init__(
        self,
        path: Any,
        *,
        partitioning: Any = "hive",
        schema: Any = None,
        resolve: str = "name",
        categories: Collection[str] | None = None,
        storage_options: dict[str, Any] | None = None,
        filesystem: Any = None,
        coalescing: Coalescing | None = None,
        pruners: Sequence[FilePruner] = (),
        threads: int | None = None,
    ) -> None:
        self._path = path
        self._partitioning = partitioning
        self._given_schema = schema
        self._resolve = resolve
        self._categories = categories
        self._storage_options = storage_options
        self._filesystem = filesystem
        self._coalescing = coalescing
        self._pruners = tuple(pruners)
        self._threads = threads
        self.refresh()

    def refresh(self) -> None:
        """Look again which files there are."""
        self.close()
        self._listing = list_files(
            self._path, partitioning=self._partitioning, storage_options=self._storage_options,
            filesystem=self._filesystem,
        )  # fmt: skip
        self._partitions = Partitions.of(self._listing, self._partitioning, self._categories)
        self._opened: dict[int, OpenedFile] = {}
        self._schemas: dict[tuple[int, ...], DatasetSchema] = {}
        self._metadata: OpenedFile | None = None

    @property
    def files(self) -> list[str]:
        """The names of the files, in the order in which their rows come."""
        return [file.name for file in self._listing.files]

    def only_source(self) -> Source | None:
        """Give the file itself, where the path stands for one and not for a table; None where it stands for many."""
        if not self._listing.is_one:
            return None
        file = self._listing.files[0]
        if self._listing.filesystem is None:
            return open_local(file.path)
        return open_on(self._listing.filesystem, file.path, file.name, file.size)

    @property
    def partition_keys(self) -> tuple[str, ...]:
        """The names of the partition columns."""
        return tuple(self._partitions.keys)

    @property
    def schema(self) -> Schema:
        """The columns that are in files, those of all of them united; reads all footers."""
        return self._schema_of(range(len(self._listing.files))).schema

    def read(
        self,
        columns: Sequence[str | tuple[str, ...]] | None = None,
        filters: Any = None,
        *,
        runtime_filters: Any = (),
        dtype_backend: str = "numpy",
        row_range: tuple[int | None, int | None] | None = None,
        nrows: int | None = None,
        categories: Collection[str] | None = None,
        include: Sequence[str] = (),
        geometries: str = "wkb",
        variants: str = "values",
        files: str = "references",
        verify_crc: bool = True,
        memory_limit: int | None = None,
        threads: int | None = None,
    ) -> pd.DataFrame:
        """Read columns and rows into one DataFrame.

        Parameters
        ----------
        columns, filters, runtime_filters, dtype_backend, row_range, nrows, categories, include
            As in `numparq.read_parquet`; rows count over all files.
        geometries, variants, files, verify_crc, memory_limit, threads
            As in `numparq.read_parquet`.

        Returns
        -------
        pandas.DataFrame
            The partition columns come last, unless `columns` says otherwise.
        """
        choices = Choices(
            filters=filters, runtime_filters=runtime_filters, dtype_backend=dtype_backend, row_range=row_range,
            nrows=nrows, categories=categories, include=include, geometries=geometries, variants=variants, files=files,
            verify_crc=verify_crc, threads=threads or self._threads, memory_limit=memory_limit,
        )  # fmt: skip

        def read() -> pd.DataFrame:
            made, wanted = self._begin(columns, choices)
            return made.frame(wanted, None if nrows is None else checked_count(nrows, "nrows"))

        return self._steadily(read)

    def iter_batches(
        self,
        columns: Sequence[str | tuple[str, ...]] | None = None,
        filters: Any = None,
        *,
        batch_rows: int | None = None,
        batch_bytes: int | None = None,
        memory_limit: int | None = None,
        runtime_filters: Any = (),
        dtype_backend: str = "numpy",
        row_range: tuple[int | None, int | None] | None = None,
        nrows: int | None = None,
        categories: Collection[str] | None = None,
        include: Sequence[str] = (),
        geometries: str = "wkb",
        variants: str = "values",
        files: str = "references",
        verify_crc: bool = True,
        threads: int | None = None,
    ) -> Batches:
        """Read columns and rows a batch after the other, in bounded memory.

        Parameters
        ----------
        columns, filters, runtime_filters, dtype_backend, row_range, nrows, categories, include
            As in `read`.
        geometries, variants, files, verify_crc, threads
            As in `read`.
        batch_rows, batch_bytes, memory_limit
            As in `ParquetFile.iter_batches`. Rows of several small files make a batch together.

        Returns
        -------
        Batches
            An iterator of DataFrames with the columns and dtypes of `read`; or, where it is not used as one, an Arrow
            stream for polars, duckdb or pyarrow. The dataset has to stay open meanwhile.

        Raises
        ------
        LimitError
            As in `ParquetFile.iter_batches`.

        Examples
        --------
        >>> import pandas, tempfile, numparq
        >>> frame = pandas.DataFrame({"year": [2023, 2023, 2024], "sold": [5, 7, 9]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     numparq.to_parquet(frame, folder, partition_cols=["year"])
        ...     with numparq.Dataset(folder) as sales:
        ...         for batch in sales.iter_batches(batch_rows=2):
        ...             print(batch["sold"].tolist())
        [5, 7]
        [9]
        """
        from ..streaming.batches import Batches
        from ..streaming.division import Sizes
        from .streaming import TableUnits

        choices = Choices(
            filters=filters, runtime_filters=runtime_filters, dtype_backend=dtype_backend, row_range=row_range,
            nrows=nrows, categories=categories, include=include, geometries=geometries, variants=variants, files=files,
            verify_crc=verify_crc, threads=threads or self._threads,
        )  # fmt: skip
        sizes = Sizes(memory_limit, batch_rows, batch_bytes)
        return self._steadily(lambda: Batches(TableUnits(lambda chosen: self._begin(columns, chosen), choices, sizes)))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Give all rows as an Arrow stream (a PyCapsule), read as it is asked for.

        Parameters
        ----------
        requested_schema : PyCapsule, optional
            As in `Batches.__arrow_c_stream__`.
        """
        return self.iter_batches(dtype_backend="pyarrow").__arrow_c_stream__(requested_schema)

    def count_rows(self, filters: Any = None) -> int:
        """Count rows.

        Parameters
        ----------
        filters : expression, or list of tuples, optional
            Which; without them, nothing but footers is read.

        Returns
        -------
        int
        """

        def count() -> int:
            made, wanted = self._begin([], Choices(filters=filters, threads=self._threads))
            return made.count(wanted)

        return self._steadily(count)

    def plan(self, columns: Sequence[str | tuple[str, ...]] | None = None, filters: Any = None) -> DatasetPlan:
        """Plan a read: which files are left out, by what, and what is read of the others.

        Parameters
        ----------
        columns, filters
            As in `numparq.read_parquet`.

        Returns
        -------
        DatasetPlan
            `DatasetPlan.explain` says it in words.
        """
        choices = Choices(filters=filters, threads=self._threads)

        def plan() -> DatasetPlan:
            made, wanted = self._begin(columns, choices)
            ordinals, cuts = self._kept(choices)
            sizes = {at: self._listing.files[at].size or 0 for at in ordinals}
            left = {each.ordinal for each in wanted}
            gone = [at for at in ordinals if at not in left]
            if gone:
                cuts.append(FileCut("the filter, by what the file lacks", len(gone), sum(sizes[at] for at in gone)))
            return DatasetPlan(len(self._listing.files), tuple(cuts), tuple(made.plans(wanted)))

        return self._steadily(plan)

    def _begin(self, columns: Any, choices: Choices) -> tuple[TableRead, list[WantedFile]]:
        """Choose files, unite their schemas, bind the filter to each."""
        ordinals, _ = self._kept(choices)
        schema, table, asked = self._table(ordinals, columns, choices)
        files = self._wanted(ordinals, asked, choices)
        wanted = [file for file in files if not file.is_nothing]
        return TableRead(schema, table, files, choices), wanted

    def _kept(self, choices: Choices) -> tuple[list[int], list[FileCut]]:
        """Choose the files that may have wanted rows, before any is opened; tells what leaves the others out."""
        files = self._listing.files
        kept = np.arange(len(files))
        if choices.row_range is not None:  # which counts the rows of all files
            return kept.tolist(), []
        cuts = []
        for made in self._pruners_for(choices):
            left = [files[at] for at in kept.tolist()]
            pruner = made(left)
            if pruner is None:
                continue
            mask = kept_by(pruner, left)
            gone = [file.size or 0 for file, is_kept in zip(left, mask.tolist(), strict=True) if not is_kept]
            if gone:
                reason = getattr(pruner, "reason", "")
                cuts.append(FileCut(f"{pruner.name} ({reason})" if reason else pruner.name, len(gone), sum(gone)))
            kept = kept[mask]
        return kept.tolist(), cuts

    def _pruners_for(self, choices: Choices) -> list[Callable[[Sequence[DataFile]], FilePruner | None]]:
        """Give what makes the pruners of a read of the files that are left, the cheapest one first."""

        def by_partition(files: Sequence[DataFile]) -> FilePruner | None:
            pruner = PartitionPruner(choices.filters, self._partitions, choices.runtime_filters)
            return None if pruner.cuts_nothing else pruner

        given = [lambda files, pruner=pruner: pruner for pruner in self._pruners]
        return [by_partition, *given, lambda files: self._by_metadata(files, choices)]

    def _by_metadata(self, files: Sequence[DataFile], choices: Choices) -> FilePruner | None:
        """Give the pruner by the `_metadata` file, where there is one that can help."""
        ordinals = {file.path: at for at, file in enumerate(self._listing.files)}

        def opened(files: Sequence[DataFile]) -> list[OpenedFile]:
            if list(files) == [self._listing.metadata_file]:
                if self._metadata is None:
                    (self._metadata,) = open_files(
                        self._listing, files, storage_options=self._storage_options, coalescing=self._coalescing
                    )
                return [self._metadata]
            return self._open([ordinals[file.path] for file in files])

        def united(files: list[OpenedFile]) -> DatasetSchema:
            return DatasetSchema.of(files, resolve=self._resolve, schema=self._given_schema)

        return metadata_pruner(
            self._listing, files, choices.filters, self._partitions, choices.runtime_filters, opened=opened,
            united=united,
        )  # fmt: skip

    def _table(
        self, ordinals: Sequence[int], columns: Any, choices: Choices
    ) -> tuple[DatasetSchema, TableColumns, FileFilter]:
        """Unite the schemas, find the columns, bind the filter: in the files that are read, or else in all."""
        every = range(len(self._listing.files))
        try:
            return self._bound(self._schema_of(ordinals or [0]), columns, choices)
        except SchemaError:
            if len(ordinals) == len(every):
                raise
            return self._bound(self._schema_of(every), columns, choices)

    def _bound(
        self, schema: DatasetSchema, columns: Any, choices: Choices
    ) -> tuple[DatasetSchema, TableColumns, FileFilter]:
        asked = FileFilter(choices.filters, schema, self._partitions, choices.runtime_filters)
        return schema, table_columns(schema.prototype, self._partitions, columns, choices), asked

    def _schema_of(self, ordinals: Sequence[int]) -> DatasetSchema:
        key = tuple(ordinals)
        if key not in self._schemas:
            self._schemas[key] = DatasetSchema.of(self._open(key), resolve=self._resolve, schema=self._given_schema)
        return self._schemas[key]

    def _open(self, ordinals: Sequence[int]) -> list[OpenedFile]:
        """Open files, but for those that are open."""
        closed = [at for at in ordinals if at not in self._opened]
        if closed:
            opened = open_files(
                self._listing, [self._listing.files[at] for at in closed], storage_options=self._storage_options,
                coalescing=self._coalescing,
            )  # fmt: skip
            self._opened.update(zip(closed, opened, strict=True))
        return [self._opened[at] for at in ordinals]

    def _wanted(self, ordinals: Sequence[int], asked: FileFilter, choices: Choices) -> list[WantedFile]:
        """Choose rows by position, counted over all files, and bind what they have to satisfy."""
        files = self._open(ordinals)
        has_condition = choices.filters is not None or bool(choices.runtime_filters)
        rows = self._slices(files, choices.row_range, None if has_condition else choices.nrows)
        found = []
        for at, file, slices in zip(ordinals, files, rows, strict=True):
            condition = None
            if has_condition:
                condition = asked.condition(file, self._listing.files[at], choices.runtime_filters)
            if slices:
                found.append(WantedFile(file, at, slices, condition))
        return found

    @staticmethod
    def _slices(files: Sequence[OpenedFile], row_range: Any, limit: Any) -> list[list[RowSlice]]:
        """Give the rows of each file, counted from 0 in it."""
        counts = [file.footer.row_group_num_rows.tolist() for file in files]
        if row_range is None and limit is None:
            return [select_rows(each) for each in counts]
        owners = [(at, group) for at, each in enumerate(counts) for group in range(len(each))]
        made: list[list[RowSlice]] = [[] for _ in files]
        for part in select_rows([count for each in counts for count in each], None, row_range, limit):
            at, group = owners[part.row_group]
            out = made[at][-1].out + len(made[at][-1]) if made[at] else 0
            made[at].append(RowSlice(group, part.start, part.stop, out))
        return made

    def _steadily(self, do: Callable[[], _Result]) -> _Result:
        """Do something; once more, with a new listing, where a file is gone since, as when it was replaced."""
        try:
            return do()
        except FileNotFoundError:
            self.refresh()
            return do()

    def close(self) -> None:
        """Close all files."""
        for file in getattr(self, "_opened", {}).values():
            file.close()
        metadata = getattr(self, "_metadata", None)
        if metadata is not None:
            metadata.close()
        self._metadata = None
        self._opened = {}

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        keys = f", partitioned by {', '.join(self._partitions.keys)}" if self._partitions.keys else ""
        return f"<numparq.Dataset {self._path!r}: {len(self._listing.files)} files{keys}>"
