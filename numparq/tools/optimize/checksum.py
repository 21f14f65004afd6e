"""Checksum of the rows of a dataset, independent of row order and storage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash

from numparq.dataset.splits.reader import SplitReader
from numparq.format.physical_type import INT96

from .rewrite_plan import RewritePiece
from .timestamps import check_microseconds
from .value_hash import hash_words, to_words, value_kind_name

__all__ = ["FOLDER_COLUMN", "Checksum", "checksum", "checksum_pieces", "row_hashes"]

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
        return f"{self.value:016x} of {self.rows:,} rows"


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
            check_microseconds(piece, fine, reader.filesystem)
        total += checksum(_with_folder(table, piece.folder) for table in reader.tables(piece.split))
    return total


def _with_folder(table: pa.Table, folder: str) -> pa.Table:
    codes = pa.array(np.zeros(table.num_rows, np.int8))
    return table.append_column(FOLDER_COLUMN, pa.DictionaryArray.from_arrays(codes, pa.array([folder])))
