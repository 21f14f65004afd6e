"""Rows of a look-up, read where it was planned: a job of Spark takes many times as long as to read some pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..arrow import pyarrow
from ..errors import ParquetError
from .local_frame import local_frame
from .types import arrow_for_spark, is_collated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from .reader import SparkTable

__all__ = ["MOST_BYTES", "few_rows"]

# Stored, of the columns that are read: what takes a core some ten milliseconds.
MOST_BYTES = 8 << 20
# Of Arrow's, that the driver keeps.
_MOST_RESULT = 4 << 20
# Which Spark takes over from Arrow as they are.
_PLAIN = ("BooleanType", "ByteType", "ShortType", "IntegerType", "LongType", "FloatType", "DoubleType", "DecimalType",
          "StringType", "BinaryType", "DateType", "TimestampType", "TimestampNTZType")  # fmt: skip
_NESTED: dict[str, Callable[[Any], list[Any]]] = {
    "ArrayType": lambda of: [of.elementType], "MapType": lambda of: [of.keyType, of.valueType],
    "StructType": lambda of: [field.dataType for field in of.fields],
}  # fmt: skip


def few_rows(spark: SparkSession, table: SparkTable, most_bytes: int) -> DataFrame | None:
    """Read a table here, where little of it is left, as a DataFrame that has its rows in it.

    Parameters
    ----------
    spark : SparkSession
        Where it is to be.
    table : SparkTable
        The table, planned.
    most_bytes : int
        Stored bytes that are read here.

    Returns
    -------
    pyspark.sql.DataFrame or None
        None where tasks are to read it: because there is more, because columns are of types that Spark does not take
        over as they are, or because reading fails. Tasks will fail, too, when the rows are asked for and not before.
    """
    schema = table.batches.schema
    if isinstance(most_bytes, bool) or not hasattr(most_bytes, "__index__"):
        raise TypeError(f"driver_bytes is a number of bytes, not {most_bytes!r}")
    if most_bytes < 1:
        return None
    if sum(split.num_bytes for split in table.splits) > most_bytes or not _is_taken(schema):
        return None
    if any(part.groups is None for split in table.splits for part in split.parts):  # their footers are not read yet
        return None
    try:
        found = _read(table)
    except (ParquetError, OSError, MemoryError):
        return None
    if found is None:
        return None
    rows = pyarrow().Table.from_batches(found, arrow_for_spark(schema))
    made = local_frame(spark, rows, schema)
    if made is None and all(type(field.dataType).__name__ in _PLAIN for field in schema.fields):
        return spark.createDataFrame(rows, schema)
    return made


def _is_taken(kind: Any) -> bool:
    """Whether a DataFrame may have values of a type in it: simple ones, and what is nested of these."""
    name = type(kind).__name__
    if name in _NESTED:
        inner = _NESTED[name](kind)
        return bool(inner) and all(map(_is_taken, inner))
    return name in _PLAIN and not is_collated(kind)


def _read(table: SparkTable) -> list[Any] | None:
    """Read all record batches; None where they are more than a driver is to keep."""
    found: list[Any] = []
    size = 0
    for split in table.splits:
        for batch in table.batches.batches(split):
            size += batch.nbytes
            if size > _MOST_RESULT:
                return None
            found.append(batch)
    return found
