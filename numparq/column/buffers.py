"""Decoded columns: fixed-size values, byte strings by offsets, dictionary codes, validity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np

from numparq.kernels.tables import SLACK


@dataclass(slots=True)
class BinaryArray:
    """Byte strings of variable length, as offsets into one buffer.

    Attributes
    ----------
    offsets : numpy.ndarray
        int64, one more than values, never decreasing: value ``i`` is ``data[offsets[i]:offsets[i + 1]]``.
    data : numpy.ndarray
        uint8, at least ``offsets[-1]`` long.
    validity : numpy.ndarray or None
        uint8, 0 for a null; None if there are no nulls. The two offsets of a null are equal.
    """

    offsets: np.ndarray
    data: np.ndarray
    validity: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def num_bytes(self) -> int:
        """Bytes that were written to."""
        marks = 0 if self.validity is None else self.validity.nbytes
        return self.offsets.nbytes + int(self.offsets[-1] - self.offsets[0]) + marks


@dataclass(slots=True)
class DictionaryArray:
    """Values as codes into a dictionary.

    Attributes
    ----------
    codes : numpy.ndarray
        int32; -1 is a null, every other code is less than the dictionary's length.
    dictionary : BinaryArray
        No nulls. Entries may be unused, and some writers repeat entries.
    """

    codes: np.ndarray
    dictionary: BinaryArray

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def num_bytes(self) -> int:
        """Bytes of the codes and the dictionary."""
        return self.codes.nbytes + self.dictionary.num_bytes


@dataclass(slots=True)
class DecodedColumn:
    """One flat column, decoded to its output type.

    Attributes
    ----------
    values : numpy.ndarray or None
        Fixed storage: one-dimensional, one item a row, of the output type's dtype.
    validity : numpy.ndarray or None
        Fixed storage with ``nulls="mask"``: uint8, 0 for a null; None if no null was found.
    null_count : int
        Nulls in the rows, counted while decoding.
    arrays : list of BinaryArray or DictionaryArray
        Other storages: the rows in order, in one array or several.
    """

    values: np.ndarray | None = None
    validity: np.ndarray | None = None
    null_count: int = 0
    arrays: list[Any] = field(default_factory=list)

    @property
    def fixed_values(self) -> np.ndarray:
        """`values` of a column with fixed storage, never None."""
        assert self.values is not None
        return self.values


def binary_from_fixed_size(values: np.ndarray, width: int, validity: np.ndarray | None = None) -> BinaryArray:
    """Return contiguous fixed-size values (uint8, `width` bytes each) as a BinaryArray over the same buffer."""
    return BinaryArray(np.arange(len(values) // width + 1, dtype=np.int64) * width, values, validity)


def concat_binary(pieces: Sequence[BinaryArray]) -> BinaryArray:
    """Concatenate binary arrays; a single one is returned as it is."""
    if len(pieces) == 1:
        return pieces[0]
    firsts = [int(piece.offsets[0]) for piece in pieces]
    starts = [0, *accumulate(int(piece.offsets[-1]) - first for piece, first in zip(pieces, firsts, strict=True))]
    data = np.empty(starts[-1] + SLACK, np.uint8)
    offsets = [np.zeros(1, np.int64)]
    for piece, first, start, stop in zip(pieces, firsts, starts, starts[1:], strict=False):
        data[start:stop] = piece.data[first : first + stop - start]
        offsets.append(piece.offsets[1:] + (start - first))
    validity = None
    if any(piece.validity is not None for piece in pieces):
        parts = [
            np.ones(len(piece), np.uint8) if piece.validity is None else piece.validity[: len(piece)]
            for piece in pieces
        ]
        validity = np.concatenate(parts)
    return BinaryArray(np.concatenate(offsets), data, validity)


def join_runs(data: np.ndarray, runs: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """Return values that lie in runs in one array, uncopied if there is one run.

    `data` is uint8; `runs` has by turns where a run begins and how many values it has.
    """
    edges = runs.reshape(-1, 2).tolist()
    pieces = [data[start : start + count * dtype.itemsize] for start, count in edges]
    return (pieces[0] if len(pieces) == 1 else np.concatenate(pieces)).view(dtype)
