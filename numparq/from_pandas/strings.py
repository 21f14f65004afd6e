"""Strings and bytes to UTF-8 data and offsets, by kernels over Python objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from numparq.column.leaf_values import LeafValues
from numparq.errors import SchemaError
from numparq.format.arrow_type import ArrowType
from numparq.kernels.kernel_groups import text_kernels
from numparq.kernels.status import BAD_UTF8, BAD_VALUE, check_status

from .column_values import ColumnValues, validity_bytes
from .object_layout import kernel_constants, object_layout

EncodedStrings = tuple[np.ndarray, np.ndarray, np.ndarray]


def encode_strings(values: np.ndarray, first_row: int = 0) -> EncodedStrings:
    """Encode str objects as UTF-8: data (uint8), offsets (int64, one more than values), validity (uint8, 0 at nulls).

    Raises SchemaError naming the row (the first is `first_row`) for a lone surrogate or another type.
    """
    layout = object_layout()
    if layout is None:
        return _encode_slowly(values, first_row, _utf8)
    objects, known = np.ascontiguousarray(values), kernel_constants()
    offsets, validity = np.empty(len(values) + 1, np.int64), np.empty(len(values), np.uint8)
    size = text_kernels.measure_str_objects(objects, len(objects), known, layout, offsets, validity)
    if size in (BAD_UTF8, BAD_VALUE):  # an invalid value to name, or a subclass of str
        return _encode_slowly(values, first_row, _utf8)
    data = np.empty(check_status(size), np.uint8)
    check_status(
        text_kernels.copy_str_objects(objects, len(objects), known, layout, offsets, validity, data), SchemaError
    )
    return data, offsets, validity


def encode_bytes(values: np.ndarray, first_row: int = 0) -> EncodedStrings:
    """Concatenate bytes-like objects; parameters, result and errors are those of `encode_strings`."""
    layout = object_layout()
    if layout is None:
        return _encode_slowly(values, first_row, _bytes)
    objects, known = np.ascontiguousarray(values), kernel_constants()
    offsets, validity = np.empty(len(values) + 1, np.int64), np.empty(len(values), np.uint8)
    size = text_kernels.measure_bytes_objects(objects, len(objects), known, offsets, validity)
    if size == BAD_VALUE:
        return _encode_slowly(values, first_row, _bytes)
    data = np.empty(check_status(size), np.uint8)
    check_status(
        text_kernels.copy_bytes_objects(objects, len(objects), known, layout, offsets, validity, data), SchemaError
    )
    return data, offsets, validity


def _utf8(value: Any) -> bytes:
    if not isinstance(value, str):
        raise SchemaError(f"a value must be a string, not {type(value).__name__}")
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise SchemaError(f"the string {value[:40]!r} cannot be encoded as UTF-8: {error.reason}") from None


def _bytes(value: Any) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise SchemaError(f"a value must be bytes, not {type(value).__name__}")
    return bytes(value)


def _encode_slowly(values: np.ndarray, first_row: int, encode: Callable[[Any], bytes]) -> EncodedStrings:
    present = ~pd.isna(values)
    parts = []
    for row, (value, there) in enumerate(zip(values.tolist(), present.tolist(), strict=True), first_row):
        try:
            parts.append(encode(value) if there else b"")
        except SchemaError as error:
            raise SchemaError(f"row {row}: {error.message}") from None
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=offsets[1:])
    return np.frombuffer(b"".join(parts), np.uint8), offsets, present.view(np.uint8)


def string_objects(values: np.ndarray) -> ColumnValues:
    """Return the values of str objects, with None, NaN, NaT and NA as nulls."""

    def leaves(start: int, stop: int) -> list[LeafValues]:
        data, offsets, validity = encode_strings(values[start:stop], start)
        return [LeafValues(data, offsets[:-1], offsets[1:], validity_bytes(validity.view(bool)))]

    return ColumnValues(ArrowType("utf8"), leaves)


def bytes_objects(values: np.ndarray) -> ColumnValues:
    """Return the values of bytes objects, with None, NaN, NaT and NA as nulls."""

    def leaves(start: int, stop: int) -> list[LeafValues]:
        data, offsets, validity = encode_bytes(values[start:stop], start)
        return [LeafValues(data, offsets[:-1], offsets[1:], validity_bytes(validity.view(bool)))]

    return ColumnValues(ArrowType("binary"), leaves)


def string_array_values(array: Any) -> ColumnValues:
    """Return the values of a pandas string array, backed by Arrow or by Python objects."""
    if array.dtype.storage == "pyarrow":
        from .arrow import arrow_values

        return arrow_values(array.__arrow_array__())
    return string_objects(np.asarray(array, object))
