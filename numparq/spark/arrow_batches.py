"""Tables of Arrow as record batches whose schema is exactly Spark's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrow import pyarrow
from ..errors import InvalidFileError, ParquetError, SchemaError, UnsupportedError, located
from .projection import FieldPlaces, field_places
from .types import arrow_for_spark

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = ["ArrowBatches"]

# What Spark takes at once: its readers on the Java side hold a whole batch outside of the heap.
MAX_ROWS = 1 << 17
MAX_BYTES = 1 << 25
_MAX_OFFSET = (1 << 31) - 1
_NANOS_OF_DAY = 86_400_000_000_000


class ArrowBatches:
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
        Finds columns, and fields of structs, by name: `numparq.spark.projection.field_places` or `exact_places`.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of each batch.
    """

    def __init__(
        self, schema: StructType, max_rows: int | None = None, nanoseconds: str = "exact",
        places: FieldPlaces = field_places,
    ) -> None:  # fmt: skip
        self.schema = arrow_for_spark(schema)
        self._max_rows = MAX_ROWS if max_rows is None else max_rows
        self._places = places
        self._fitting = _Fitting(nanoseconds == "floor", places)

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
        pa = pyarrow("numparq.spark needs")
        places = self._places(table.schema.names, self.schema.names)
        chosen = table.select([place for place in places if place is not None])
        if not chosen.num_columns:
            yield from self.of_rows(table.num_rows)
            return
        for batch in chosen.to_batches(max_chunksize=self._max_rows):
            for part in _small_enough(batch):
                columns = iter(part.columns)
                arrays = [
                    self._array(pa.nulls(part.num_rows) if place is None else next(columns), field)
                    for place, field in zip(places, self.schema, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def of_rows(self, count: int) -> Iterator[pa.RecordBatch]:
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
        pa = pyarrow()
        for start in range(0, count, self._max_rows):
            rows = min(self._max_rows, count - start)
            arrays = [self._array(pa.nulls(rows), field) for field in self.schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema) if arrays else _rows_alone(rows)

    def _array(self, array: Any, field: pa.Field) -> Any:
        with located(column=field.name):
            try:
                made = self._fitting.of(array, field.type)
            except ParquetError:
                raise
            except (pyarrow().ArrowException, NotImplementedError, OverflowError) as error:
                what = "are none" if array.type == field.type else f"cannot be {field.type} for Spark"
                raise InvalidFileError(f"values of {array.type} {what}: {error}") from error
            if not field.nullable and made.null_count:
                raise SchemaError("the schema asked for says that there are no nulls, but there are")
            return made


def _rows_alone(count: int) -> pa.RecordBatch:
    """Give rows without columns."""
    pa = pyarrow()
    return pa.RecordBatch.from_struct_array(pa.array([{}], pa.struct([])).take(np.zeros(count, np.int64)))


def _small_enough(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut a batch in half until its parts are as small as `MAX_BYTES`, or one row."""
    if batch.num_rows < 2 or sum(map(_bytes_of, batch.columns)) <= MAX_BYTES:
        yield batch
        return
    middle = batch.num_rows // 2
    yield from _small_enough(batch.slice(0, middle))
    yield from _small_enough(batch.slice(middle))


def _bytes_of(array: Any) -> int:
    """Give what an array takes when it is no dictionary any more, at most."""
    types = pyarrow().types
    if not types.is_dictionary(array.type):
        return array.nbytes
    values = array.dictionary
    if not len(values) or types.is_primitive(values.type):
        return len(array) * 8
    lengths = pyarrow().compute.binary_length(values)
    return len(array) * (8 + (pyarrow().compute.max(lengths).as_py() or 0))


# --- arrays -----------------------------------------------------------------------------------------------------------


class _Fitting:
    """Arrays made such that they have another type."""

    def __init__(self, floors: bool, places: FieldPlaces) -> None:
        self._floors = floors
        self._places = places

    def of(self, array: Any, wanted: pa.DataType) -> Any:
        pa = pyarrow()
        types, given = pa.types, array.type
        if given == wanted and types.is_decimal(wanted):
            array.validate(full=True)  # for more digits than there may be, on which the Java side fails
            return array
        if given == wanted and not types.is_nested(wanted):
            return array
        if isinstance(given, pa.BaseExtensionType):
            is_uuid = given.extension_name == "arrow.uuid" and types.is_string(wanted)
            return _uuid_texts(array.storage) if is_uuid else self.of(array.storage, wanted)
        if types.is_null(given) or not len(array):
            return pa.nulls(len(array), wanted)
        if types.is_dictionary(given):
            return self.of(array.dictionary_decode(), wanted)
        if types.is_struct(wanted):
            return self._struct(array, wanted)
        if types.is_list(wanted):
            return self._list(array, wanted)
        if types.is_map(wanted):
            return self._map(array, wanted)
        return self._values(array, wanted)

    # --- nested -----------------------------------------------------------------------------------------------------

    def _struct(self, array: Any, wanted: pa.StructType) -> Any:
        pa = pyarrow()
        if _is_geospatial(wanted) and not pa.types.is_struct(array.type):
            return _geospatial(self.of(array, pa.binary()), wanted)
        if not pa.types.is_struct(array.type):
            raise SchemaError(f"{array.type} cannot be {wanted}")
        fields = list(wanted)
        places = self._places([field.name for field in array.type], [field.name for field in fields])
        children = array.flatten()
        made = [
            self.of(pa.nulls(len(array)) if place is None else children[place], field.type)
            for place, field in zip(places, fields, strict=True)
        ]
        for child, field in zip(made, fields, strict=True):
            if not field.nullable and child.null_count > array.null_count:
                raise SchemaError(f"the field {field.name!r} has nulls, but the schema asked for says it has none")
        if not made:
            return pa.Array.from_buffers(wanted, len(array), [array.buffers()[0]], array.null_count, array.offset)
        return pa.StructArray.from_arrays(made, fields=fields, mask=_mask(array))

    def _list(self, array: Any, wanted: pa.ListType) -> Any:
        pa = pyarrow()
        plain = _plain_list(array)
        offsets, first, count = _spans(plain)
        child = self.of(plain.values.slice(first, count), wanted.value_type)
        if not wanted.value_field.nullable and child.null_count:
            raise SchemaError("there are nulls in lists, but the schema asked for says there are none")
        return pa.ListArray.from_arrays(offsets, child, type=wanted, mask=_mask(plain))

    def _map(self, array: Any, wanted: pa.MapType) -> Any:
        pa = pyarrow()
        if not pa.types.is_map(array.type):
            raise SchemaError(f"{array.type} cannot be {wanted}")
        offsets, first, count = _spans(array)
        keys = self.of(array.keys.slice(first, count), wanted.key_type)
        items = self.of(array.items.slice(first, count), wanted.item_type)
        if keys.null_count:
            raise InvalidFileError("a key of a map is null")
        if not wanted.item_field.nullable and items.null_count:
            raise SchemaError("there are nulls in maps, but the schema asked for says there are none")
        return pa.MapArray.from_arrays(offsets, keys, items, type=wanted, mask=_mask(array))

    # --- leaves -----------------------------------------------------------------------------------------------------

    def _values(self, array: Any, wanted: pa.DataType) -> Any:
        pa = pyarrow()
        types, given = pa.types, array.type
        if types.is_timestamp(given) and types.is_timestamp(wanted):
            return self._timestamps(array, wanted)
        if types.is_duration(given) or types.is_duration(wanted):
            return array.view(wanted)
        if types.is_time(wanted):
            return _times(array.cast(wanted))
        if (types.is_large_string(given) or types.is_large_binary(given)) and _end(array) > _MAX_OFFSET:
            array = pa.concat_arrays([array])  # its bytes alone, counted from 0 on
        return array.cast(wanted)

    def _timestamps(self, array: Any, wanted: pa.DataType) -> Any:
        """Give microseconds; whether there is a zone has been settled before: INT96 has none in Arrow."""
        pa = pyarrow()
        if array.type.unit == "ns" and self._floors:
            array = pa.compute.floor_temporal(array.view(pa.timestamp("ns")), unit="microsecond")
        elif array.type.unit == "ns":
            _check_whole(array)
        return array.cast(pa.timestamp("us", array.type.tz)).view(wanted)


def _plain_list(array: Any) -> Any:
    """Give a list of any kind as one with 32-bit offsets."""
    pa = pyarrow()
    if pa.types.is_list(array.type):
        return array
    if not pa.types.is_nested(array.type) or pa.types.is_struct(array.type) or pa.types.is_map(array.type):
        raise SchemaError(f"{array.type} cannot be a list")
    counts = pa.compute.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    ends = np.cumsum(counts, dtype=np.int64)
    if len(ends) and ends[-1] > _MAX_OFFSET:
        raise UnsupportedError(f"{ends[-1]:,} elements of lists are too many for one batch")
    offsets = pa.array(np.concatenate([[0], ends]).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, array.flatten(), mask=_mask(array))


def _spans(array: Any) -> tuple[Any, int, int]:
    """Give the offsets of the lists in an array, from 0 on, and the first of their elements and how many there are."""
    pa = pyarrow()
    offsets = array.offsets
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    if first or offsets.offset:  # pyarrow takes no slice of offsets beside a mask, not even one that begins with 0
        offsets = pa.compute.subtract(offsets, pa.scalar(first, offsets.type))
    return offsets, first, last - first


def _mask(array: Any) -> Any:
    return array.is_null() if array.null_count else None


def _end(array: Any) -> int:
    """Give the end of the last value of an array with 64-bit offsets, in the buffer that it shares with others."""
    place = array.offset + len(array)
    return int(np.frombuffer(array.buffers()[1], np.int64, 1, 8 * place)[0])


def _check_whole(array: Any) -> None:
    """Fail where a timestamp is not a whole number of microseconds."""
    pa = pyarrow()
    numbers = array.view(pa.int64()).drop_null().to_numpy()
    broken = numbers[numbers % 1000 != 0]
    if len(broken):
        raise UnsupportedError(
            f"Spark has no nanoseconds, and a timestamp ({broken[0]} ns since 1970) is not a whole number of "
            'microseconds; nanoseconds="floor" gives the microsecond before it'
        )


def _times(array: Any) -> Any:
    """Check that times of a day lie within one."""
    pa = pyarrow()
    bounds = pa.compute.min_max(array.view(pa.int64()))
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    if low is not None and (low < 0 or high >= _NANOS_OF_DAY):
        raise InvalidFileError(f"a time of {low if low < 0 else high} ns is none of a day")
    return array


def _is_geospatial(wanted: pa.StructType) -> bool:
    return [field.name for field in wanted] == ["srid", "wkb"] and b"srid" in (wanted.field(1).metadata or {})


def _geospatial(array: Any, wanted: pa.StructType) -> Any:
    """Give WKB beside the number of its coordinate reference system, which is that of the type."""
    pa = pyarrow()
    number = pa.scalar(int(wanted.field(1).metadata[b"srid"]), pa.int32())
    present = array.fill_null(b"") if array.null_count else array
    return pa.StructArray.from_arrays([pa.repeat(number, len(array)), present], fields=list(wanted), mask=_mask(array))


_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_UUID_DIGITS = np.array([place for place in range(36) if place not in (8, 13, 18, 23)])


def _uuid_texts(array: Any) -> Any:
    """Give 16 bytes each as text of 36 characters."""
    pa = pyarrow()
    whole = pa.concat_arrays([array])  # from its first byte on
    count = len(whole)
    octets = np.frombuffer(whole.buffers()[1], np.uint8, 16 * count).reshape(count, 16)
    text = np.full((count, 36), ord("-"), np.uint8)
    digits = np.stack([octets >> 4, octets & 15], axis=2).reshape(count, 32)
    text[:, _UUID_DIGITS] = _HEX[digits]
    offsets = np.arange(0, 36 * (count + 1), 36, dtype=np.int32)
    buffers = [whole.buffers()[0], pa.py_buffer(offsets), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.string(), count, buffers, whole.null_count)
