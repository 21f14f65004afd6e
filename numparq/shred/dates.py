"""datetime.date objects to days since 1970: by a kernel where CPython lays objects out as it expects it."""

from __future__ import annotations

import ctypes
import datetime
from functools import lru_cache

import numpy as np

from ..errors import BAD_VALUE, check
from ..kernels import text_kernels
from ..leaves import LeafValues
from .text import constants

_SAMPLE = datetime.date(0x0102, 3, 4)


@lru_cache(maxsize=1)
def date_fields() -> int | None:
    """Find out where the year, month and day of a date stand in it; None where that is not to be seen."""
    size = type(_SAMPLE).__basicsize__
    found = ctypes.string_at(id(_SAMPLE), size).find(bytes((1, 2, 3, 4)), object.__basicsize__)
    return found if found >= 0 and ctypes.c_ssize_t.from_address(id(_SAMPLE) + 8).value == id(datetime.date) else None


def days_of_dates(values: np.ndarray) -> LeafValues | None:
    """Give the days since 1970 of dates.

    Parameters
    ----------
    values : object
        The dates; None, NaN, NaT and NA are nulls.

    Returns
    -------
    LeafValues or None
        None where there is something else among them, or a kernel cannot be trusted to see what they are.
    """
    fields = date_fields()
    if fields is None:
        return None
    objects, count = np.ascontiguousarray(values), len(values)
    days, validity = np.empty(count, np.int32), np.empty(count, np.uint8)
    present = text_kernels.read_dates(objects, count, constants(), id(datetime.date), fields, days, validity)
    if present == BAD_VALUE:
        return None
    return LeafValues(days, validity=None if check(present) == count else validity)
