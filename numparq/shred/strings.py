"""Columns of str and bytes objects."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrow_schema import ArrowType
from ..leaves import LeafValues
from .source import Source, validity_of
from .text import encode_bytes, encode_strings


def string_objects(values: np.ndarray) -> Source:
    """Give the source of an array of str objects, with None, NaN or pandas' NA for nulls."""

    def leaves(start: int, stop: int) -> list[LeafValues]:
        data, offsets, validity = encode_strings(values[start:stop], start)
        return [LeafValues(data, offsets[:-1], offsets[1:], validity_of(validity.view(bool)))]

    return Source(ArrowType("utf8"), leaves)


def bytes_objects(values: np.ndarray) -> Source:
    """Give the source of an array of bytes objects, with None, NaN or pandas' NA for nulls."""

    def leaves(start: int, stop: int) -> list[LeafValues]:
        data, offsets, validity = encode_bytes(values[start:stop], start)
        return [LeafValues(data, offsets[:-1], offsets[1:], validity_of(validity.view(bool)))]

    return Source(ArrowType("binary"), leaves)


def string_array(array: Any) -> Source:
    """Give the source of a column of pandas' string dtypes, made of Arrow's buffers or of Python objects."""
    if array.dtype.storage == "pyarrow":
        from .arrow_columns import arrow_source

        return arrow_source(array.__arrow_array__())
    return string_objects(np.asarray(array, object))
