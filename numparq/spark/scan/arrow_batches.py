"""Cut Arrow tables into record batches of exactly Spark's schema and size limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.errors import InvalidFileError, ParquetError, SchemaError, error_context
from numparq.spark.schema.user_schema import FieldFinder, find_fields
from numparq.util.optional import import_pyarrow

from .arrow_cast import ArrowCaster

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = ["RecordBatchBuilder", "worker_arrow_schema"]

# What Spark takes at once: its readers on the Java side hold a whole batch outside of the heap.
MAX_ROWS = 1 << 17
MAX_BYTES = 1 << 25


def worker_arrow_schema(schema: StructType) -> pa.Schema:
    """Give the schema that record batches must have which a Python worker hands to Spark.

    Parameters
    ----------
    schema : pyspark.sql.types.StructType
        The columns.

    Returns
    -------
    pyarrow.Schema
        Strings and bytes with 32-bit offsets, timestamps in microseconds (instants in UTC), times in nanoseconds.

    Raises
    ------
    pyspark.errors.PySparkTypeError
        When Spark has no Arrow form of a type.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")


class RecordBatchBuilder:
    """What makes record batches for Spark of tables.

    Parameters
    ----------
    schema : pyspark.sql.types.StructType
        What Spark expects.
    max_rows : int, optional
        Rows of a batch at most; by default 131,072, and fewer where they are more than 32 MiB.
    nanoseconds : {"exact", "floor"}
        What to do with timestamps that lie between two microseconds: an error, or the earlier one of these.
    places : callable
        Finds columns, and fields of structs, by name: `numparq.spark.schema.user_schema.find_fields` or `exact_places`.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of each batch.
    """

    def __init__(
        self,
        schema: StructType,
        max_rows: int | None = None,
        nanoseconds: str = "exact",
        places: FieldFinder = find_fields,
    ) -> None:
        self.schema = worker_arrow_schema(schema)
        self._max_rows = MAX_ROWS if max_rows is None else max_rows
        self._places = places
        self._fitting = ArrowCaster(nanoseconds == "floor", places)

    def of(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """Give the rows of a table.

        Parameters
        ----------
        table : pyarrow.Table
            Its columns are found by name; one that it lacks is null.

        Yields
        ------
        pyarrow.RecordBatch
            Of `schema`.

        Raises
        ------
        SchemaError
            When a column cannot be what Spark expects, or has nulls where it expects none.
        InvalidFileError, UnsupportedError
            When a value has no place in Spark's type.
        """
        pa = import_pyarrow("numparq.spark needs")
        places = self._places(table.schema.names, self.schema.names)
        chosen = table.select([place for place in places if place is not None])
        if not chosen.num_columns:
            yield from self.from_row_count(table.num_rows)
            return
        for batch in chosen.to_batches(max_chunksize=self._max_rows):
            for part in _halve(batch):
                columns = iter(part.columns)
                arrays = [
                    self._array(pa.nulls(part.num_rows) if place is None else next(columns), field)
                    for place, field in zip(places, self.schema, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def from_row_count(self, count: int) -> Iterator[pa.RecordBatch]:
        """Give rows of which there is no column: nulls, or no columns at all.

        Parameters
        ----------
        count : int
            How many.

        Yields
        ------
        pyarrow.RecordBatch
            Of `schema`.
        """
        pa = import_pyarrow()
        for start in range(0, count, self._max_rows):
            rows = min(self._max_rows, count - start)
            arrays = [self._array(pa.nulls(rows), field) for field in self.schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema) if arrays else _batch_without_columns(rows)

    def _array(self, array: Any, field: pa.Field) -> Any:
        with error_context(column=field.name):
            try:
                made = self._fitting.of(array, field.type)
            except ParquetError:
                raise
            except (import_pyarrow().ArrowException, NotImplementedError, OverflowError) as error:
                what = "are none" if array.type == field.type else f"cannot be {field.type} for Spark"
                raise InvalidFileError(f"values of {array.type} {what}: {error}") from error
            if not field.nullable and made.null_count:
                raise SchemaError("the schema asked for says that there are no nulls, but there are")
            return made


def _batch_without_columns(count: int) -> pa.RecordBatch:
    """Give rows without columns."""
    pa = import_pyarrow()
    return pa.RecordBatch.from_struct_array(pa.array([{}], pa.struct([])).take(np.zeros(count, np.int64)))


def _halve(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut a batch in half until its parts are as small as `MAX_BYTES`, or one row."""
    if batch.num_rows < 2 or sum(map(_decoded_bytes, batch.columns)) <= MAX_BYTES:
        yield batch
        return
    middle = batch.num_rows // 2
    yield from _halve(batch.slice(0, middle))
    yield from _halve(batch.slice(middle))


def _decoded_bytes(array: Any) -> int:
    """Give what an array takes when it is no dictionary any more, at most."""
    types = import_pyarrow().types
    if not types.is_dictionary(array.type):
        return array.nbytes
    values = array.dictionary
    if not len(values) or types.is_primitive(values.type):
        return len(array) * 8
    lengths = import_pyarrow().compute.binary_length(values)
    return len(array) * (8 + (import_pyarrow().compute.max(lengths).as_py() or 0))
