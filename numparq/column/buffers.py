"""Decoded columns: fixed-size values, byte strings by offsets, dictionary codes, validity."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(slots=True)
class BinaryArray:
    """Byte strings of variable length, as offsets into one stretch of bytes.

    Parameters
    ----------
    offsets : numpy.ndarray
        int64, one more than there are values: value ``i`` is ``data[offsets[i]:offsets[i + 1]]``. Never decreasing.
    data : numpy.ndarray
        uint8, at least ``offsets[-1]`` long.
    validity : numpy.ndarray or None
        uint8, 1 where there is a value and 0 where there is a null; None where there are no nulls. A null's two
        offsets are equal.
    """

    offsets: np.ndarray
    data: np.ndarray
    validity: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def null_count(self) -> int:
        """How many of the values are nulls."""
        return 0 if self.validity is None else len(self) - int(np.count_nonzero(self.validity[: len(self)]))


@dataclass(slots=True)
class DictionaryArray:
    """Values as codes into a dictionary.

    Parameters
    ----------
    codes : numpy.ndarray
        int32; -1 is a null, and every other code is less than the dictionary's length.
    dictionary : BinaryArray
        The distinct values, without nulls. A writer may leave values in it that no code names, and may even
        repeat one.
    """

    codes: np.ndarray
    dictionary: BinaryArray

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(slots=True)
class DecodedColumn:
    """One flat column, decoded as a `numparq.types.output_type.OutputType` says.

    Parameters
    ----------
    values : numpy.ndarray or None
        For fixed storage, the values: one dimension, one item a row, of the target's dtype.
    validity : numpy.ndarray or None
        For fixed storage with ``nulls="mask"``: uint8, 1 where there is a value. None where no null was met.
    null_count : int
        How many nulls the rows hold, counted while decoding.
    pieces : list of BinaryArray or DictionaryArray
        For the other storages: the rows, in order, in one piece or several.
    """

    values: np.ndarray | None = None
    validity: np.ndarray | None = None
    null_count: int = 0
    pieces: list[Any] = field(default_factory=list)

    @property
    def fixed(self) -> np.ndarray:
        """`values`, where the storage is known to be fixed."""
        assert self.values is not None
        return self.values


def binary_from_fixed_size(values: np.ndarray, width: int, validity: np.ndarray | None = None) -> BinaryArray:
    """Give values of a fixed size, as bytes one behind the other, as a piece."""
    return BinaryArray(np.arange(len(values) // width + 1, dtype=np.int64) * width, values, validity)
