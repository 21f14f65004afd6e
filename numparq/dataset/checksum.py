"""A checksum of tables that does not depend on the order of their rows, nor on how files hold them.

Two sets of rows have the same sum when they have the same rows as often, whatever files, row groups, pages, encodings,
codecs or batches they come in. Each row has a hash of its values and the names of their columns, and the sum is that of
the hashes, modulo 2**64, beside the number of rows. What a value is depends on the kind of its type (integers, floats,
decimals of a scale, times, ...), but neither on its width or unit nor on whether it is dictionary-encoded. All NaNs are
one value; 0.0 and -0.0 are two; a null differs from an empty list or text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import xxhash

from .row_words import as_words, kind_of, mixed

__all__ = ["Checksum", "checksum", "row_hashes"]

_MODULUS = 1 << 64


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
        seed = _seed(name, kind_of(column.type))
        start = 0
        for chunk in getattr(column, "chunks", [column]):
            words, is_null = as_words(chunk)
            hashes = mixed(words ^ np.uint64(seed))
            if is_null is not None:
                hashes[is_null] = _seed(name, "null")
            total[start : start + len(chunk)] += hashes
            start += len(chunk)
    return mixed(total)


def _seed(name: str, kind: str) -> int:
    return xxhash.xxh64_intdigest(f"{kind}\0{name}".encode("utf-8", "surrogatepass"))
