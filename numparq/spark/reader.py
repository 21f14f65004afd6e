"""A table on its way to Spark: its splits, and how record batches are made of one, in whatever process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import ParquetError, SchemaError, UnsupportedError
from .arrow_batches import ArrowBatches
from .projection import FieldPlaces, check_projection, field_places
from .request import ReadRequest, planned
from .session import begin_task
from .types import is_collated, spark_schema, told_columns

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from ..dataset.splits import Split, SplitReader, SplitTable

__all__ = ["BatchReader", "SparkTable"]


@dataclass(frozen=True)
class BatchReader:
    """Reads splits as record batches of Spark's schema; can be pickled, and is small.

    Attributes
    ----------
    reader : SplitReader
        Reads the splits.
    schema : pyspark.sql.types.StructType
        What Spark expects.
    rows_per_batch : int or None
        Rows of a batch at most.
    nanoseconds : {"exact", "floor"}
        As of `ArrowBatches`.
    places : callable
        As of `ArrowBatches`.
    """

    reader: SplitReader
    schema: StructType
    rows_per_batch: int | None = None
    nanoseconds: str = "exact"
    places: FieldPlaces = field_places

    def batches(self, split: Split) -> Iterator[pa.RecordBatch]:
        """Read a split.

        Parameters
        ----------
        split : Split
            One of the table.

        Yields
        ------
        pyarrow.RecordBatch
            Of the schema that Spark wants, each of them; none where there are no rows.

        Raises
        ------
        ParquetError
            With file, row group, column and page in its message, as far as they are known.
        """
        begin_task()
        try:
            yield from self._batches(split)
        except ParquetError as error:
            if "file" not in error.where:  # of a column that several files have together, or that Spark cannot have
                self._find(error, split)
            raise

    def _batches(self, split: Split) -> Iterator[pa.RecordBatch]:
        made = ArrowBatches(self.schema, self.rows_per_batch, self.nanoseconds, self.places)
        if not self.reader.names:
            yield from made.of_rows(self.reader.count(split))
            return
        for table in self.reader.tables(split):
            yield from made.of(table)

    def _find(self, error: ParquetError, split: Split) -> None:
        """Find out in which file of a split it is, by reading one after the other."""
        for part in split.parts:
            try:
                if len(split.parts) > 1:
                    for _ in self._batches(split._replace(parts=(part,), num_rows=None)):
                        pass
                    continue
            except ParquetError as found:
                error.where.update(found.where)
            error.where.setdefault("file", part.file.name)
            return


@dataclass(frozen=True)
class SparkTable:
    """A table, planned.

    Attributes
    ----------
    splits : list of Split
        What tasks read: one each.
    batches : BatchReader
        Reads any of them.
    """

    splits: list[Split]
    batches: BatchReader

    @classmethod
    def of(cls, request: ReadRequest, schema: StructType | None = None) -> SparkTable:
        """Plan what is asked for.

        Parameters
        ----------
        request : ReadRequest
            What is asked for.
        schema : pyspark.sql.types.StructType, optional
            The caller's: which columns, in which order, as which types. What is not in the files is null.

        Raises
        ------
        SchemaError
            When a column cannot be read as the caller has it.
        ValueError, ParquetError, FileNotFoundError
            As `planned` does.
        """
        table = planned(request, schema)
        _check_collations(table, request)
        inferred = spark_schema(table)
        if schema is not None:
            check_projection(inferred, schema, request.places)
        made: Any = inferred if schema is None else schema
        _check_names(made.fieldNames())
        reader = BatchReader(table.reader, made, request.rows_per_batch, request.nanoseconds, request.places)
        return cls(table.splits, reader)


def _check_names(names: list[str]) -> None:
    """Refuse two columns of one name, of which Spark takes one from a Python worker, and fails."""
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise SchemaError("two columns are called so, and Spark reads one of each name", column=twice)


def _check_collations(table: SplitTable, request: ReadRequest) -> None:
    """Refuse to look for keys of a join where Spark has others that are equal to them."""
    if request.runtime_filters:
        told = told_columns(table.prototype.footer.key_value_metadata)
        for name in (each.column for each in request.runtime_filters):
            if name in told and is_collated(told[name].dataType):
                raise UnsupportedError("values are compared by a collation; a runtime filter knows none", column=name)
