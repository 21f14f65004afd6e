"""Moments and durations in another unit, where all of them fit it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import SchemaError

__all__ = ["in_unit", "int_in_unit"]

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_SECONDS_OF_DAY = 86_400
_NAT = np.iinfo(np.int64).min


def in_unit(values: np.ndarray, unit: str) -> np.ndarray:
    """Give moments or durations in another unit.

    Parameters
    ----------
    values : datetime64 or timedelta64
        Of days, or any unit from seconds to nanoseconds.
    unit : str
        ``s``, ``ms``, ``us`` or ``ns``.

    Raises
    ------
    SchemaError
        When one of them is beyond what the unit can count, or lies between two of it.
    """
    known = np.datetime_data(values.dtype)[0]
    if known == unit:
        return values
    made = _scaled(values.view(np.int64), known, unit)
    return made.view(np.dtype(f"{values.dtype.kind}8[{unit}]"))


def _scaled(numbers: np.ndarray, known: str, unit: str) -> np.ndarray:
    there = numbers != _NAT
    up, down = _ratio(known, unit)
    if down > 1:
        made, rest = np.divmod(numbers, down)
        if (rest[there] != 0).any():
            raise SchemaError(f"a value in {known} lies between two that {unit} can tell")
    else:
        present = numbers[there]
        most = np.iinfo(np.int64).max // up
        if len(present) and (int(present.max()) > most or int(present.min()) < -most):
            raise SchemaError(f"a value in {known} is beyond what 64 bits hold in {unit}")
        made = np.where(there, numbers, 0) * up
    made[~there] = _NAT
    return made


def int_in_unit(number: int, known: str, unit: str) -> int:
    """Give one moment in a finer unit; errors as of `in_unit`."""
    up, _ = _ratio(known, unit)
    made = number * up
    if not -(1 << 63) < made < 1 << 63:
        raise SchemaError(f"a value in {known} is beyond what 64 bits hold in {unit}")
    return made


def _ratio(known: Any, unit: str) -> tuple[int, int]:
    """Give what to multiply by, and what to divide by."""
    if known == "D":
        return _SECONDS_OF_DAY * _PER_SECOND[unit], 1
    first, second = _PER_SECOND[known], _PER_SECOND[unit]
    return max(second // first, 1), max(first // second, 1)
