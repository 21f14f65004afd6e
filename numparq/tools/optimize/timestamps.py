"""Refuse timestamps that a rewrite would change: INT96 nanoseconds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from numparq.errors import UnsupportedError
from numparq.file.reader import ParquetFile
from numparq.format.footer.file_metadata import Footer
from numparq.format.physical_type import FIXED_LEN_BYTE_ARRAY, INT96
from numparq.format.thrift.encode import encode_struct
from numparq.tools.verify.thrift import read_struct

from .rewrite_plan import RewritePiece

__all__ = ["check_microseconds"]

_INT96_BYTES = 12
_INT96 = np.dtype([("nanoseconds", "<i8"), ("day", "<i4")])


def check_microseconds(piece: RewritePiece, columns: Sequence[str], filesystem: Any) -> None:
    """Raise UnsupportedError if INT96 timestamps have nanoseconds: tables store microseconds and would truncate them.

    The error names file, row group and column.
    """
    for part in piece.split.parts:
        groups = sorted({group.row_group for group in part.groups or ()})
        with ParquetFile(part.file.path, filesystem=filesystem) as file:
            for group, name, values in _column_values(_with_int96_as_bytes(file), columns, groups):
                if any(map(_has_nanoseconds, _flatten(values))):
                    raise UnsupportedError(
                        "INT96 timestamps with nanoseconds would be truncated to microseconds; store them as "
                        "TIMESTAMP(NANOS) first",
                        file=part.file.name,
                        row_group=group,
                        column=name,
                    )


def _column_values(file: ParquetFile, columns: Sequence[str], groups: Sequence[int]) -> Iterator[tuple[int, str, Any]]:
    """Yield (row group, column, Arrow values) for the named columns that the file has; no `groups`: all row groups."""
    wanted = [name for name in columns if name in file.schema.columns]
    for group in (groups or range(file.num_row_groups)) if wanted else ():
        frame = file.read(wanted, dtype_backend="pyarrow", row_groups=[group], threads=1)
        for name in wanted:
            yield group, name, pa.chunked_array(pa.array(frame[name]))


def _flatten(values: Any) -> Iterator[Any]:
    """Yield the non-null leaf arrays of an array of any depth."""
    if isinstance(values, pa.ChunkedArray):
        parts = values.chunks
    elif pa.types.is_struct(values.type):
        parts = values.flatten()
    elif pa.types.is_map(values.type):
        parts = [values.keys, values.items]
    elif pa.types.is_nested(values.type):
        parts = [values.flatten()]
    else:
        yield values.drop_null()
        return
    for part in parts:
        yield from _flatten(part)


def _has_nanoseconds(values: Any) -> bool:
    """Whether any INT96 value, given as 12 bytes, has sub-microsecond precision."""
    if values.type != pa.binary(_INT96_BYTES) or not len(values):
        return False
    stored = np.frombuffer(values.buffers()[1], _INT96, len(values), values.offset * _INT96_BYTES)
    return bool((stored["nanoseconds"] % 1000).any())


# --- INT96 as bytes ---------------------------------------------------------------------------------------------------


def _with_int96_as_bytes(file: ParquetFile) -> ParquetFile:
    """Return a copy of the open file whose footer declares INT96 columns as 12-byte arrays, which are stored alike."""
    stored = file.footer.data[: file.footer.length].tobytes()
    content, _ = read_struct("FileMetaData", stored, lambda check, message: None)
    for element in content["schema"]:
        if element.get("type") == INT96:
            element.update(type=FIXED_LEN_BYTE_ARRAY, type_length=_INT96_BYTES)
    for group in content["row_groups"]:
        for chunk in group["columns"]:
            if chunk["meta_data"]["type"] == INT96:
                chunk["meta_data"] = _without_statistics(chunk["meta_data"])
    content.pop("key_value_metadata", None)
    footer = np.frombuffer(encode_struct("FileMetaData", content), np.uint8)
    made = file.alias()
    for derived in ("schema", "metadata", "arrow_schema", "pandas_metadata", "entry"):
        made.__dict__.pop(derived, None)
    made.footer, made.bloom_filters = Footer(footer, len(footer)), {}
    return made


def _without_statistics(chunk: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in chunk.items() if key != "statistics"} | {"type": FIXED_LEN_BYTE_ARRAY}
