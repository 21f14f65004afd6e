"""Rows that the driver has, as a DataFrame of Spark that has them in it: made, and given back, in few calls of a JVM.

``createDataFrame`` asks the JVM some forty things before it hands over the rows, and `toPandas` starts a job that turns
them back into the Arrow batches that they came as: more than a look-up takes. What is used of Spark instead is its own,
and not public; where it is not as it was found, there is no such DataFrame.
"""

from __future__ import annotations

import inspect
import os
import re
import tempfile
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..arrow import pyarrow
from ..remembered import remembered

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["local_frame"]

_SESSION = "org.apache.spark.sql.classic.SparkSession"
_HELPER = "org.apache.spark.sql.api.python.PythonSQLUtils"
_LARGE = "spark.sql.execution.arrow.useLargeVarTypes"
# How Spark asks for Arrow batches, and of each option what it says where it wants them just as they are.
_OPTIONS = {
    "split_batches": (False,), "prefers_large_var_types": (False,), "empty_list_if_zero_records": (True, False),
}  # fmt: skip
_GIVES_BATCHES = re.compile(r"(typing\.)?[Ll]ist\[[^,]*RecordBatch[^,]*\]")


def local_frame(spark: SparkSession, table: pa.Table, schema: StructType) -> DataFrame | None:
    """Make a DataFrame of few rows.

    Parameters
    ----------
    spark : SparkSession
        Where it is to be.
    table : pyarrow.Table
        Its rows, of just the types that `arrow_for_spark` gives for the schema.
    schema : pyspark.sql.types.StructType
        Its columns.

    Returns
    -------
    pyspark.sql.DataFrame or None
        What ``spark.createDataFrame(table, schema)`` gives; None where this Spark has other ways.
    """
    try:
        return _made(spark, table, schema)
    except Exception:  # whatever another version of Spark, Spark Connect or a platform above it has otherwise
        return None


def _made(spark: Any, table: pa.Table, schema: StructType) -> DataFrame | None:
    """Make it by the two calls that `createDataFrame` ends with; None where rows have to go another way."""
    context = spark._sc
    if context._encryption_enabled or spark.conf.get(_LARGE, "false") != "false":
        return None
    stream = _stream(table)
    activate, read, frame_of = _calls(spark._jvm._gateway_client)
    # As `createDataFrame` does: what follows may ask for the settings of the session of this thread.
    type(spark)._activeSession = spark
    activate(spark._jsparkSession)
    handle, path = tempfile.mkstemp(dir=context._temp_dir)
    try:
        with open(handle, "wb") as file:
            file.write(stream)
        rows = read(path)  # all of it
    finally:
        os.unlink(path)
    made = _frame_class()(frame_of(rows, schema.json(), spark._jsparkSession), spark)
    made._take(stream, schema)
    return made  # type: ignore[no-any-return]


def _stream(table: pa.Table) -> bytes:
    """Give a table in Arrow's format for streams; nobody can change it."""
    pa = pyarrow("numparq.spark needs")
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


@remembered(2)
def _calls(client: Any) -> tuple[Any, Any, Any]:
    """Give methods of a JVM, which is asked for them once.

    They make a session that of a thread, read a stream, and make a DataFrame of it.
    """
    from py4j.java_gateway import JavaClass

    helper = JavaClass(_HELPER, client)
    return JavaClass(_SESSION, client).setActiveSession, helper.readArrowStreamFromFile, helper.toDataFrame


@remembered(1)
def _frame_class() -> Any:
    """Make the class of such DataFrames, for which pyspark has to be imported."""
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

    class LocalFrame(ClassicDataFrame):
        """A DataFrame that gives its rows to Python as they came, where Spark would start a job for that."""

        def _take(self, stream: bytes, schema: StructType) -> None:
            self._stream = stream
            if isinstance(inspect.getattr_static(ClassicDataFrame, "schema"), cached_property):
                self.__dict__["schema"] = type(schema)([*schema.fields])

        def _collect_as_arrow(self, *places: Any, **options: Any) -> Any:
            if is_known and not places and not self.is_cached and _are_plain(options):
                with pyarrow("numparq.spark needs").ipc.open_stream(self._stream) as reader:
                    found = [batch for batch in reader if batch.num_rows]
                if found or options.get("empty_list_if_zero_records", True):
                    return found
            return super()._collect_as_arrow(*places, **options)

    is_known = _is_known(ClassicDataFrame)
    return LocalFrame


def _is_known(frame_class: Any) -> bool:
    """Whether this version of Spark gets Arrow batches in the way that is known here."""
    found = inspect.signature(frame_class._collect_as_arrow)
    is_list = _GIVES_BATCHES.fullmatch(str(found.return_annotation)) is not None
    return is_list and {*found.parameters} <= {"self", *_OPTIONS}


def _are_plain(options: Mapping[str, Any]) -> bool:
    return all(value in _OPTIONS.get(name, ()) for name, value in options.items())
