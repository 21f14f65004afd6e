"""Tests of a column's type asked of the same column in a narrower one.

Where files of one table differ in the type of a column, its values are those of the widest: int32 among int64, floats
of 32 bits among 64, dates among timestamps, milliseconds among microseconds, decimals of fewer digits. Widening keeps
the order, so a range of the wide type's keys is a range of the narrow one's: from the first narrow key whose widened
value is not below it. So a literal is compared as the wide type says, exactly, and no value is ever widened for it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from ..arrow_schema import ArrowType
from ..schema import Leaf
from .bound import ValueTest
from .domain import Domain, float_bits
from .literals import cut
from .ranges import Ranges, union
from .unfit import Unfit

__all__ = ["translated"]

_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_NS_OF_DAY = 86_400 * 10**9
_FORMATS = {2: "<e", 4: "<f", 8: "<d"}

# What a key counts, and how much one of it is worth: only keys that count the same can be told from one another.
_WORTHS: dict[str, Callable[[ArrowType], tuple[str, Fraction]]] = {
    "bool": lambda kind: ("numbers", Fraction(1)),
    "int": lambda kind: ("numbers", Fraction(1)),
    "decimal": lambda kind: ("numbers", Fraction(1, 10**kind.scale)),
    "date": lambda kind: ("moments", Fraction(_NS_OF_DAY)),
    "timestamp": lambda kind: ("moments", Fraction(_NS[kind.unit])),
    "time": lambda kind: ("times of day", Fraction(_NS[kind.unit])),
    "duration": lambda kind: ("durations", Fraction(_NS[kind.unit])),
}


def translated(test: ValueTest, leaf: Leaf, domain: Domain) -> ValueTest:
    """Ask of a column in a narrower type what a test asks of it in a wider one.

    Parameters
    ----------
    test : ValueTest
        Bound to the wider type.
    leaf : Leaf
        The column in the narrower type, or in the same.
    domain : Domain
        Its keys.

    Returns
    -------
    ValueTest
        A value satisfies it if and only if what it is in the wider type satisfies `test`.

    Raises
    ------
    Unfit
        When values of the one type are none of the other.
    """
    if test.domain == domain:
        return replace(test, leaf=leaf)
    if test.domain.kind == "bytes" and domain.kind == "bytes":
        return replace(test, leaf=leaf, domain=domain)  # bytes are their own keys
    nan = test.nan and domain.is_float
    return replace(test, leaf=leaf, domain=domain, ranges=_ranges(test.ranges, test.domain, domain), nan=nan)


def _ranges(ranges: Ranges, wide: Domain, narrow: Domain) -> Ranges:
    """Give the ranges of the narrow type's keys whose values are in ranges of the wide one's."""
    inside = _edge(wide, narrow)

    def edge(key: Any) -> Any:
        return narrow.low if key <= wide.low else narrow.high if key >= wide.high else inside(key)

    return union((edge(low), edge(high)) for low, high in ranges)


def _edge(wide: Domain, narrow: Domain) -> Callable[[Any], Any]:
    """Give what finds the first narrow key whose value is not below that of a wide key."""
    if wide.is_float and (narrow.is_float or narrow.type.kind in ("int", "bool", "decimal")):
        return lambda key: _cut_at(np.float64(_float(key, wide.width)), narrow)
    worths = [_WORTHS.get(domain.type.kind) for domain in (wide, narrow)]
    if narrow.is_float and wide.type.kind in ("int", "bool", "decimal") and worths[0] is not None:
        unit = worths[0](wide.type)[1]
        return lambda key: _cut_at(key * unit, narrow)
    if worths[0] is None or worths[1] is None:
        raise _other(wide, narrow)
    (counted, one), (of_narrow, other) = worths[0](wide.type), worths[1](narrow.type)
    if counted != of_narrow:
        raise _other(wide, narrow)
    over, under = (one / other).as_integer_ratio()
    return lambda key: min(max(-(-key * over // under), narrow.low), narrow.high)


def _cut_at(value: Any, narrow: Domain) -> Any:
    found = cut(value, narrow)
    return narrow.high if found is None else found.at_least


def _float(key: int, width: int) -> float:
    """Give the float that has a key."""
    bits = float_bits(key, width).to_bytes(width, "little", signed=True)
    return struct.unpack(_FORMATS[width], bits)[0]


def _other(wide: Domain, narrow: Domain) -> Unfit:
    return Unfit(f"values of type {narrow.type.kind} are none of type {wide.type.kind}")
