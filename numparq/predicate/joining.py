"""Masks that tests are joined with: stored into one, or taken from it or added to it, by the kernels at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..kernels import predicate_kernels

# How a test is joined with what the mask holds: `opens` and `keeps` of the kernels.
STORE, AND, OR = (1, 0), (0, 0), (1, 1)
_NOTHING = np.zeros(1, np.uint8)


@dataclass(frozen=True, slots=True)
class Mask:
    """Where the answers of a test go.

    Parameters
    ----------
    out : uint8 array
        An item a row: 0 or 1, but where it is to be stored, anything.
    how : (int, int)
        STORE, AND or OR.
    validity : uint8 or bool array or None
        Rows where it is 0 do not satisfy the test.
    """

    out: np.ndarray
    how: tuple[int, int] = STORE
    validity: np.ndarray | None = None

    @property
    def tail(self) -> tuple[Any, ...]:
        """The last arguments of every kernel that joins a test."""
        valid = _NOTHING if self.validity is None else self.validity
        return valid, int(self.validity is not None), *self.how, len(self.out), self.out

    def part(self, start: int, stop: int) -> Mask:
        """Give the part for some of the rows."""
        validity = None if self.validity is None else self.validity[start:stop]
        return replace(self, out=self.out[start:stop], validity=validity)

    def where(self, mask: np.ndarray | None, negated: bool = False) -> None:
        """Join what another mask says, of which everything but 0 is true; None is true everywhere."""
        if mask is None:
            self.constant(not negated)
        else:
            predicate_kernels.join_masks(as_mask(mask), int(negated), *self.tail)

    def constant(self, answer: bool) -> None:
        """Join the same answer for all rows; nulls do not satisfy it."""
        if answer and self.validity is not None:
            replace(self, validity=None).where(self.validity)
        elif self.how == STORE or answer == (self.how == OR):
            self.out[:] = answer


def as_mask(mask: Any) -> np.ndarray:
    """Give a mask as bytes, as the kernels take them."""
    mask = np.asarray(mask)
    return np.ascontiguousarray(mask if mask.dtype.itemsize == 1 else mask != 0)
