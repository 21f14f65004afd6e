"""Casts of dates, times, timestamps and durations, and of integers that count their units."""

from __future__ import annotations

from typing import Any

import numpy as np

from numparq.column.leaf_values import LeafValues
from numparq.errors import SchemaError
from numparq.format.arrow_type import ArrowType

from .numbers import integer_view, store_integers
from .rule import Cast, raise_first

_PER_SECOND = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}
_DAY = 86_400


def _tick_seconds(arrow_type: ArrowType) -> tuple[int, int]:
    """Return the length of a stored tick in seconds, as a fraction."""
    if arrow_type.kind == "date" or arrow_type.unit == "D":
        return _DAY, 1
    stored_in_ms = arrow_type.unit == "s" and arrow_type.kind in ("timestamp", "time")
    return 1, _PER_SECOND["ms" if stored_in_ms else arrow_type.unit]


def units_to_units(before: ArrowType, after: ArrowType) -> Cast:
    """Convert units without loss; a time zone changes no value."""
    (above, below), (after_above, after_below) = _tick_seconds(before), _tick_seconds(after)
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
        raise_first(leaf, bad, lambda place: _value_text(before, int(ticks[place])))
        return store_integers(leaf, found, after)

    return step


def integers_to_units(before: ArrowType, after: ArrowType) -> Cast:
    """Cast integers that count a type's unit; the file may store another (seconds as milliseconds)."""
    as_ticks = units_to_units(ArrowType("int", 64, unit=after.unit), after)
    widest = ArrowType("int", 64)

    def step(leaf: LeafValues) -> LeafValues:
        return as_ticks(store_integers(leaf, integer_view(leaf, before), widest))

    return step


def _value_text(arrow_type: ArrowType, ticks: int) -> Any:
    if arrow_type.kind == "int":
        return ticks
    unit: Any = "ms" if arrow_type.unit == "s" and arrow_type.kind in ("timestamp", "time") else arrow_type.unit
    return np.datetime64(ticks, unit) if arrow_type.kind in ("timestamp", "date") else np.timedelta64(ticks, unit)


def timestamps_to_timestamps(before: ArrowType, after: ArrowType) -> Cast:
    """Convert the unit of timestamps, all with a time zone or all without one."""
    if bool(before.timezone) != bool(after.timezone):
        raise SchemaError(
            "timestamps with a time zone and without one cannot be cast to each other; use .dt.tz_localize first"
        )
    return units_to_units(before, after)
