"""Vectors of evaluation: decoded values as input, a row mask as output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from numparq.column.buffers import join_runs
from numparq.kernels.kernel_groups import predicate_kernels

# How an answer is combined with what the mask holds: `opens` and `keeps` of the kernels.
STORE, AND, OR = (1, 0), (0, 0), (1, 1)
_NOTHING = np.zeros(1, np.uint8)


@dataclass(frozen=True, slots=True)
class RowMask:
    """Rows that match a predicate, combined with those that the mask holds before.

    Parameters
    ----------
    out : uint8 array
        One item a row: 0 or 1; anything before a STORE.
    mode : (int, int)
        STORE, AND or OR.
    validity : uint8 or bool array or None
        Rows where it is 0 do not match.
    """

    out: np.ndarray
    mode: tuple[int, int] = STORE
    validity: np.ndarray | None = None

    @property
    def kernel_arguments(self) -> tuple[Any, ...]:
        """The last arguments of every predicate kernel."""
        valid = _NOTHING if self.validity is None else self.validity
        return valid, int(self.validity is not None), *self.mode, len(self.out), self.out

    def slice(self, start: int, stop: int) -> RowMask:
        """Return the mask of some of the rows, a view."""
        validity = None if self.validity is None else self.validity[start:stop]
        return replace(self, out=self.out[start:stop], validity=validity)

    def combine(self, mask: np.ndarray | None, negated: bool = False) -> None:
        """Combine another mask, in which everything but 0 is true; None is true everywhere."""
        if mask is None:
            self.combine_constant(not negated)
        else:
            predicate_kernels.match_mask(as_mask(mask), int(negated), *self.kernel_arguments)

    def combine_constant(self, answer: bool) -> None:
        """Combine the same answer for all rows; nulls do not match."""
        if answer and self.validity is not None:
            replace(self, validity=None).combine(self.validity)
        elif self.mode == STORE or answer == (self.mode == OR):
            self.out[:] = answer


def as_mask(mask: Any) -> np.ndarray:
    """Return a mask as bytes, as the kernels take them."""
    mask = np.asarray(mask)
    return np.ascontiguousarray(mask if mask.dtype.itemsize == 1 else mask != 0)


@dataclass(slots=True)
class ColumnVector:
    """A decoded leaf column, as `evaluate` takes it.

    Parameters
    ----------
    values : numpy.ndarray
        Fixed-width types: one item a value, as stored or narrowed; FIXED_LEN_BYTE_ARRAY as ``V{n}``, or as uint8 with n
        items a value; INT96 as ``M8[ns]`` or ``M8[us]``. BYTE_ARRAY: uint8, the bytes that `offsets` divides.
    offsets : int array or None
        BYTE_ARRAY: one more than values.
    are_prefixed : bool
        Whether `offsets` (int64) are the starts of strings in PLAIN pages instead, an item a value: the length of each
        lies in the four bytes before it.
    runs : int64 array or None
        Values of a fixed width in PLAIN pages, bytes in `values`: by turns where the values of a page begin, and how
        many they are.
    stored : dtype or None
        That of values in `runs`.
    validity : uint8 or bool array or None
        One item a value, 0 for a null; None without nulls. `values` holds anything at nulls.
    levels : mapping of int to array
        By definition level of an enclosing node, one item a row, 0 where that is null; missing or None without nulls.
    list_offsets : int array or None
        A leaf in lists: first value of each row's list, and the end of the last one.
    codes : int32 array or None
        One item a value: its entry in the dictionary that `values` and `offsets` then hold, -1 for a null. Entries are
        evaluated once each.
    """

    values: np.ndarray
    offsets: np.ndarray | None = None
    validity: np.ndarray | None = None
    levels: Mapping[int, np.ndarray | None] = field(default_factory=dict)
    list_offsets: np.ndarray | None = None
    codes: np.ndarray | None = None
    are_prefixed: bool = False
    runs: np.ndarray | None = None
    stored: np.dtype[Any] | None = None

    def join_runs(self) -> ColumnVector:
        """Return the column with its values in one array, uncopied if there is one run."""
        if self.runs is None:
            return self
        assert self.stored is not None
        return replace(self, values=join_runs(self.values, self.runs, self.stored), runs=None, stored=None)

    def string_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return where each string begins and ends, int64; nulls are empty."""
        assert self.offsets is not None
        offsets = self.offsets.astype(np.int64, copy=False)
        if not self.are_prefixed:
            return offsets[:-1], offsets[1:]
        prefixes = self.values[offsets[:, None] + np.arange(-4, 0)]
        return offsets, offsets + np.ascontiguousarray(prefixes).view("<u4").reshape(-1)
