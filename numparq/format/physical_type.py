"""Physical types (parquet.thrift, Type): numbers and names."""

from __future__ import annotations

from numparq.kernels.enums import BOOLEAN, BYTE_ARRAY, DOUBLE, FIXED_LEN_BYTE_ARRAY, FLOAT, INT32, INT64, INT96

__all__ = ["BOOLEAN", "BYTE_ARRAY", "DOUBLE", "FIXED_LEN_BYTE_ARRAY", "FLOAT", "INT32", "INT64", "INT96"]

PHYSICAL_NAMES = ("boolean", "int32", "int64", "int96", "float", "double", "binary", "fixed_len_byte_array")
