"""Plan a scan on the driver: partition types, Spark's schema, splits, the reader to ship."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from numparq.dataset.discover.files import EmptyDatasetError
from numparq.dataset.splits.open_files import check_unchanged
from numparq.dataset.splits.split import Split
from numparq.errors import SchemaError, UnsupportedError
from numparq.scan.predicate import LeafArrowTypes
from numparq.spark.filters.plan import plan_with_text
from numparq.spark.schema.comparison import is_collated
from numparq.spark.schema.from_parquet import spark_schema
from numparq.spark.schema.row_metadata import read_row_metadata
from numparq.spark.schema.to_parquet import schema_nodes
from numparq.spark.schema.user_schema import check_user_schema

from .join_keys import JoinKeyColumn
from .reader import BatchReader
from .request import ReadRequest

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from numparq.dataset.splits.table import SplitTable
    from numparq.typing import Filters

# Rows without columns that a task passes to Spark, in about a second.
ROWS_TO_COUNT = 1 << 25


def plan_splits(request: ReadRequest, schema: StructType | None = None) -> SplitTable:
    """Plan the splits of a request; with a user's schema, of its columns that exist.

    Raises ValueError for both a schema and columns, or for a filter that cannot be parsed.
    """
    request = replace(request, partitioning=_spark_partitioning(request, schema))

    def plan(filters: Filters) -> SplitTable:
        return _plan_columns(replace(request, filters=filters), schema)

    return plan_with_text(request.filters, request.dialect, plan, schema)


def _plan_columns(request: ReadRequest, schema: StructType | None) -> SplitTable:
    """Plan the splits of a request's columns, or of those of a user's schema that exist."""
    if schema is None:
        return _split_table(request, request.columns) if request.columns is not None else _split_in_spark_order(request)
    if request.columns is not None:
        raise ValueError("a schema and the option 'columns' cannot be combined; use one of them")
    names = list(dict.fromkeys(schema.fieldNames()))
    try:
        table = _split_table(request, names)
    except EmptyDatasetError:
        return _split_table(request, names, schema_nodes(schema))
    except SchemaError:  # some are missing, or differ in case
        there = _split_table(request, None).names
        places = [place for place in request.field_finder(there, names) if place is not None]
        return _split_table(request, [there[place] for place in dict.fromkeys(places)])
    request.field_finder([*table.schema.columns, *table.partitions], names)  # raises for names ambiguous in case
    return table


def _split_in_spark_order(request: ReadRequest) -> SplitTable:
    """Plan all columns in Spark's order: a partition column takes the position of a file column of that name."""
    table = _split_table(request, None)
    names = [name for name in table.names if name not in request.include]
    order = list(dict.fromkeys([*(name for name in table.schema.columns if name in names), *names]))
    return table if order == names else _split_table(request, order)


def _spark_partitioning(request: ReadRequest, schema: StructType | None) -> Any:
    """Return `partitioning` with Spark's inference for types that neither the user nor a schema gives."""
    from numparq.spark.schema.partitions import infer_partition_types, user_partition_types

    if request.partitioning != "hive" and not isinstance(request.partitioning, Mapping):
        return request.partitioning
    given = {} if isinstance(request.partitioning, str) else dict(request.partitioning)
    asked = user_partition_types(schema)
    return lambda listing: infer_partition_types(listing, given, asked, infers=request.infers_partitions)


def _split_table(request: ReadRequest, columns: list[Any] | None, schema: list[Any] | None = None) -> SplitTable:
    from numparq.dataset.splits.table import split_table

    if columns is not None:
        columns = [name for name in columns if name not in request.include]
    limits = {"split_bytes": request.split_bytes, "plan_files": request.plan_files}
    given: dict[str, Any] = {name: value for name, value in limits.items() if value is not None}
    return split_table(
        request.path,
        columns,
        request.filters,
        runtime_filters=request.runtime_filters,
        min_splits=request.min_splits,
        partitioning=request.partitioning,
        resolve=request.resolve,
        table_format=request.table_format,
        file_filter=request.file_filter,
        schema=schema,
        storage_options=request.storage_options,
        filesystem=request.filesystem,
        include=request.include,
        variants="bytes",
        verify_crc=request.verify_crc,
        threads=1,
        calendar=request.calendar,
        decryption=request.decryption,
        expected_parts=request.expected_parts,
        **given,
    )


def join_key_columns(
    names: list[Any], split_columns: Callable[[list[Any]], SplitTable], schema: StructType | None = None
) -> dict[Any, JoinKeyColumn]:
    """Return the columns that join keys refer to, by name; SchemaError for a missing one.

    `split_columns` plans the table with some columns alone.
    """
    from numparq.expr.resolve import resolve_column
    from numparq.spark.schema.from_parquet import spark_schema

    found = {}
    for name in names:
        table = split_columns([name])
        (field,) = spark_schema(table).fields
        wanted = () if schema is None else schema.fields
        types = [field.dataType, *(each.dataType for each in wanted if each.name.lower() == field.name.lower())]
        if name in table.partitions:
            found[name] = JoinKeyColumn(types)
        else:
            leaf = resolve_column(table.schema, name).leaf
            found[name] = JoinKeyColumn(types, leaf, LeafArrowTypes(table.schema_file).get(leaf.index))
    return found


def column_splitter(request: ReadRequest, schema: StructType | None = None) -> Callable[[list[Any]], SplitTable]:
    """Return a function that plans a request's table with some columns, and no filters."""
    partitioning = _spark_partitioning(request, schema)
    plain = replace(request, filters=None, runtime_filters=(), include=(), partitioning=partitioning)
    return lambda names: _split_table(plain, names)


@dataclass(frozen=True)
class SparkScan:
    """Planned scan: splits, one a task, and the reader of any of them."""

    splits: list[Split]
    batch_reader: BatchReader

    @classmethod
    def plan(cls, request: ReadRequest, schema: StructType | None = None) -> SparkScan:
        """Plan a request; a user's schema sets columns, order and types, and columns missing in the files are null.

        Raises SchemaError if a column cannot be read as the user's type, and the errors of `plan_splits`.
        """
        table = plan_splits(request, schema)
        _check_collations(table, request)
        inferred = spark_schema(table)
        if schema is not None:
            check_user_schema(inferred, schema, request.field_finder)
        made: Any = inferred if schema is None else schema
        _check_names(made.fieldNames())
        reader = BatchReader(table.reader, made, request.rows_per_batch, request.nanoseconds, request.field_finder)
        scan = cls(table.splits, reader)
        return scan if table.names or scan.num_rows is None else cls(_splits_without_columns(scan.num_rows), reader)

    @property
    def num_rows(self) -> int | None:
        """Number of rows; None if it depends on a filter, or on footers that were not read."""
        counts = [split.num_rows for split in self.splits]
        return None if None in counts else sum(counts)  # type: ignore[arg-type]

    def check_unchanged(self) -> None:
        """Raise FileNotFoundError or InvalidFileError if a file is gone or has changed since the scan was planned."""
        parts = (part for split in self.splits for part in split.parts)
        check_unchanged(parts, self.batch_reader.split_reader.filesystem)


def _splits_without_columns(num_rows: int) -> list[Split]:
    """Return splits of rows without columns, which need no file."""
    return [Split((), min(ROWS_TO_COUNT, num_rows - start)) for start in range(0, num_rows, ROWS_TO_COUNT)]


def _check_names(names: list[str]) -> None:
    """Refuse duplicate names; Spark takes one column of each name from a Python worker, and fails."""
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise SchemaError("two columns have this name, but Spark reads one column per name", column=twice)


def _check_collations(table: SplitTable, request: ReadRequest) -> None:
    """Refuse runtime filters on columns with a collation, by which Spark finds other keys equal."""
    if request.runtime_filters:
        fields = read_row_metadata(table.schema_file.footer.key_value_metadata)
        for name in (each.column for each in request.runtime_filters):
            if isinstance(name, str) and name in fields and is_collated(fields[name].dataType):
                raise UnsupportedError("the column has a collation, which runtime filters do not support", column=name)
