"""`split_table` and `SplitTable`: a table's splits and the reader that they share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from numparq.column.projection import check_names
from numparq.dataset.discover.snapshot import DatasetSnapshot
from numparq.dataset.prune.pruners import FilePruner
from numparq.dataset.scan.schema_only import SchemaOnlyPartitions
from numparq.expr.dnf import as_expression
from numparq.format.open_file import OpenFile
from numparq.format.schema import Schema
from numparq.scan.options import ScanOptions
from numparq.util.arguments import check_positive_int, check_row_count

from .plan import SplitQuery, plan_byte_splits, plan_row_splits
from .reader import SplitReader, SplitReadSpec, check_arrived
from .serialized_schema import SerializedSchema, UnseenFiles
from .split import Split

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SplitTable", "split_table"]

SPLIT_BYTES = 64 << 20
MAX_PLANNED_FILES = 4096


class SplitTable:
    """A table divided into splits. It can be pickled; its `reader`, which has no splits in it, is smaller.

    Made by `split_table`.

    Parameters
    ----------
    reader : SplitReader
        Reads any of the splits.
    splits : list of Split
        All rows that are wanted, each in one split, in their order.

    Attributes
    ----------
    reader, splits
        As given.
    """

    def __init__(self, reader: SplitReader, splits: list[Split]) -> None:
        self.reader = reader
        self.splits = splits

    def __len__(self) -> int:
        return len(self.splits)

    def __repr__(self) -> str:
        return f"<SplitTable: {len(self.splits)} splits, {sum(split.num_bytes for split in self.splits):,} bytes>"

    def with_runtime_filters(self, runtime_filters: Any) -> SplitTable:
        """Give one that applies more filters where its splits are read; see `SplitReader.with_runtime_filters`."""
        splits = [split._replace(num_rows=None) for split in self.splits]
        return SplitTable(self.reader.with_runtime_filters(runtime_filters), splits)

    @property
    def prototype(self) -> OpenFile:
        """See `SplitReader.prototype`."""
        return self.reader.prototype

    @property
    def schema(self) -> Schema:
        """See `SplitReader.schema`."""
        return self.reader.schema

    @property
    def names(self) -> list[str]:
        """See `SplitReader.names`."""
        return self.reader.names

    @property
    def partitions(self) -> list[str]:
        """See `SplitReader.partitions`."""
        return self.reader.partitions

    @property
    def arrow_schema(self) -> Any:
        """See `SplitReader.arrow_schema`."""
        return self.reader.arrow_schema

    def frame(self, split: Split) -> pd.DataFrame:
        """See `SplitReader.frame`."""
        return self.reader.frame(split)

    def frames(
        self, split: Split, batch_rows: int | None = None, *, memory_limit: int | None = None
    ) -> Iterator[pd.DataFrame]:
        """See `SplitReader.frames`."""
        return self.reader.frames(split, batch_rows, memory_limit=memory_limit)

    def tables(self, split: Split, batch_rows: int | None = None, *, memory_limit: int | None = None) -> Iterator[Any]:
        """See `SplitReader.tables`."""
        return self.reader.tables(split, batch_rows, memory_limit=memory_limit)

    def count(self, split: Split) -> int:
        """See `SplitReader.count`."""
        return self.reader.count(split)


def split_table(
    path: Any,
    columns: Sequence[str | tuple[str, ...]] | None = None,
    filters: Any = None,
    *,
    runtime_filters: Any = (),
    split_bytes: int = SPLIT_BYTES,
    min_splits: int = 1,
    plan_files: int | None = MAX_PLANNED_FILES,
    partitioning: Any = "hive",
    schema: Any = None,
    resolve: str = "name",
    storage_options: dict[str, Any] | None = None,
    filesystem: Any = None,
    pruners: Sequence[FilePruner] = (),
    include: Sequence[str] = (),
    dtype_backend: str = "numpy",
    variants: str = "values",
    verify_crc: bool = True,
    threads: int | None = 1,
) -> SplitTable:
    """Divide a table into splits.

    Parameters
    ----------
    path, schema, resolve, storage_options, filesystem, pruners
        As of `numparq.Dataset`.
    partitioning : {"hive"}, None, list, dict, or callable
        As of `numparq.Dataset`; or what gives the types of hive's partition columns, as a dict, when it is called with
        the `numparq.dataset.discover.files.DatasetListing` of all files.
    columns, filters, include, dtype_backend, variants, verify_crc
        As in `numparq.read_parquet`. Rows come back exactly filtered.
    runtime_filters : RuntimeFilter, or iterable of these
        As in `numparq.read_parquet`; each has to have arrived. They leave out files here, and row groups, pages and
        rows where splits are read.
    split_bytes : int
        About so many bytes of the columns asked for, as they are stored, are in a split at most.
    min_splits : int
        So many splits there are to be, if the rows can be divided so.
    plan_files : int or None
        Of more files than that, left by their partitions, footers are read where splits are: splits are whole files,
        or byte ranges of them, and the columns are those of a few of the files (or of `schema`), any of which may be
        null. A file that has others, or wider ones, is a SchemaError where it is read, unless there is a `schema`.
    threads : int, optional
        How many threads read a split.

    Returns
    -------
    SplitTable
        Its splits together have just the rows that `numparq.Dataset.read` gives, in the same order. Dtypes are by the
        schema of the files alone: integers and booleans are nullable ones unless the column is REQUIRED, INT96 is
        in microseconds, no column is a Categorical, or an index; partition columns are Int32 or str, or of the type
        that `partitioning` gives, nullable ones.

    Raises
    ------
    SchemaError, FileNotFoundError, InvalidFileError
        As `numparq.Dataset.read` does.
    """
    choices = ScanOptions(
        filters=None if filters is None else as_expression(filters),
        runtime_filters=check_arrived(runtime_filters),
        dtype_backend=dtype_backend,
        include=tuple(include),
        variants=variants,
        verify_crc=verify_crc,
        threads=threads,
    )
    check_positive_int(split_bytes, "split_bytes")
    check_positive_int(min_splits, "min_splits")
    if plan_files is not None:
        check_row_count(plan_files, "plan_files")
    columns = None if columns is None else check_names(columns)

    def divided() -> SplitTable:
        contents = _contents(path, partitioning, schema, resolve, storage_options, filesystem)
        try:
            query = SplitQuery(contents, pruners, columns, choices, plan_files)
            unknown = UnseenFiles(schema is not None, contents.partitions.keys) if query.is_sampled else None
            divide = plan_byte_splits if query.is_sampled else plan_row_splits
            splits = divide(contents, query, split_bytes, min_splits)
            carried = SerializedSchema(query.schema, resolve, unknown)
            return SplitTable(SplitReader(SplitReadSpec.of(contents, carried, columns, choices)), splits)
        finally:
            contents.close()

    try:
        return divided()
    except FileNotFoundError:  # one was replaced, say, since it was listed
        return divided()


def _contents(
    path: Any, partitioning: Any, schema: Any, resolve: str, options: Any, filesystem: Any
) -> DatasetSnapshot:
    """List the files, and find out the types of partition columns, which are no Categoricals."""
    given = "hive" if callable(partitioning) else partitioning
    contents = DatasetSnapshot(path, given, None, schema, resolve, options, filesystem, None)
    types = partitioning(contents.listing) if callable(partitioning) else given
    contents.partitions = SchemaOnlyPartitions.of(contents.listing, types)
    return contents
