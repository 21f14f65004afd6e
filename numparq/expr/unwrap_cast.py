"""Unwrap casts: rewrite a predicate on a widened type for the narrower type of a file."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from numparq.format.arrow_type import ArrowType
from numparq.format.schema import Leaf

from .bound import ValuePredicate
from .expression import LiteralError
from .key_ranges import KeyRanges, union
from .literals import locate_literal
from .sort_keys import KeyDomain, float_bits

__all__ = ["unwrap_cast"]

_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_NS_OF_DAY = 86_400 * 10**9
_FORMATS = {2: "<e", 4: "<f", 8: "<d"}

# Type kind -> quantity that keys count, and the worth of one key; only keys of the same quantity can be compared.
_WORTHS: dict[str, Callable[[ArrowType], tuple[str, Fraction]]] = {
    "bool": lambda kind: ("numbers", Fraction(1)),
    "int": lambda kind: ("numbers", Fraction(1)),
    "decimal": lambda kind: ("numbers", Fraction(1, 10**kind.scale)),
    "date": lambda kind: ("moments", Fraction(_NS_OF_DAY)),
    "timestamp": lambda kind: ("moments", Fraction(_NS[kind.unit])),
    "time": lambda kind: ("times of day", Fraction(_NS[kind.unit])),
    "duration": lambda kind: ("durations", Fraction(_NS[kind.unit])),
}


def unwrap_cast(predicate: ValuePredicate, leaf: Leaf, domain: KeyDomain) -> ValuePredicate:
    """Rewrite a predicate on a widened type for a column of the narrower type: same result for every value.

    Raises LiteralError if values of one type cannot be values of the other.
    """
    if predicate.domain == domain:
        return replace(predicate, leaf=leaf)
    if predicate.domain.kind == "bytes" and domain.kind == "bytes":
        return replace(predicate, leaf=leaf, domain=domain)  # byte strings are their own keys
    nan = predicate.matches_nan and domain.is_float
    return replace(
        predicate, leaf=leaf, domain=domain, ranges=_ranges(predicate.ranges, predicate.domain, domain), matches_nan=nan
    )


def _ranges(ranges: KeyRanges, wide: KeyDomain, narrow: KeyDomain) -> KeyRanges:
    """Return the ranges of narrow keys whose values lie in ranges of wide keys."""
    inside = _edge(wide, narrow)

    def edge(key: Any) -> Any:
        return narrow.low if key <= wide.low else narrow.high if key >= wide.high else inside(key)

    return union((edge(low), edge(high)) for low, high in ranges)


def _edge(wide: KeyDomain, narrow: KeyDomain) -> Callable[[Any], Any]:
    """Return a function from a wide key to the first narrow key whose value is not less."""
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


def _cut_at(value: Any, narrow: KeyDomain) -> Any:
    found = locate_literal(value, narrow)
    return narrow.high if found is None else found.left


def _float(key: int, width: int) -> float:
    """Return the float with this key."""
    bits = float_bits(key, width).to_bytes(width, "little", signed=True)
    return float(struct.unpack(_FORMATS[width], bits)[0])


def _other(wide: KeyDomain, narrow: KeyDomain) -> LiteralError:
    return LiteralError(f"values of type {narrow.type.kind} are not comparable with type {wide.type.kind}")
