"""pyarrow arrays from decoded columns, without a copy where the layouts agree."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from numparq.column.buffers import BinaryArray, DecodedColumn, DictionaryArray
from numparq.errors import InvalidFileError
from numparq.format.arrow_type import ArrowType
from numparq.types.output_type import OutputType
from numparq.types.pyarrow import type_to_pyarrow
from numparq.util.optional import import_pyarrow

from .decimals import binary_to_integers, fixed_to_int64

_MAX_OFFSET = (1 << 31) - 1
_CHUNK_ROWS = 1 << 14  # rows at a time, to bound intermediate memory
_DECIMAL_WORDS = {128: 2, 256: 4}


def to_arrow(target: OutputType, buffer: DecodedColumn, num_rows: int) -> Any:
    """Return a decoded column of `dtype_backend="pyarrow"` as a pyarrow.ChunkedArray that owns its memory.

    Raises ImportError without pyarrow, InvalidFileError for a decimal that does not fit its type.
    """
    pa = import_pyarrow()
    arrow_type = type_to_pyarrow(target.type)
    if target.storage == "null":
        return pa.chunked_array([pa.nulls(num_rows)], type=arrow_type)
    if target.storage == "fixed":
        return pa.chunked_array([_fixed_array(target, buffer, arrow_type)], type=arrow_type)
    if target.storage == "dictionary":
        return _dictionary_column(buffer.arrays, arrow_type)
    if target.type.kind == "decimal":
        chunks = [_binary_decimals(piece, target.type, arrow_type) for piece in buffer.arrays]
    else:
        chunks = [chunk for piece in buffer.arrays for chunk in _binary_arrays(piece, arrow_type)]
    return pa.chunked_array(chunks, type=arrow_type)


def validity_bitmap(validity: np.ndarray | None) -> Any:
    """Return validity bytes as an Arrow bitmap, least significant bit first; None for None."""
    return None if validity is None else import_pyarrow().py_buffer(np.packbits(validity.view(bool), bitorder="little"))


def _array(arrow_type: Any, length: int, validity: np.ndarray | None, *buffers: Any) -> Any:
    pa = import_pyarrow()
    wrapped = [pa.py_buffer(np.ascontiguousarray(values).view(np.uint8)) for values in buffers]
    return pa.Array.from_buffers(arrow_type, length, [validity_bitmap(validity), *wrapped])


def _fixed_array(target: OutputType, buffer: DecodedColumn, arrow_type: Any) -> Any:
    pa = import_pyarrow()
    values, validity = buffer.fixed_values, buffer.validity if buffer.null_count else None
    if target.type.kind == "decimal":
        return _fixed_decimals(values, validity, target.type, arrow_type)
    if target.type.kind == "bool":
        values = np.packbits(values.view(bool), bitorder="little")
    storage = arrow_type.storage_type if isinstance(arrow_type, pa.BaseExtensionType) else arrow_type
    array = _array(storage, len(buffer.fixed_values), validity, values)
    return pa.ExtensionArray.from_storage(arrow_type, array) if storage is not arrow_type else array


def large_binary_array(piece: BinaryArray, arrow_type: Any) -> Any:
    """Return a binary array as a pyarrow array of a type with 64-bit offsets, without a copy."""
    return _array(arrow_type, len(piece), piece.validity, piece.offsets, piece.data)


def _binary_arrays(piece: BinaryArray, arrow_type: Any) -> list[Any]:
    """Return a binary array as pyarrow arrays of a type; several if 32-bit offsets do not suffice."""
    pa = import_pyarrow()
    storage = arrow_type.storage_type if isinstance(arrow_type, pa.BaseExtensionType) else arrow_type
    if pa.types.is_large_string(storage) or pa.types.is_large_binary(storage):
        arrays = [large_binary_array(piece, storage)]
    else:
        narrow = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}.get(storage, storage)
        arrays = [
            _array(narrow, len(part), part.validity, part.offsets.astype(np.int32), part.data)
            for part in _split_at_31_bits(piece)
        ]
        arrays = [array.cast(storage) for array in arrays] if narrow is not storage else arrays
    if storage is arrow_type:
        return arrays
    return [pa.ExtensionArray.from_storage(arrow_type, array) for array in arrays]


def _split_at_31_bits(piece: BinaryArray) -> list[BinaryArray]:
    """Split a binary array in half until the offsets of each part fit 31 bits."""
    first, last = int(piece.offsets[0]), int(piece.offsets[-1])
    if last <= _MAX_OFFSET:
        return [piece]
    if last - first <= _MAX_OFFSET or len(piece) < 2:
        return [BinaryArray(piece.offsets - first, piece.data[first:], piece.validity)]
    middle = len(piece) // 2
    validity = piece.validity
    halves = (
        BinaryArray(piece.offsets[: middle + 1], piece.data, None if validity is None else validity[:middle]),
        BinaryArray(piece.offsets[middle:], piece.data, None if validity is None else validity[middle:]),
    )
    return [part for half in halves for part in _split_at_31_bits(half)]


def _dictionary_column(pieces: Sequence[BinaryArray | DictionaryArray], arrow_type: Any) -> Any:
    """Return a column of a dictionary type, with 32-bit indices if its own cannot number the values."""
    pa = import_pyarrow()
    coded = [chunk for piece in pieces for chunk in _dictionary_chunks(piece, arrow_type.value_type)]
    most = max((len(dictionary) for _, dictionary in coded), default=0)
    index_type = arrow_type.index_type
    if most - 1 > np.iinfo(index_type.to_pandas_dtype()).max:
        index_type = pa.int32()
    chunks = [
        pa.DictionaryArray.from_arrays(indices.cast(index_type), dictionary, ordered=arrow_type.ordered)
        for indices, dictionary in coded
    ]
    return pa.chunked_array(chunks, type=pa.dictionary(index_type, arrow_type.value_type, arrow_type.ordered))


def _dictionary_chunks(piece: BinaryArray | DictionaryArray, value_type: Any) -> list[tuple[Any, Any]]:
    """Return indices and dictionary of a piece; several if 32-bit offsets do not suffice for its values."""
    pa = import_pyarrow()
    if isinstance(piece, BinaryArray):
        encoded = [array.dictionary_encode() for array in _binary_arrays(piece, value_type)]
        return [(array.indices, array.dictionary) for array in encoded]
    dictionary = _binary_arrays(piece.dictionary, value_type)[0]
    present = piece.codes >= 0
    return [(pa.array(piece.codes, mask=None if present.all() else ~present), dictionary)]


def _fixed_decimals(values: np.ndarray, validity: np.ndarray | None, decimal: ArrowType, arrow_type: Any) -> Any:
    size = decimal.bit_width // 8
    out = np.empty((len(values), size), np.uint8)
    for start in range(0, len(values), _CHUNK_ROWS):
        part = values[start : start + _CHUNK_ROWS]
        small = fixed_to_int64(part) if part.dtype.kind == "V" else part
        words = _decimal_words(small, decimal) if small is not None else _decimal_words_from_bytes(part, decimal)
        out[start : start + len(part)] = words.view(np.uint8).reshape(-1, size)
    return _array(arrow_type, len(values), validity, out)


def _decimal_overflow(decimal: ArrowType) -> InvalidFileError:
    return InvalidFileError(f"a value does not fit DECIMAL({decimal.precision}, {decimal.scale})")


def _decimal_words(values: np.ndarray, decimal: ArrowType) -> np.ndarray:
    """Sign-extend integers to the little-endian words of a decimal type."""
    if decimal.bit_width <= 64:
        words = values.astype(np.dtype(f"i{decimal.bit_width // 8}"))
        if (words != values).any():
            raise _decimal_overflow(decimal)
        return words
    words = np.empty((len(values), _DECIMAL_WORDS[decimal.bit_width]), np.int64)
    words[:, 0] = values
    words[:, 1:] = words[:, :1] >> 63
    return words


def _decimal_words_from_bytes(values: np.ndarray, decimal: ArrowType) -> np.ndarray:
    """Return big-endian items as little-endian ones of a decimal type's width."""
    size, width = decimal.bit_width // 8, values.dtype.itemsize
    octets = values.view(np.uint8).reshape(len(values), width)
    sign = (octets[:, :1] >> 7) * np.uint8(255)
    out = np.empty((len(values), size), np.uint8)
    out[:] = sign
    kept = min(size, width)
    out[:, :kept] = octets[:, width - kept :][:, ::-1]
    if width > size and ((octets[:, : width - size] != sign).any() or ((out[:, -1:] ^ sign) >> 7).any()):
        raise _decimal_overflow(decimal)
    return out


def _binary_decimals(piece: BinaryArray, decimal: ArrowType, arrow_type: Any) -> Any:
    unscaled = binary_to_integers(piece)
    if isinstance(unscaled, np.ndarray):
        words = _decimal_words(unscaled, decimal)
    else:
        size = decimal.bit_width // 8
        try:
            words = np.frombuffer(b"".join(value.to_bytes(size, "little", signed=True) for value in unscaled), np.uint8)
        except OverflowError as error:
            raise _decimal_overflow(decimal) from error
    return _array(arrow_type, len(piece), piece.validity, words)


def arrow_extension_array(target: OutputType, buffer: DecodedColumn, num_rows: int) -> Any:
    """Return a decoded column as an ArrowExtensionArray, in the output type's unit and pandas dtype where possible."""
    import pandas as pd

    pa = import_pyarrow()
    array = to_arrow(target, buffer, num_rows)
    if target.unit:
        with contextlib.suppress(pa.ArrowInvalid):  # a value is out of the unit's range
            array = array.cast(pa.timestamp(target.unit, target.type.timezone or None))
    if target.pandas_dtype is not None:
        with contextlib.suppress(pa.ArrowException, TypeError, ValueError):
            return target.pandas_dtype.__from_arrow__(array)
    return pd.arrays.ArrowExtensionArray(array)
