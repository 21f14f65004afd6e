"""Column buffers as pyarrow arrays, without a copy where Arrow has the same layout.

The only module of the core that imports pyarrow, and only once a column needs it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from .arrow_schema import ArrowType
from .column.buffer import BinaryPiece, ColumnBuffer, DictionaryPiece
from .column.unscaled import binary_integers, fixed_integers
from .errors import InvalidFileError, UnsupportedError
from .targets import Target, int_dtype

_MAX_OFFSET = (1 << 31) - 1
_DECIMAL_WORDS = {128: 2, 256: 4}


def pyarrow(who: str = 'dtype_backend="pyarrow" needs') -> Any:
    """Import pyarrow, or say what it is needed for.

    Parameters
    ----------
    who : str
        What wants it, and its verb.

    Raises
    ------
    ImportError
        When pyarrow is not installed.
    """
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError(f"{who} pyarrow; install it, or numparq[arrow]") from error
    return pa


def pyarrow_type(arrow_type: ArrowType) -> Any:
    """Give pyarrow's type of an `ArrowType`.

    Raises
    ------
    UnsupportedError
        When Arrow has no such type (a decimal of more than 76 digits).
    """
    pa = pyarrow()
    storage = _PYARROW_TYPES[arrow_type.kind](pa, arrow_type)
    if arrow_type.dictionary is not None:
        index = arrow_type.dictionary
        width = np.dtype(f"{'i' if index.signed else 'u'}{index.bit_width // 8}")
        return pa.dictionary(pa.from_numpy_dtype(width), storage, index.ordered)
    if arrow_type.extension is not None:
        return extension_type(pa, storage, arrow_type)
    return storage


def extension_type(pa: Any, storage: Any, arrow_type: ArrowType) -> Any:
    """Let pyarrow look its registered extension types up.

    The storage type itself where it knows none of the name, or one that cannot make anything of the metadata.
    """
    import pandas.core.arrays.arrow.extension_types  # noqa: F401  (registers pandas.period and pandas.interval)

    keys = {
        "ARROW:extension:name": arrow_type.extension or "",
        "ARROW:extension:metadata": arrow_type.extension_metadata or "",
    }
    schema = pa.schema([pa.field("", storage, metadata=keys)])
    try:
        return pa.ipc.read_schema(pa.py_buffer(schema.serialize())).field(0).type
    except Exception:  # whatever an extension's parser raises
        return storage


def _decimal_type(pa: Any, arrow_type: ArrowType) -> Any:
    if arrow_type.precision > 76:
        raise UnsupportedError(
            f'Arrow has no decimals of {arrow_type.precision} digits; dtype_backend="numpy" gives '
            "decimal.Decimal objects"
        )
    return getattr(pa, f"decimal{arrow_type.bit_width}")(arrow_type.precision, arrow_type.scale)


_PYARROW_TYPES: dict[str, Callable[[Any, ArrowType], Any]] = {
    "null": lambda pa, arrow_type: pa.null(),
    "bool": lambda pa, arrow_type: pa.bool_(),
    "int": lambda pa, arrow_type: pa.from_numpy_dtype(int_dtype(arrow_type)),
    "float": lambda pa, arrow_type: pa.from_numpy_dtype(np.dtype(f"f{arrow_type.bit_width // 8}")),
    "decimal": _decimal_type,
    "date": lambda pa, arrow_type: pa.date32(),
    "time": lambda pa, arrow_type: (pa.time32 if arrow_type.unit == "ms" else pa.time64)(arrow_type.unit),
    "timestamp": lambda pa, arrow_type: pa.timestamp(arrow_type.unit, arrow_type.timezone or None),
    "duration": lambda pa, arrow_type: pa.duration(arrow_type.unit),
    "utf8": lambda pa, arrow_type: pa.string(),
    "large_utf8": lambda pa, arrow_type: pa.large_string(),
    "utf8_view": lambda pa, arrow_type: pa.string_view(),
    "binary": lambda pa, arrow_type: pa.binary(),
    "large_binary": lambda pa, arrow_type: pa.large_binary(),
    "binary_view": lambda pa, arrow_type: pa.binary_view(),
    "fixed_size_binary": lambda pa, arrow_type: pa.binary(arrow_type.byte_width),
    "uuid": lambda pa, arrow_type: pa.uuid(),
}


def to_arrow(target: Target, buffer: ColumnBuffer, num_rows: int) -> Any:
    """Make a pyarrow array of a decoded column.

    Parameters
    ----------
    target : Target
        How it was decoded, by ``dtype_backend="pyarrow"``.
    buffer : ColumnBuffer
        What it was decoded to; the array keeps its memory.
    num_rows : int
        Rows of the column.

    Returns
    -------
    pyarrow.ChunkedArray
        Of `pyarrow_type`.

    Raises
    ------
    ImportError
        When pyarrow is not installed.
    InvalidFileError, UnsupportedError
        When a decimal does not fit its type, or Arrow has none for it.
    """
    pa = pyarrow()
    arrow_type = pyarrow_type(target.type)
    if target.storage == "null":
        return pa.chunked_array([pa.nulls(num_rows)], type=arrow_type)
    if target.storage == "fixed":
        return pa.chunked_array([_fixed_array(target, buffer, arrow_type)], type=arrow_type)
    if target.storage == "dictionary":
        chunks = [chunk for piece in buffer.pieces for chunk in _dictionary_arrays(piece, arrow_type)]
    elif target.type.kind == "decimal":
        chunks = [_binary_decimals(piece, target.type, arrow_type) for piece in buffer.pieces]
    else:
        chunks = [chunk for piece in buffer.pieces for chunk in _binary_arrays(piece, arrow_type)]
    return pa.chunked_array(chunks, type=arrow_type)


def bitmap(validity: np.ndarray | None) -> Any:
    """Give a validity of bytes as Arrow's bitmap, least significant bit first; None for None."""
    return None if validity is None else pyarrow().py_buffer(np.packbits(validity.view(bool), bitorder="little"))


def _array(arrow_type: Any, length: int, validity: np.ndarray | None, *buffers: Any) -> Any:
    pa = pyarrow()
    wrapped = [pa.py_buffer(np.ascontiguousarray(values).view(np.uint8)) for values in buffers]
    return pa.Array.from_buffers(arrow_type, length, [bitmap(validity), *wrapped])


def _fixed_array(target: Target, buffer: ColumnBuffer, arrow_type: Any) -> Any:
    pa = pyarrow()
    values, validity = buffer.fixed, buffer.validity if buffer.null_count else None
    if target.type.kind == "decimal":
        return _fixed_decimals(values, validity, target.type, arrow_type)
    if target.type.kind == "bool":
        values = np.packbits(values.view(bool), bitorder="little")
    storage = arrow_type.storage_type if isinstance(arrow_type, pa.BaseExtensionType) else arrow_type
    array = _array(storage, len(buffer.fixed), validity, values)
    return pa.ExtensionArray.from_storage(arrow_type, array) if storage is not arrow_type else array


def large_binary_array(piece: BinaryPiece, arrow_type: Any) -> Any:
    """Give a piece as a pyarrow array of a type with 64-bit offsets, without a copy."""
    return _array(arrow_type, len(piece), piece.validity, piece.offsets, piece.data)


def _binary_arrays(piece: BinaryPiece, arrow_type: Any) -> list[Any]:
    """Give a piece as arrays of a type of strings or bytes; several where 32-bit offsets do not reach."""
    pa = pyarrow()
    storage = arrow_type.storage_type if isinstance(arrow_type, pa.BaseExtensionType) else arrow_type
    if pa.types.is_large_string(storage) or pa.types.is_large_binary(storage):
        arrays = [large_binary_array(piece, storage)]
    elif pa.types.is_string(storage) or pa.types.is_binary(storage):
        arrays = [
            _array(storage, len(part), part.validity, part.offsets.astype(np.int32), part.data)
            for part in _split(piece)
        ]
    else:
        wide = pa.large_string() if pa.types.is_string_view(storage) else pa.large_binary()
        arrays = [large_binary_array(piece, wide).cast(storage)]
    if storage is arrow_type:
        return arrays
    return [pa.ExtensionArray.from_storage(arrow_type, array) for array in arrays]


def _split(piece: BinaryPiece) -> list[BinaryPiece]:
    """Cut a piece in half until the bytes of each part can be counted in 31 bits."""
    first, last = int(piece.offsets[0]), int(piece.offsets[-1])
    if last <= _MAX_OFFSET:
        return [piece]
    if last - first <= _MAX_OFFSET or len(piece) < 2:
        return [BinaryPiece(piece.offsets - first, piece.data[first:], piece.validity)]
    middle = len(piece) // 2
    validity = piece.validity
    halves = (
        BinaryPiece(piece.offsets[: middle + 1], piece.data, None if validity is None else validity[:middle]),
        BinaryPiece(piece.offsets[middle:], piece.data, None if validity is None else validity[middle:]),
    )
    return [part for half in halves for part in _split(half)]


def _dictionary_arrays(piece: BinaryPiece | DictionaryPiece, arrow_type: Any) -> list[Any]:
    pa = pyarrow()
    if isinstance(piece, BinaryPiece):
        plain = pa.chunked_array(_binary_arrays(piece, arrow_type.value_type))
        return plain.dictionary_encode().cast(arrow_type).chunks
    dictionary = _binary_arrays(piece.dictionary, arrow_type.value_type)[0]
    present = piece.codes >= 0
    indices = pa.array(piece.codes, mask=None if present.all() else ~present)
    if len(dictionary) > np.iinfo(arrow_type.index_type.to_pandas_dtype()).max:
        raise UnsupportedError(f"a dictionary of {len(dictionary)} values is too long for {arrow_type.index_type}")
    indices = indices.cast(arrow_type.index_type)
    return [pa.DictionaryArray.from_arrays(indices, dictionary, ordered=arrow_type.ordered)]


def _fixed_decimals(values: np.ndarray, validity: np.ndarray | None, decimal: ArrowType, arrow_type: Any) -> Any:
    small = fixed_integers(values) if values.dtype.kind == "V" else values
    words = _small_words(small, decimal) if small is not None else _wide_words(values, decimal)
    return _array(arrow_type, len(values), validity, words)


def _too_large(decimal: ArrowType) -> InvalidFileError:
    return InvalidFileError(f"a value does not fit DECIMAL({decimal.precision}, {decimal.scale})")


def _small_words(values: np.ndarray, decimal: ArrowType) -> np.ndarray:
    """Sign-extend integers to the little-endian words of a decimal type."""
    if decimal.bit_width <= 64:
        words = values.astype(np.dtype(f"i{decimal.bit_width // 8}"))
        if (words != values).any():
            raise _too_large(decimal)
        return words
    words = np.empty((len(values), _DECIMAL_WORDS[decimal.bit_width]), np.int64)
    words[:, 0] = values
    words[:, 1:] = words[:, :1] >> 63
    return words


def _wide_words(values: np.ndarray, decimal: ArrowType) -> np.ndarray:
    """Turn big-endian items around, and to the width of a decimal type."""
    size, width = decimal.bit_width // 8, values.dtype.itemsize
    octets = values.view(np.uint8).reshape(len(values), width)
    sign = (octets[:, :1] >> 7) * np.uint8(255)
    out = np.empty((len(values), size), np.uint8)
    out[:] = sign
    kept = min(size, width)
    out[:, :kept] = octets[:, width - kept :][:, ::-1]
    if width > size and ((octets[:, : width - size] != sign).any() or ((out[:, -1:] ^ sign) >> 7).any()):
        raise _too_large(decimal)
    return out


def _binary_decimals(piece: BinaryPiece, decimal: ArrowType, arrow_type: Any) -> Any:
    unscaled = binary_integers(piece)
    if isinstance(unscaled, np.ndarray):
        words = _small_words(unscaled, decimal)
    else:
        size = decimal.bit_width // 8
        try:
            words = np.frombuffer(b"".join(value.to_bytes(size, "little", signed=True) for value in unscaled), np.uint8)
        except OverflowError as error:
            raise _too_large(decimal) from error
    return _array(arrow_type, len(piece), piece.validity, words)


def arrow_column(target: Target, buffer: ColumnBuffer, num_rows: int) -> Any:
    """Make a pandas column of a decoded column: an ArrowExtensionArray.

    Parameters
    ----------
    target, buffer, num_rows
        As in `to_arrow`. The target's pandas dtype, if it has one, is the dtype to convert to, where that can be.

    Returns
    -------
    pandas.arrays.ArrowExtensionArray
    """
    import pandas as pd

    pa = pyarrow()
    array = to_arrow(target, buffer, num_rows)
    if target.unit:
        with contextlib.suppress(pa.ArrowInvalid):  # raised where a value does not fit the unit
            array = array.cast(pa.timestamp(target.unit, target.type.timezone or None))
    if target.pandas_dtype is not None:
        with contextlib.suppress(pa.ArrowException, TypeError, ValueError):
            return target.pandas_dtype.__from_arrow__(array)
    return pd.arrays.ArrowExtensionArray(array)
