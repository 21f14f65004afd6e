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

# Limits of a batch: Spark's Java readers hold a whole batch off-heap.
MAX_ROWS = 1 << 17
MAX_BYTES = 1 << 25


def worker_arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema of batches that a Python worker passes to Spark.

    32-bit offsets, microsecond timestamps (instants in UTC), nanosecond times. Raises PySparkTypeError if impossible.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")


class RecordBatchBuilder:
    """Builder of record batches of exactly Spark's schema, of at most `max_rows` rows and 32 MiB.

    Timestamps between two microseconds are refused, or with ``nanoseconds="floor"`` rounded down.
    """

    def __init__(
        self,
        schema: StructType,
        max_rows: int | None = None,
        nanoseconds: str = "exact",
        field_finder: FieldFinder = find_fields,
    ) -> None:
        self.schema = worker_arrow_schema(schema)
        self._max_rows = MAX_ROWS if max_rows is None else max_rows
        self._places = field_finder
        self._fitting = ArrowCaster(nanoseconds == "floor", field_finder)

    def from_table(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a table; columns are matched by name, and missing ones are null.

        Raises SchemaError for unexpected types and nulls, InvalidFileError or UnsupportedError for values.
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
        """Yield batches of `count` rows without any stored column: nulls, or no columns at all."""
        pa = import_pyarrow()
        for start in range(0, count, self._max_rows):
            rows = min(self._max_rows, count - start)
            arrays = [self._array(pa.nulls(rows), field) for field in self.schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema) if arrays else _batch_without_columns(rows)

    def _array(self, array: Any, field: pa.Field) -> Any:
        with error_context(column=field.name):
            try:
                made = self._fitting.cast(array, field.type)
            except ParquetError:
                raise
            except (import_pyarrow().ArrowException, NotImplementedError, OverflowError) as error:
                what = "are invalid" if array.type == field.type else f"cannot be cast to {field.type} for Spark"
                raise InvalidFileError(f"values of {array.type} {what}: {error}") from error
            if not field.nullable and made.null_count:
                raise SchemaError("the column has nulls, but the schema does not allow them")
            return made


def _batch_without_columns(count: int) -> pa.RecordBatch:
    """Return a batch of rows without columns."""
    pa = import_pyarrow()
    return pa.RecordBatch.from_struct_array(pa.array([{}], pa.struct([])).take(np.zeros(count, np.int64)))


def _halve(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield parts of a batch, halved until they have at most `MAX_BYTES`, or one row."""
    if batch.num_rows < 2 or sum(map(_decoded_bytes, batch.columns)) <= MAX_BYTES:
        yield batch
        return
    middle = batch.num_rows // 2
    yield from _halve(batch.slice(0, middle))
    yield from _halve(batch.slice(middle))


def _decoded_bytes(array: Any) -> int:
    """Return the most bytes that an array takes without its dictionary."""
    types = import_pyarrow().types
    if not types.is_dictionary(array.type):
        return int(array.nbytes)
    values = array.dictionary
    if not len(values) or types.is_primitive(values.type):
        return len(array) * 8
    lengths = import_pyarrow().compute.binary_length(values)
    return len(array) * (8 + (import_pyarrow().compute.max(lengths).as_py() or 0))
