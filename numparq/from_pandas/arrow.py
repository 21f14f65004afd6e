"""Arrow-backed columns to leaf values: pyarrow's buffers, without a copy where the layouts agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from numparq.column.leaf_values import JoinableRows, LeafValues
from numparq.format.arrow_type import ArrowType
from numparq.types.parquet_type import parquet_type
from numparq.types.pyarrow import type_from_pyarrow

from .column_values import ColumnValues, validity_bytes
from .decimals import big_endian
from .dictionary import dictionary_values
from .temporal import timestamp_converter

_MS_OF_DAY = 86_400_000


def arrow_values(values: Any) -> ColumnValues:
    """Return the values of a pyarrow array without children, chunked or not; SchemaError if Parquet lacks the type."""
    import pyarrow as pa

    chunked = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
    if isinstance(chunked.type, pa.BaseExtensionType):
        chunks = [chunk.storage for chunk in chunked.chunks]
        source = arrow_values(pa.chunked_array(chunks, type=chunked.type.storage_type))
        return replace(source, type=type_from_pyarrow(chunked.type))
    if isinstance(chunked.type, pa.DictionaryType):
        return _dictionary_values(chunked)
    if isinstance(chunked.type, pa.RunEndEncodedType):
        return _decode_runs(chunked)
    arrow_type = type_from_pyarrow(chunked.type)
    parquet_type(arrow_type)
    convert = _converter(arrow_type)
    joinable = None
    if convert is _string_leaf:
        joinable = JoinableRows(
            convert, lambda start, stop: _chunks(chunked, start, stop), lambda parts: _convert_chunks(parts, convert)
        )
    return ColumnValues(
        arrow_type, lambda start, stop: [_convert_chunks(_chunks(chunked, start, stop), convert)], (), joinable
    )


def _convert_chunks(parts: list[Any], convert: Callable[[Any], LeafValues]) -> LeafValues:
    return concat_leaves([convert(part) for part in parts], [len(part) for part in parts])


def _chunks(chunked: Any, start: int, stop: int) -> list[Any]:
    """Return the arrays of rows `start` to `stop` (exclusive), at least one."""
    chunks = [chunk for chunk in chunked.slice(start, stop - start).chunks if len(chunk)]
    if chunks:
        return chunks
    import pyarrow as pa

    return [pa.nulls(0, chunked.type)]  # pa.array cannot build a dictionary of null type


def _decode_runs(chunked: Any) -> ColumnValues:
    """Return run-end encoded values, decoded when their rows are read."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def decoded(start: int, stop: int) -> Any:
        chunks = [pc.run_end_decode(chunk) for chunk in chunked.slice(start, stop - start).chunks]
        return arrow_values(pa.chunked_array(chunks, chunked.type.value_type))

    return ColumnValues(decoded(0, 0).type, lambda start, stop: decoded(start, stop).read_leaves(0, stop - start))


def _cast_values(chunked: Any, data_type: Any) -> ColumnValues:
    """Return values that are cast when their rows are read."""
    source = arrow_values(chunked.slice(0, 0).cast(data_type))
    return ColumnValues(
        source.type,
        lambda start, stop: arrow_values(chunked.slice(start, stop - start).cast(data_type)).read_leaves(
            0, stop - start
        ),
    )


def _dictionary_values(chunked: Any) -> ColumnValues:
    import pyarrow as pa

    unified = _unify_dictionaries(chunked)
    if unified is None:
        return _cast_values(chunked, chunked.type.value_type)
    dictionary = unified.chunk(0).dictionary if unified.num_chunks else pa.array([], chunked.type.value_type)
    # Readers expect dictionary entries that are distinct and not null: pyarrow fails on others.
    if dictionary.null_count or len(dictionary.unique()) < len(dictionary):
        return _cast_values(chunked, chunked.type.value_type)

    def codes(start: int, stop: int) -> np.ndarray:
        leaf = _convert_chunks([part.indices for part in _chunks(unified, start, stop)], _index_leaf)
        found = leaf.values.astype(np.int32)
        if leaf.validity is not None:
            found[leaf.validity == 0] = -1
        return found

    index = type_from_pyarrow(unified.type).dictionary
    assert index is not None
    return dictionary_values(codes, arrow_values(dictionary), len(dictionary), index)


def _unify_dictionaries(chunked: Any) -> Any:
    """Return the data with one dictionary for all chunks; None if pyarrow cannot do that or changes half floats."""
    import pyarrow as pa

    if chunked.num_chunks < 2:
        return chunked
    data_type = chunked.type
    if pa.types.is_float16(data_type.value_type) or any(chunk.dictionary.null_count for chunk in chunked.chunks):
        return None
    try:
        return chunked.unify_dictionaries()
    except pa.ArrowNotImplementedError:
        return None
    except pa.ArrowInvalid:  # more entries than the index type can number
        wide = pa.dictionary(pa.int32(), data_type.value_type, data_type.ordered)
        return chunked.cast(wide).unify_dictionaries()


# --- one array to leaf values ----------------------------------------------------------------------------------------


def _bits(buffer: Any, offset: int, count: int) -> np.ndarray:
    """Return bits of a bitmap as bytes of 0 and 1."""
    octets = np.frombuffer(buffer, np.uint8)[offset // 8 : (offset + count + 7) // 8]
    first = offset % 8
    return np.unpackbits(octets, bitorder="little")[first : first + count]


def _validity(array: Any) -> np.ndarray | None:
    buffer = array.buffers()[0]
    if buffer is None or array.null_count == 0:
        return None
    return validity_bytes(_bits(buffer, array.offset, len(array)).view(bool))


def _items(array: Any, dtype: str | np.dtype) -> np.ndarray:
    """Return the values of a fixed-size array: a view of its buffer."""
    buffer, kind = array.buffers()[1], np.dtype(dtype)
    if buffer is None or not len(array):
        return np.zeros(len(array), kind)
    return np.frombuffer(buffer, kind, len(array), array.offset * kind.itemsize)


def _index_leaf(array: Any) -> LeafValues:
    dtype = np.dtype(f"{'u' if str(array.type).startswith('u') else 'i'}{array.type.bit_width // 8}")
    return LeafValues(_items(array, dtype), validity=_validity(array))


def _fixed_leaf(array: Any, dtype: str, finish: Callable[[np.ndarray], np.ndarray] | None = None) -> LeafValues:
    values = _items(array, dtype)
    return LeafValues(values if finish is None else finish(values), validity=_validity(array))


def _null_leaf(array: Any) -> LeafValues:
    return LeafValues(np.zeros(len(array), np.int32), validity=np.zeros(len(array), np.uint8) if len(array) else None)


def _boolean_leaf(array: Any) -> LeafValues:
    buffer = array.buffers()[1]
    count = len(array)
    values = _bits(buffer, array.offset, count) if buffer is not None and count else np.zeros(count, np.uint8)
    return LeafValues(values, validity=_validity(array))


def _second_leaf(array: Any) -> LeafValues:
    leaf = timestamp_converter("s")(_values_without_nulls(array))
    leaf.validity = _validity(array)
    return leaf


def _values_without_nulls(array: Any) -> np.ndarray:
    """Return 64-bit values with 0 at nulls, where Arrow's buffer may hold anything."""
    values, validity = _items(array, "i8"), _validity(array)
    return values if validity is None else np.where(validity.view(bool), values, 0)


def _string_leaf(array: Any) -> LeafValues:
    """Return strings or bytes as a view of their data, with 64-bit offsets."""
    buffers = array.buffers()
    wide = str(array.type).startswith("large")
    if buffers[1] is None or not len(array):
        return LeafValues(np.zeros(0, np.uint8), np.zeros(len(array), np.int64), np.zeros(len(array), np.int64))
    dtype = np.dtype(np.int64 if wide else np.int32)
    offsets = np.frombuffer(buffers[1], dtype, len(array) + 1, array.offset * dtype.itemsize).astype(
        np.int64, copy=False
    )
    data = np.zeros(0, np.uint8) if buffers[2] is None else np.frombuffer(buffers[2], np.uint8)
    return LeafValues(data, offsets[:-1], offsets[1:], _validity(array))


def _view_leaf(array: Any) -> LeafValues:
    import pyarrow as pa

    return _string_leaf(array.cast(pa.large_string() if pa.types.is_string_view(array.type) else pa.large_binary()))


def _fixed_binary(width: int) -> Callable[[Any], LeafValues]:
    return lambda array: _fixed_leaf(array, f"V{width}", lambda values: values.view(np.uint8) if width else values)


def _int_converter(arrow_type: ArrowType) -> Callable[[Any], LeafValues]:
    width = arrow_type.bit_width // 8
    if width >= 4:
        return lambda array: _fixed_leaf(array, f"i{width}")
    return lambda array: _fixed_leaf(array, f"{'i' if arrow_type.signed else 'u'}{width}", lambda v: v.astype(np.int32))


def _decimal_converter(arrow_type: ArrowType) -> Callable[[Any], LeafValues]:
    length = parquet_type(arrow_type)[1]
    return lambda array: _fixed_leaf(array, f"V{arrow_type.bit_width // 8}", lambda values: big_endian(values, length))


_TIMES: dict[str, Callable[[Any], LeafValues]] = {
    "s": lambda array: _fixed_leaf(array, "i4", lambda values: values * 1000),
    "ms": lambda array: _fixed_leaf(array, "i4"),
    "us": lambda array: _fixed_leaf(array, "i8"),
    "ns": lambda array: _fixed_leaf(array, "i8"),
}
_DATES: dict[str, Callable[[Any], LeafValues]] = {
    "D": lambda array: _fixed_leaf(array, "i4"),
    "ms": lambda array: _fixed_leaf(array, "i8", lambda values: (values // _MS_OF_DAY).astype(np.int32)),
}
_FLOATS: dict[int, Callable[[Any], LeafValues]] = {
    16: lambda array: _fixed_leaf(array, "f2", lambda values: values.view(np.uint8)),
    32: lambda array: _fixed_leaf(array, "f4"),
    64: lambda array: _fixed_leaf(array, "f8"),
}
_CONVERTERS: dict[str, Callable[[ArrowType], Callable[[Any], LeafValues]]] = {
    "null": lambda arrow_type: _null_leaf,
    "bool": lambda arrow_type: _boolean_leaf,
    "int": _int_converter,
    "float": lambda arrow_type: _FLOATS[arrow_type.bit_width],
    "decimal": _decimal_converter,
    "date": lambda arrow_type: _DATES[arrow_type.unit],
    "time": lambda arrow_type: _TIMES[arrow_type.unit],
    "timestamp": lambda arrow_type: _second_leaf if arrow_type.unit == "s" else lambda array: _fixed_leaf(array, "i8"),
    "duration": lambda arrow_type: lambda array: _fixed_leaf(array, "i8"),
    "fixed_size_binary": lambda arrow_type: _fixed_binary(arrow_type.byte_width),
    **dict.fromkeys(("utf8", "large_utf8", "binary", "large_binary"), lambda arrow_type: _string_leaf),
    **dict.fromkeys(("utf8_view", "binary_view"), lambda arrow_type: _view_leaf),
}


def _converter(arrow_type: ArrowType) -> Callable[[Any], LeafValues]:
    return _CONVERTERS[arrow_type.kind](arrow_type)


def concat_leaves(parts: list[LeafValues], counts: list[int]) -> LeafValues:
    """Concatenate flat leaf values without levels or codes; `counts` are the rows of each.

    A single part is returned as it is; of several, none may be empty.
    """
    if len(parts) == 1:
        return parts[0]
    validity = None
    if any(part.validity is not None for part in parts):
        full = [
            np.ones(count, np.uint8) if part.validity is None else part.validity
            for part, count in zip(parts, counts, strict=True)
        ]
        validity = np.concatenate(full)
    if parts[0].starts is None:
        return LeafValues(np.concatenate([part.values for part in parts]), validity=validity)
    data, starts, ends, end = [], [], [], 0
    for part in parts:
        assert part.starts is not None
        assert part.ends is not None
        first, last = int(part.starts[0]), int(part.ends[-1])
        data.append(part.values[first:last])
        starts.append(part.starts + (end - first))
        ends.append(part.ends + (end - first))
        end += last - first
    return LeafValues(np.concatenate(data), np.concatenate(starts), np.concatenate(ends), validity)
