"""Kernels that take str and bytes objects to bytes and offsets, without a loop in Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import SchemaError


def encode_strings(values: np.ndarray, first_row: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return _encoded(values, first_row, str, str.encode)


def encode_bytes(values: np.ndarray, first_row: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return _encoded(values, first_row, (bytes, bytearray, memoryview), bytes)


def _encoded(values: np.ndarray, first_row: int, kinds: Any, encode: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    validity = np.ones(len(values), np.uint8)
    parts = []
    for row, value in enumerate(values.tolist()):
        try:
            if isinstance(value, kinds):
                parts.append(encode(value))
                continue
        except UnicodeEncodeError as error:
            raise SchemaError(f"row {first_row + row}: a string is no Unicode text: {error.reason}") from None
        if not (value is None or value != value):
            raise SchemaError(f"row {first_row + row}: not a string but of type {type(value).__name__}")
        validity[row] = 0
        parts.append(b"")
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=offsets[1:])
    return np.frombuffer(b"".join(parts), np.uint8), offsets, validity
