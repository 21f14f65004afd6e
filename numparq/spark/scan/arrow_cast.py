"""Cast Arrow arrays to the Arrow types that Spark expects of a Python worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.errors import InvalidFileError, SchemaError, UnsupportedError
from numparq.spark.schema.user_schema import FieldFinder
from numparq.util.optional import import_pyarrow

if TYPE_CHECKING:
    import pyarrow as pa

_MAX_OFFSET = (1 << 31) - 1
_NANOS_OF_DAY = 86_400_000_000_000


class ArrowCaster:
    """Cast of Arrow arrays to Spark's Arrow types."""

    def __init__(self, floors: bool, places: FieldFinder) -> None:
        self._floors = floors
        self._places = places

    def cast(self, array: Any, target: pa.DataType) -> Any:
        """Cast an array to one of Spark's Arrow types.

        Raises SchemaError for unexpected types or nulls, InvalidFileError or UnsupportedError for values.
        """
        pa = import_pyarrow()
        types, given = pa.types, array.type
        if given == target and types.is_decimal(target):
            array.validate(full=True)  # too many digits would fail in Java
            return array
        if given == target and not types.is_nested(target):
            return array
        if isinstance(given, pa.BaseExtensionType):
            is_uuid = given.extension_name == "arrow.uuid" and types.is_string(target)
            return _uuid_strings(array.storage) if is_uuid else self.cast(array.storage, target)
        if types.is_null(given) or not len(array):
            return pa.nulls(len(array), target)
        if types.is_dictionary(given):
            return self.cast(array.dictionary_decode(), target)
        if types.is_struct(target):
            return self._struct(array, target)
        if types.is_list(target):
            return self._list(array, target)
        if types.is_map(target):
            return self._map(array, target)
        return self._values(array, target)

    # --- nested -----------------------------------------------------------------------------------------------------

    def _struct(self, array: Any, target: pa.StructType) -> Any:
        pa = import_pyarrow()
        if _is_geospatial(target) and not pa.types.is_struct(array.type):
            return _geospatial(self.cast(array, pa.binary()), target)
        if not pa.types.is_struct(array.type):
            raise SchemaError(f"{array.type} cannot be cast to {target}")
        fields = list(target)
        places = self._places([field.name for field in array.type], [field.name for field in fields])
        children = array.flatten()
        made = [
            self.cast(pa.nulls(len(array)) if place is None else children[place], field.type)
            for place, field in zip(places, fields, strict=True)
        ]
        for child, field in zip(made, fields, strict=True):
            if not field.nullable and child.null_count > array.null_count:
                raise SchemaError(f"the field {field.name!r} has nulls, but the schema does not allow them")
        if not made:
            return pa.Array.from_buffers(target, len(array), [array.buffers()[0]], array.null_count, array.offset)
        return pa.StructArray.from_arrays(made, fields=fields, mask=_mask(array))

    def _list(self, array: Any, target: pa.ListType) -> Any:
        pa = import_pyarrow()
        plain = _to_list(array)
        offsets, first, count = _child_range(plain)
        child = self.cast(plain.values.slice(first, count), target.value_type)
        if not target.value_field.nullable and child.null_count:
            raise SchemaError("lists have null elements, but the schema does not allow them")
        return pa.ListArray.from_arrays(offsets, child, type=target, mask=_mask(plain))

    def _map(self, array: Any, target: pa.MapType) -> Any:
        pa = import_pyarrow()
        if not pa.types.is_map(array.type):
            raise SchemaError(f"{array.type} cannot be cast to {target}")
        offsets, first, count = _child_range(array)
        keys = self.cast(array.keys.slice(first, count), target.key_type)
        items = self.cast(array.items.slice(first, count), target.item_type)
        if keys.null_count:
            raise InvalidFileError("a map has a null key")
        if not target.item_field.nullable and items.null_count:
            raise SchemaError("maps have null values, but the schema does not allow them")
        return pa.MapArray.from_arrays(offsets, keys, items, type=target, mask=_mask(array))

    # --- leaves -----------------------------------------------------------------------------------------------------

    def _values(self, array: Any, target: pa.DataType) -> Any:
        pa = import_pyarrow()
        types, given = pa.types, array.type
        if types.is_timestamp(given) and types.is_timestamp(target):
            return self._timestamps(array, target)
        if types.is_duration(given) or types.is_duration(target):
            return array.view(target)
        if types.is_time(target):
            return _check_times(array.cast(target))
        if (types.is_large_string(given) or types.is_large_binary(given)) and _end(array) > _MAX_OFFSET:
            array = pa.concat_arrays([array])  # copies only its own bytes, offsets from 0
        return array.cast(target)

    def _timestamps(self, array: Any, target: pa.DataType) -> Any:
        """Cast to microseconds; the view sets the session's time zone."""
        pa = import_pyarrow()
        if array.type.unit == "ns" and self._floors:
            array = pa.compute.floor_temporal(array.view(pa.timestamp("ns")), unit="microsecond")
        elif array.type.unit == "ns":
            _check_microseconds(array)
        return array.cast(pa.timestamp("us", array.type.tz)).view(target)


def _to_list(array: Any) -> Any:
    """Cast lists of any kind to lists with 32-bit offsets."""
    pa = import_pyarrow()
    if pa.types.is_list(array.type):
        return array
    if not pa.types.is_nested(array.type) or pa.types.is_struct(array.type) or pa.types.is_map(array.type):
        raise SchemaError(f"{array.type} cannot be cast to a list")
    counts = pa.compute.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    ends = np.cumsum(counts, dtype=np.int64)
    if len(ends) and ends[-1] > _MAX_OFFSET:
        raise UnsupportedError(
            f"{ends[-1]:,} list elements exceed the limit of {_MAX_OFFSET:,} per batch; use a smaller rows_per_batch"
        )
    offsets = pa.array(np.concatenate([[0], ends]).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, array.flatten(), mask=_mask(array))


def _child_range(array: Any) -> tuple[Any, int, int]:
    """Return the offsets of lists from 0 on, and start and count of their elements."""
    pa = import_pyarrow()
    offsets = array.offsets
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    if first or offsets.offset:  # pyarrow accepts no sliced offsets with a mask
        offsets = pa.compute.subtract(offsets, pa.scalar(first, offsets.type))
    return offsets, first, last - first


def _mask(array: Any) -> Any:
    return array.is_null() if array.null_count else None


def _end(array: Any) -> int:
    """Return the end of an array's last value in its shared data buffer (64-bit offsets)."""
    place = array.offset + len(array)
    return int(np.frombuffer(array.buffers()[1], np.int64, 1, 8 * place)[0])


def _check_microseconds(array: Any) -> None:
    """Raise UnsupportedError if any timestamp has sub-microsecond precision."""
    pa = import_pyarrow()
    numbers = array.view(pa.int64()).drop_null().to_numpy()
    broken = numbers[numbers % 1000 != 0]
    if len(broken):
        raise UnsupportedError(
            f"timestamp {broken[0]} ns since 1970 cannot be stored in microseconds, Spark's unit, without loss; "
            'use nanoseconds="floor" to truncate it'
        )


def _check_times(array: Any) -> Any:
    """Check that times are within a day."""
    pa = import_pyarrow()
    bounds = pa.compute.min_max(array.view(pa.int64()))
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    if low is not None and (low < 0 or high >= _NANOS_OF_DAY):
        raise InvalidFileError(f"{low if low < 0 else high} ns is not a time of day")
    return array


def _is_geospatial(target: pa.StructType) -> bool:
    return [field.name for field in target] == ["srid", "wkb"] and b"srid" in (target.field(1).metadata or {})


def _geospatial(array: Any, target: pa.StructType) -> Any:
    """Build Spark's struct of WKB and the type's SRID."""
    pa = import_pyarrow()
    number = pa.scalar(int(target.field(1).metadata[b"srid"]), pa.int32())
    present = array.fill_null(b"") if array.null_count else array
    return pa.StructArray.from_arrays([pa.repeat(number, len(array)), present], fields=list(target), mask=_mask(array))


_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_UUID_DIGITS = np.array([place for place in range(36) if place not in (8, 13, 18, 23)])


def _uuid_strings(array: Any) -> Any:
    """Format 16-byte values as UUID text of 36 characters."""
    pa = import_pyarrow()
    whole = pa.concat_arrays([array])  # drops the array's offset
    count = len(whole)
    octets = np.frombuffer(whole.buffers()[1], np.uint8, 16 * count).reshape(count, 16)
    text = np.full((count, 36), ord("-"), np.uint8)
    digits = np.stack([octets >> 4, octets & 15], axis=2).reshape(count, 32)
    text[:, _UUID_DIGITS] = _HEX[digits]
    offsets = np.arange(0, 36 * (count + 1), 36, dtype=np.int32)
    buffers = [whole.buffers()[0], pa.py_buffer(offsets), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.string(), count, buffers, whole.null_count)
