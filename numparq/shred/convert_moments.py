"""Dates, times, timestamps, durations, and integers that count, to the unit, or the kind, that a schema gives."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrow_schema import ArrowType
from ..errors import SchemaError
from ..leaves import LeafValues
from .convert_numbers import numbers_of, stored_integers
from .convert_values import Step, refuse

_PER_SECOND = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}
_DAY = 86_400


def _ticks(arrow_type: ArrowType) -> tuple[int, int]:
    """Give the length of a stored tick as a fraction of seconds."""
    if arrow_type.kind == "date" or arrow_type.unit == "D":
        return _DAY, 1
    stored_in_ms = arrow_type.unit == "s" and arrow_type.kind in ("timestamp", "time")
    return 1, _PER_SECOND["ms" if stored_in_ms else arrow_type.unit]


def moments(before: ArrowType, after: ArrowType) -> Step:
    """Convert units, where nothing is lost; zones stay what they are, moments."""
    (above, below), (after_above, after_below) = _ticks(before), _ticks(after)
    numerator, denominator = above * after_below, below * after_above
    common = int(np.gcd(numerator, denominator))
    factor, divisor = numerator // common, denominator // common
    coarse = _PER_SECOND["ms"] if after.unit == "s" and after.kind in ("timestamp", "time") else 1

    def step(leaf: LeafValues) -> LeafValues:
        ticks = leaf.values.astype(np.int64)
        quotient, rest = np.divmod(ticks, divisor)
        bad = rest != 0
        if factor > 1:
            bad |= np.abs(quotient.astype(np.float64)) * factor >= 2.0**63
        found = quotient * factor
        bad |= found % coarse != 0
        if after.kind == "time":
            bad |= (found < 0) | (found >= _DAY * after_below)
        refuse(leaf, bad, lambda place: _shown(before, int(ticks[place])))
        return stored_integers(leaf, found, after)

    return step


def counted(before: ArrowType, after: ArrowType) -> Step:
    """Take integers for what a type counts: its units, also where the file has others, seconds being milliseconds."""
    as_ticks = moments(ArrowType("int", 64, unit=after.unit), after)
    widest = ArrowType("int", 64)

    def step(leaf: LeafValues) -> LeafValues:
        return as_ticks(stored_integers(leaf, numbers_of(leaf, before), widest))

    return step


def _shown(arrow_type: ArrowType, ticks: int) -> Any:
    if arrow_type.kind == "int":
        return ticks
    unit: Any = "ms" if arrow_type.unit == "s" and arrow_type.kind in ("timestamp", "time") else arrow_type.unit
    return np.datetime64(ticks, unit) if arrow_type.kind in ("timestamp", "date") else np.timedelta64(ticks, unit)


def timestamps(before: ArrowType, after: ArrowType) -> Step:
    """Convert the unit of timestamps, all with a time zone or all without one."""
    if bool(before.timezone) != bool(after.timezone):
        raise SchemaError("timestamps with a time zone and without one are not to be turned into each other silently")
    return moments(before, after)
