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

FOLDER_COLUMN = "\0folder"  # the column that says, for checksums, which folder rows are in


@dataclass(frozen=True, slots=True)
class Checksum:
    """How many rows there are, and the sum of their hashes.

    Parameters
    ----------
    rows : int
        How many.
    value : int
        The sum of `row_hashes`, modulo 2**64.

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
    """Give the checksum of tables, one after the other.

    Parameters
    ----------
    tables : iterable of pyarrow.Table or pyarrow.RecordBatch
        Of the same columns, in any order.

    Returns
    -------
    Checksum

    Raises
    ------
    UnsupportedError
        When a column is of a type that Parquet does not have, such as a union.
    """
    total = Checksum()
    for table in tables:
        hashes = row_hashes(table)
        total += Checksum(len(hashes), int(hashes.sum(dtype=np.uint64)))
    return total


def row_hashes(table: Any) -> np.ndarray:
    """Give a hash of each row.

    Parameters
    ----------
    table : pyarrow.Table or pyarrow.RecordBatch
        In which names of columns are different.

    Returns
    -------
    uint64 array
        One item a row.
    """
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
    """Give the checksum of rows, of all their values and the folders that they are in.

    Parameters
    ----------
    reader : SplitReader
        Of the table.
    pieces : sequence of RewritePiece
        The rows.

    Raises
    ------
    UnsupportedError
        When there are INT96 timestamps with nanoseconds, which tables do not have.
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
