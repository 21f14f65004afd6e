"""Cast the DataFrames of a user's function to record batches of the declared schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql.types import StructType

# Kinds of values accepted for each kind of the schema; all casts are lossless.
_ACCEPTED_KINDS = {
    "boolean": ("boolean",),
    "integer": ("integer", "float"),
    "float": ("float", "integer"),
    "decimal": ("decimal", "integer"),
    "string": ("string",),
    "binary": ("binary",),
    "date": ("date", "timestamp without a time zone"),
    "timestamp": ("timestamp",),
    "timestamp without a time zone": ("timestamp without a time zone",),
    "time": ("time",),
    "duration": ("duration",),
}


class ResultBatchBuilder:
    """Builder of record batches of `schema` from a function's frames.

    `name` is the function's, for messages; `is_utc`: timestamps without a time zone may become instants. With
    `hides_values`, no message quotes a value.
    """

    def __init__(self, schema: StructType, name: str, *, is_utc: bool, hides_values: bool = False) -> None:
        self.schema = schema
        self._name = name
        self._is_utc = is_utc
        self._hides_values = hides_values

    def from_frame(self, frame: Any) -> Iterator[pa.RecordBatch]:
        """Yield a frame as record batches of the schema, cast without loss.

        Raises TypeError for other objects and kinds of values, ValueError for wrong columns and values that do not fit.
        """
        import pyarrow as pa

        from numparq.spark.scan.arrow_batches import RecordBatchBuilder

        batches = RecordBatchBuilder(self.schema)
        frame = self._columns(frame)
        arrays = [self._array(frame[field.name], field, nullable=field.nullable) for field in batches.schema]
        if len(frame):
            yield from batches.from_table(pa.Table.from_arrays(arrays, names=batches.schema.names))

    def _columns(self, frame: Any) -> pd.DataFrame:
        """Return a frame with the schema's columns; raise if they differ."""
        import pandas as pd

        if not isinstance(frame, pd.DataFrame):
            raise TypeError(f"{self._name} must return DataFrames, not {_described(frame)}")
        wanted = self.schema.fieldNames()
        levels = [name for name in frame.index.names if name in wanted and name not in frame.columns]
        if levels:
            frame = frame.reset_index(level=levels)
        names = list(frame.columns)
        missing = [name for name in wanted if name not in names]
        others = [name for name in names if name not in wanted]
        twice = [name for name in wanted if names.count(name) > 1]
        found = [
            f"{text} {', '.join(map(repr, of))}"
            for text, of in (("lacks", missing), ("has unexpected", others), ("has duplicate", twice))
            if of
        ]
        if found:
            raise ValueError(f"the result of {self._name} {' and '.join(found)}; the schema is {_text(self.schema)}")
        return frame

    def _array(self, values: pd.Series, field: pa.Field, *, nullable: bool) -> pa.Array:
        """Cast a column to the Arrow type of a field."""
        import pyarrow as pa

        try:
            array = self._converted(values, field.type)
        except _ResultTypeError as unfit:
            raise TypeError(
                f"column {field.name!r} in the result of {self._name} is {unfit}, but the schema has "
                f"{self.schema[field.name].dataType.simpleString()}"
            ) from None
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            reason = "values of encrypted files are not shown" if self._hides_values else str(error)
            raise ValueError(
                f"column {field.name!r} in the result of {self._name} ({values.dtype}) has values that do not fit "
                f"{self.schema[field.name].dataType.simpleString()} of the schema: {reason}"
            ) from (None if self._hides_values else error)
        if not nullable and array.null_count:
            raise ValueError(
                f"column {field.name!r} in the result of {self._name} has nulls, but the schema does not allow them"
            )
        return array

    def _converted(self, values: pd.Series, wanted: pa.DataType) -> pa.Array:
        import pyarrow as pa

        if pa.types.is_nested(wanted):
            return _combine_chunks(pa.Array.from_pandas(_to_arrow_objects(values, wanted), type=wanted))
        array = _combine_chunks(pa.Array.from_pandas(values))
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if array.null_count == len(array):
            return pa.nulls(len(array), wanted)
        self._check(array.type, wanted)
        return _cast(array, wanted)

    def _check(self, given: pa.DataType, wanted: pa.DataType) -> None:
        """Raise `_ResultTypeError` if the kinds do not fit, whatever the values."""
        kind = _kind(given)
        if self._is_utc and kind == "timestamp without a time zone" and _kind(wanted) == "timestamp":
            return
        if kind not in _ACCEPTED_KINDS.get(_kind(wanted), ()):
            hint = ""
            if {kind, _kind(wanted)} == {"timestamp", "timestamp without a time zone"}:
                hint = " (add or remove the time zone with .dt.tz_localize, or use timestamp_ntz in the schema)"
            raise _ResultTypeError(f"{kind}{hint}")


class _ResultTypeError(Exception):
    """Kind of values that a column must not have."""


def _cast(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Cast without loss."""
    import pyarrow as pa

    if pa.types.is_date(wanted) and pa.types.is_timestamp(array.type):
        days = array.cast(pa.timestamp(array.type.unit)).cast(pa.date32())
        if not days.cast(array.type).equals(array):
            raise ValueError("a date has a time of day")
        return days.cast(wanted)
    if pa.types.is_decimal(wanted) and pa.types.is_integer(array.type):
        array = array.cast(pa.decimal256(76, wanted.scale))  # fits any integer
    if pa.types.is_timestamp(wanted) and array.type.tz is None and wanted.tz is not None:
        array = array.cast(pa.timestamp(array.type.unit, "UTC"))
    return array.cast(wanted, safe=True)


def _kind(of: pa.DataType) -> str:
    """Return the kind of a type in a word, as in messages and `_ACCEPTED_KINDS`."""
    import pyarrow as pa

    types = pa.types
    tests = (
        ("boolean", types.is_boolean),
        ("integer", types.is_integer),
        ("float", types.is_floating),
        ("decimal", types.is_decimal),
        ("date", types.is_date),
        ("time", types.is_time),
        ("duration", types.is_duration),
        ("string", lambda t: types.is_string(t) or types.is_large_string(t) or types.is_string_view(t)),
        (
            "binary",
            lambda t: (
                types.is_binary(t)
                or types.is_large_binary(t)
                or types.is_binary_view(t)
                or types.is_fixed_size_binary(t)
            ),
        ),
        ("timestamp", lambda t: types.is_timestamp(t) and t.tz is not None),
        ("timestamp without a time zone", types.is_timestamp),
    )
    return next((word for word, test in tests if test(of)), str(of))


def _combine_chunks(array: Any) -> pa.Array:
    import pyarrow as pa

    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _to_arrow_objects(values: pd.Series, wanted: pa.DataType) -> Any:
    """Convert objects for pyarrow, which knows neither Spark's Rows nor dicts as maps."""
    make = _object_converter(wanted)
    if make is None:
        return values
    import pandas as pd

    return pd.Series([None if _is_null(value) else make(value) for value in values], dtype=object)


def _is_null(value: Any) -> bool:
    import pandas as pd

    return value is None or value is pd.NA or (isinstance(value, float) and value != value)


def _object_converter(wanted: pa.DataType) -> Any:
    """Return a converter of one object; None if nothing is to be done."""
    import pyarrow as pa

    if pa.types.is_map(wanted):
        return _map_maker(_object_converter(wanted.key_type) or _same, _object_converter(wanted.item_type) or _same)
    if pa.types.is_struct(wanted):
        return _struct_maker({field.name: _object_converter(field.type) or _same for field in wanted})
    if pa.types.is_list(wanted):
        inner = _object_converter(wanted.value_type)
        return None if inner is None else lambda value: [None if one is None else inner(one) for one in value]
    return None


def _same(value: Any) -> Any:
    return value


def _map_maker(key: Any, item: Any) -> Any:
    def make(value: Any) -> Any:
        pairs = value.items() if isinstance(value, dict) else value
        return [(key(k), None if v is None else item(v)) for k, v in pairs]

    return make


def _struct_maker(makers: dict[str, Any]) -> Any:
    def make(value: Any) -> Any:
        if hasattr(value, "asDict"):
            value = value.asDict()
        if not isinstance(value, dict):
            return value
        others = [name for name in value if name not in makers]
        if others:
            raise ValueError(f"a struct has the unexpected field {others[0]!r}")
        return {name: None if one is None else makers[name](one) for name, one in value.items()}

    return make


def _text(schema: StructType) -> str:
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema) or "without columns"


def _described(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
