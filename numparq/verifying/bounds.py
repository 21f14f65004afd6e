"""Bounds held against data: min and max of Statistics, page headers and column indexes."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..schema import INT32, INT64, Leaf
from ..statistics import Bounds, Order
from .deviations import Findings, Place

__all__ = ["BoundCheck", "check_range", "int96_bounds", "shown"]

_FLOATS = {2: "<e", 4: "<f", 8: "<d"}
_SHOWN_BYTES = 24
CHUNK = "the statistics"


def shown(value: bytes, order: Order) -> str:
    """Show a PLAIN value."""
    if order.kind == "float" and len(value) in _FLOATS:
        return repr(struct.unpack(_FLOATS[len(value)], value)[0])
    if order.kind in ("signed", "unsigned", "boolean", "decimal"):
        return f"{order.key(value):,}"
    return f"{value[:_SHOWN_BYTES]!r}" + (f"... ({len(value):,} bytes)" if len(value) > _SHOWN_BYTES else "")


@dataclass(frozen=True)
class BoundCheck:
    """Holds bounds against the smallest and largest value that there really is.

    Parameters
    ----------
    order : Order
        How the values compare.
    findings : Findings
        What is wrong goes there.
    min_check, max_check, bound_check : str
        The names of the checks.
    what : str
        Whose bounds they are, in words.
    """

    order: Order
    findings: Findings
    min_check: str = "stats-min"
    max_check: str = "stats-max"
    bound_check: str = "stats-bound"
    what: str = CHUNK

    def check(self, low: bytes | None, high: bytes | None, actual: Bounds, place: Place) -> None:
        """Check a lower and an upper bound, either of which may not be there."""
        for bound, name, is_low in ((low, "minimum", True), (high, "maximum", False)):
            if bound is None:
                continue
            if not self._is_value(bound):
                self.findings.add(self.bound_check, f"{self.what} have a {name} of {len(bound)} bytes, which is no "
                                                    "value of the column", place)  # fmt: skip
                continue
            found = actual.min_value if is_low else actual.max_value
            self._check_one(bound, found, name, is_low, place)

    def _is_value(self, bound: bytes) -> bool:
        return len(bound) == self.order.width if self.order.width else bool(bound) or self.order.kind == "bytes"

    def _check_one(self, bound: bytes, found: bytes | None, name: str, is_low: bool, place: Place) -> None:
        if self.order.is_float and not self.order.total:
            number = struct.unpack(_FLOATS[len(bound)], bound)[0]
            if math.isnan(number):
                self.findings.add("stats-nan", f"the {name} of {self.what} is NaN, which readers ignore", place)
                return
            if self.what == CHUNK and number == 0 and (math.copysign(1, number) < 0) != is_low:
                self.findings.add("stats-zero", f"the {name} of {self.what} is {number}", place)
        if found is None or not self.exceeds(bound, found, is_low):
            return
        side = "below" if is_low else "above"
        check = self.min_check if is_low else self.max_check
        self.findings.add(check, f"{self.what} have the {name} {shown(bound, self.order)}, and the value "
                                 f"{shown(found, self.order)} is {side} it", place)  # fmt: skip

    def exceeds(self, bound: bytes, found: bytes, is_low: bool) -> bool:
        """Tell whether a value lies outside of a bound; both zeros are the same where floats compare as numbers."""
        one, other = self._key(bound), self._key(found)
        return other < one if is_low else other > one

    def _key(self, value: bytes) -> Any:
        if self.order.is_float and not self.order.total:
            return struct.unpack(_FLOATS[len(value)], value)[0]
        return self.order.key(value)

    def same(self, one: bytes, other: bytes) -> bool:
        """Tell whether two bounds are equal in the column's order."""
        return self._key(one) == self._key(other)

    def over(self, what: str, min_check: str, max_check: str, bound_check: str) -> BoundCheck:
        """Give a check of the same column's bounds that stand elsewhere."""
        return replace(self, what=what, min_check=min_check, max_check=max_check, bound_check=bound_check)


_INT96 = np.dtype([("nanoseconds", "<i8"), ("day", "<i4")])


def int96_bounds(values: np.ndarray, codes: np.ndarray | None) -> Bounds:
    """Give the earliest and the latest of INT96 timestamps: by the day, then by the time of day.

    Parameters
    ----------
    values : uint8 array
        Twelve bytes each.
    codes : int32 array or None
        Which of them there are.
    """
    moments = values.view(_INT96)
    if codes is not None:
        moments = moments[np.unique(codes)]
    if not len(moments):
        return Bounds(None, None, None)
    order = np.lexsort((moments["nanoseconds"], moments["day"]))
    return Bounds(moments[order[0]].tobytes(), moments[order[-1]].tobytes(), None)


_DAY = {"MILLIS": 86_400_000, "MICROS": 86_400_000_000, "NANOS": 86_400_000_000_000}


def check_range(leaf: Leaf, order: Order, actual: Bounds, findings: Findings, place: Place) -> None:
    """Check that values are in the range of their logical type, by the smallest and the largest of a page."""
    logical = leaf.logical
    if logical is None or actual.min_value is None or actual.max_value is None:
        return
    low, high = _range(leaf)
    if low is None or high is None:
        return
    for value in (actual.min_value, actual.max_value):
        if not low <= order.key(value) <= high:
            findings.add("page-range", f"the value {order.key(value):,} is none of {logical}", place)
            return


def _range(leaf: Leaf) -> tuple[int | None, int | None]:
    logical = leaf.logical
    assert logical is not None
    if logical.kind == "DECIMAL" and (logical.precision or 0) > 0:
        most = 10 ** min(logical.precision or 0, 1000) - 1
        return -most, most
    if logical.kind == "INTEGER" and leaf.physical == INT32 and logical.bit_width in (8, 16):
        bits = logical.bit_width
        return (-(1 << bits - 1), (1 << bits - 1) - 1) if logical.signed else (0, (1 << bits) - 1)
    if logical.kind == "TIME" and leaf.physical in (INT32, INT64) and logical.unit in _DAY:
        return 0, _DAY[logical.unit]
    return None, None
