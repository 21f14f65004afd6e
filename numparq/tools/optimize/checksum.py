"""Checksum of the rows of a dataset, independent of row order and storage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash

from numparq.dataset.splits.reader import SplitReader
from numparq.errors import UnsupportedError
from numparq.file.readable_file import ReadableFile
from numparq.format.footer.file_metadata import Footer
from numparq.format.physical_type import FIXED_LEN_BYTE_ARRAY, INT96
from numparq.format.thrift.encode import encode_struct
from numparq.tools.verify.thrift import read_struct
from numparq.util.pluralize import pluralize

from .rewrite_plan import RewritePiece
from .value_hash import hash_words, to_words, value_kind_name

_INT96_BYTES = 12
_INT96 = np.dtype([("nanoseconds", "<i8"), ("day", "<i4")])

_MODULUS = 1 << 64

FOLDER_COLUMN = "\0folder"  # column with the folder of each row, in checksums


@dataclass(frozen=True, slots=True)
class Checksum:
    """Number of rows and sum of their hashes, modulo 2**64; checksums add up in any order.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"a": [1, 2, None], "b": ["x", "y", "z"]})
    >>> checksum([table]) == checksum([table.slice(2), table.slice(0, 2)])
    True
    """

    rows: int = 0
    value: int = 0

    def __add__(self, other: Checksum) -> Checksum:
        return Checksum(self.rows + other.rows, (self.value + other.value) % _MODULUS)

    def __str__(self) -> str:
        return f"{self.value:016x} of {pluralize(self.rows, 'row')}"


def checksum(tables: Iterable[Any]) -> Checksum:
    """Return the checksum of Arrow tables or record batches with the same columns, in any column order.

    Raise UnsupportedError for an Arrow type that Parquet lacks, such as a union.
    """
    total = Checksum()
    for table in tables:
        hashes = row_hashes(table)
        total += Checksum(len(hashes), int(hashes.sum(dtype=np.uint64)))
    return total


def row_hashes(table: Any) -> np.ndarray:
    """Return one uint64 hash for each row of an Arrow table or record batch; column names must be unique."""
    total = np.zeros(table.num_rows, np.uint64)
    for name in table.schema.names:
        column = table.column(name)
        seed = _column_seed(name, value_kind_name(column.type))
        start = 0
        for chunk in getattr(column, "chunks", [column]):
            words, is_null = to_words(chunk)
            hashes = hash_words(words ^ np.uint64(seed))
            if is_null is not None:
                hashes[is_null] = _column_seed(name, "null")
            total[start : start + len(chunk)] += hashes
            start += len(chunk)
    return hash_words(total)


def _column_seed(name: str, kind: str) -> int:
    return xxhash.xxh64_intdigest(f"{kind}\0{name}".encode("utf-8", "surrogatepass"))


def checksum_pieces(reader: SplitReader, pieces: Sequence[RewritePiece]) -> Checksum:
    """Return the checksum of the rows of pieces, including the folder of each row.

    Raise UnsupportedError for INT96 timestamps with nanoseconds: the tables that are hashed have microseconds.
    """
    total = Checksum()
    fine = sorted({leaf.path[0] for leaf in reader.schema if leaf.physical == INT96})
    for piece in pieces:
        if fine:
            check_microseconds(piece, fine, reader)
        total += checksum(_with_folder(table, piece.folder) for table in reader.tables(piece.split))
    return total


def _with_folder(table: pa.Table, folder: str) -> pa.Table:
    codes = pa.array(np.zeros(table.num_rows, np.int8))
    return table.append_column(FOLDER_COLUMN, pa.DictionaryArray.from_arrays(codes, pa.array([folder])))


def check_microseconds(piece: RewritePiece, columns: Sequence[str], reader: SplitReader) -> None:
    """Raise UnsupportedError if INT96 timestamps have nanoseconds: tables store microseconds and would truncate them.

    The error names file, row group and column.
    """
    for part in piece.split.parts:
        groups = sorted({group.row_group for group in part.groups or ()})
        keys = reader.dataset_keys
        own = None if keys is None else keys.of(part.file.committed_path(keys.is_local))
        with ReadableFile(part.file.path, filesystem=reader.filesystem, decryption=own) as file:
            for group, name, values in _column_values(_with_int96_as_bytes(file), columns, groups):
                if any(map(_has_nanoseconds, _flatten(values))):
                    raise UnsupportedError(
                        "INT96 timestamps with nanoseconds would be truncated to microseconds; store them as "
                        "TIMESTAMP(NANOS) first",
                        file=part.file.name,
                        row_group=group,
                        column=name,
                    )


def _column_values(file: ReadableFile, columns: Sequence[str], groups: Sequence[int]) -> Iterator[tuple[int, str, Any]]:
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


def _with_int96_as_bytes(file: ReadableFile) -> ReadableFile:
    """Return a copy of the open file whose footer declares INT96 columns as 12-byte arrays, which are stored alike."""
    file.footer.chunks.open_all()
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
    made.footer.keys = file.footer.keys
    return made


def _without_statistics(chunk: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in chunk.items() if key != "statistics"} | {"type": FIXED_LEN_BYTE_ARRAY}
