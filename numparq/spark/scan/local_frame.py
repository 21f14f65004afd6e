"""Read a small result on the driver and return it as a local Spark DataFrame."""

from __future__ import annotations

import inspect
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from numparq.errors import ParquetError
from numparq.spark.schema.comparison import is_collated
from numparq.util.bounded_cache import fork_safe_lru_cache
from numparq.util.optional import import_pyarrow

from .arrow_batches import worker_arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from .plan import SparkScan

_SESSION = "org.apache.spark.sql.classic.SparkSession"
_HELPER = "org.apache.spark.sql.api.python.PythonSQLUtils"
_LARGE_VAR_TYPES = "spark.sql.execution.arrow.useLargeVarTypes"
# Options of Spark's request for Arrow batches, with the values that leave batches unchanged.
_OPTIONS = {
    "split_batches": (False,),
    "prefers_large_var_types": (False,),
    "empty_list_if_zero_records": (True, False),
}
_GIVES_BATCHES = re.compile(r"(typing\.)?[Ll]ist\[[^,]*RecordBatch[^,]*\]")

# Stored bytes of the columns read; about ten milliseconds on one core.
MAX_STORED_BYTES = 8 << 20
# Arrow bytes that the driver may hold.
_MAX_ARROW_BYTES = 4 << 20
# Types that Spark takes from Arrow unchanged.
_SUPPORTED = (
    "BooleanType",
    "ByteType",
    "ShortType",
    "IntegerType",
    "LongType",
    "FloatType",
    "DoubleType",
    "DecimalType",
    "StringType",
    "BinaryType",
    "DateType",
    "TimestampType",
    "TimestampNTZType",
)
_NESTED: dict[str, Callable[[Any], list[Any]]] = {
    "ArrayType": lambda of: [of.elementType],
    "MapType": lambda of: [of.keyType, of.valueType],
    "StructType": lambda of: [field.dataType for field in of.fields],
}


def create_local_frame(spark: SparkSession, table: pa.Table, schema: StructType) -> DataFrame | None:
    """Return what ``spark.createDataFrame(table, schema)`` returns, faster; None if this Spark has other internals.

    `table` has the types of `worker_arrow_schema` for the schema.
    """
    try:
        return _create(spark, table, schema)
    except Exception:  # other Spark versions, Spark Connect and platforms have other internals
        return None


def _create(spark: Any, table: pa.Table, schema: StructType) -> DataFrame | None:
    """Create the DataFrame by the two calls that `createDataFrame` ends with; None if rows must go another way."""
    context = spark._sc
    if context._encryption_enabled or spark.conf.get(_LARGE_VAR_TYPES, "false") != "false":
        return None
    stream = _ipc_stream(table)
    activate, read, frame_of = _jvm_methods(spark._jvm._gateway_client)
    # As `createDataFrame` does: the calls below may read settings of this thread's session.
    type(spark)._activeSession = spark
    activate(spark._jsparkSession)
    handle, path = tempfile.mkstemp(dir=context._temp_dir)
    try:
        with open(handle, "wb") as file:
            file.write(stream)
        rows = read(path)  # reads the whole file
    finally:
        os.unlink(path)
    made = _frame_class()(frame_of(rows, schema.json(), spark._jsparkSession), spark)
    made._take(stream, schema)
    return made  # type: ignore[no-any-return]


def _ipc_stream(table: pa.Table) -> bytes:
    """Return a table as bytes of the Arrow IPC stream format."""
    pa = import_pyarrow("numparq.spark needs")
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


@fork_safe_lru_cache(2)
def _jvm_methods(client: Any) -> tuple[Any, Any, Any]:
    """Return JVM methods, looked up once: set the thread's session, read a stream, build a DataFrame."""
    from py4j.java_gateway import JavaClass

    helper = JavaClass(_HELPER, client)
    return JavaClass(_SESSION, client).setActiveSession, helper.readArrowStreamFromFile, helper.toDataFrame


@fork_safe_lru_cache(1)
def _frame_class() -> Any:
    """Return the DataFrame class of local rows, built on demand since it needs pyspark."""
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

    class LocalFrame(ClassicDataFrame):
        """DataFrame that returns its local rows to Python directly; Spark would start a job for that."""

        def _take(self, stream: bytes, schema: StructType) -> None:
            self._stream = stream
            if isinstance(inspect.getattr_static(ClassicDataFrame, "schema"), cached_property):
                self.__dict__["schema"] = type(schema)([*schema.fields])

        def _collect_as_arrow(self, *places: Any, **options: Any) -> Any:
            if is_known and not places and not self.is_cached and _are_default_options(options):
                with import_pyarrow("numparq.spark needs").ipc.open_stream(self._stream) as reader:
                    found = [batch for batch in reader if batch.num_rows]
                if found or options.get("empty_list_if_zero_records", True):
                    return found
            return super()._collect_as_arrow(*places, **options)

    is_known = _is_known(ClassicDataFrame)
    return LocalFrame


def _is_known(frame_class: Any) -> bool:
    """Whether this Spark fetches Arrow batches in the known way."""
    found = inspect.signature(frame_class._collect_as_arrow)
    is_list = _GIVES_BATCHES.fullmatch(str(found.return_annotation)) is not None
    return is_list and {*found.parameters} <= {"self", *_OPTIONS}


def _are_default_options(options: Mapping[str, Any]) -> bool:
    return all(value in _OPTIONS.get(name, ()) for name, value in options.items())


def read_locally(spark: SparkSession, table: SparkScan, most_bytes: int | None) -> DataFrame | None:
    """Read a planned scan on the driver into a local DataFrame, if it has at most `most_bytes` stored bytes (8 MiB).

    None leaves it to tasks: more bytes, unsupported types, or an error, which tasks then raise when rows are needed. So
    are rows of encrypted files, which would pass through a temporary file in plaintext.
    """
    schema = table.batch_reader.schema
    most_bytes = MAX_STORED_BYTES if most_bytes is None else most_bytes
    if isinstance(most_bytes, bool) or not hasattr(most_bytes, "__index__"):
        raise TypeError(f"driver_bytes must be a number of bytes, not {most_bytes!r}")
    if most_bytes < 1 or table.batch_reader.split_reader.has_keys:
        return None
    if sum(split.num_bytes for split in table.splits) > most_bytes or not _is_supported(schema):
        return None
    if any(part.groups is None for split in table.splits for part in split.parts):  # footers not read yet
        return None
    try:
        found = _read_batches(table)
    except (ParquetError, OSError, MemoryError):
        return None
    if found is None:
        return None
    rows = import_pyarrow().Table.from_batches(found, worker_arrow_schema(schema))
    made = create_local_frame(spark, rows, schema)
    if made is None and all(type(field.dataType).__name__ in _SUPPORTED for field in schema.fields):
        return spark.createDataFrame(rows, schema)
    return made


def _is_supported(kind: Any) -> bool:
    """Whether local DataFrames support a type: simple types, and nested types of these."""
    name = type(kind).__name__
    if name in _NESTED:
        inner = _NESTED[name](kind)
        return bool(inner) and all(map(_is_supported, inner))
    return name in _SUPPORTED and not is_collated(kind)


def _read_batches(table: SparkScan) -> list[Any] | None:
    """Read all record batches; None if they exceed what the driver may hold."""
    found: list[Any] = []
    size = 0
    for split in table.splits:
        for batch in table.batch_reader.read(split):
            size += batch.nbytes
            if size > _MAX_ARROW_BYTES:
                return None
            found.append(batch)
    return found
