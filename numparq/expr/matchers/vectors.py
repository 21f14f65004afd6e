"""Vectors of evaluation: decoded values as input, a row mask as output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from numparq.kernels import predicate_kernels

# How a test is joined with what the mask holds: `opens` and `keeps` of the kernels.
STORE, AND, OR = (1, 0), (0, 0), (1, 1)
_NOTHING = np.zeros(1, np.uint8)


@dataclass(frozen=True, slots=True)
class RowMask:
    """Where the answers of a test go.

    Parameters
    ----------
    out : uint8 array
        An item a row: 0 or 1, but where it is to be stored, anything.
    mode : (int, int)
        STORE, AND or OR.
    validity : uint8 or bool array or None
        Rows where it is 0 do not satisfy the test.
    """

    out: np.ndarray
    mode: tuple[int, int] = STORE
    validity: np.ndarray | None = None

    @property
    def kernel_arguments(self) -> tuple[Any, ...]:
        """The last arguments of every kernel that joins a test."""
        valid = _NOTHING if self.validity is None else self.validity
        return valid, int(self.validity is not None), *self.mode, len(self.out), self.out

    def slice(self, start: int, stop: int) -> RowMask:
        """Give the part for some of the rows."""
        validity = None if self.validity is None else self.validity[start:stop]
        return replace(self, out=self.out[start:stop], validity=validity)

    def combine(self, mask: np.ndarray | None, negated: bool = False) -> None:
        """Join what another mask says, of which everything but 0 is true; None is true everywhere."""
        if mask is None:
            self.combine_constant(not negated)
        else:
            predicate_kernels.match_mask(as_mask(mask), int(negated), *self.kernel_arguments)

    def combine_constant(self, answer: bool) -> None:
        """Join the same answer for all rows; nulls do not satisfy it."""
        if answer and self.validity is not None:
            replace(self, validity=None).combine(self.validity)
        elif self.mode == STORE or answer == (self.mode == OR):
            self.out[:] = answer


def as_mask(mask: Any) -> np.ndarray:
    """Give a mask as bytes, as the kernels take them."""
    mask = np.asarray(mask)
    return np.ascontiguousarray(mask if mask.dtype.itemsize == 1 else mask != 0)


@dataclass(slots=True)
class ColumnVector:
    """A decoded leaf, for `evaluate`.

    Parameters
    ----------
    values : numpy.ndarray
        Of a fixed size: an item a value, in the stored form or narrowed; FIXED_LEN_BYTE_ARRAY as ``V{n}``, or as uint8,
        n of them a value; INT96 as ``M8[ns]`` or ``M8[us]``. Of BYTE_ARRAY: the uint8 bytes that `offsets` tells of.
    offsets : int array or None
        Of BYTE_ARRAY: one more than there are values.
    validity : uint8 or bool array or None
        Where there is a value, an item a value; None: everywhere. What `values` holds at nulls does not count.
    levels : mapping of int to array
        Of what is around the leaf: by definition level, where it is there, an item a row; a level left out or None:
        everywhere.
    list_offsets : int array or None
        Of a leaf in lists: where in the values the list of each row begins, and where the last one ends.
    codes : int32 array or None
        Where it is not None, `values` and `offsets` are entries of a dictionary, and `codes` has an item a value: the
        number of its entry, -1 for a null. Entries are tested once, whatever the number of values.
    """

    values: np.ndarray
    offsets: np.ndarray | None = None
    validity: np.ndarray | None = None
    levels: Mapping[int, np.ndarray | None] = field(default_factory=dict)
    list_offsets: np.ndarray | None = None
    codes: np.ndarray | None = None
