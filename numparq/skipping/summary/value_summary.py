"""Summary of the values of a column over chunks and files: bounds and distinct values that add up in any order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from operator import add
from typing import Any, ClassVar, NamedTuple, Self

from .distinct import DistinctSketch
from .value_kind import ValueKind


def merge_dicts(one: dict[Any, Any], two: dict[Any, Any]) -> dict[Any, Any]:
    """Merge dicts; add the values of common keys."""
    return one | {key: one[key] + value if key in one else value for key, value in two.items()}


def _merge_present(choose: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    return lambda one, two: choose((each for each in (one, two) if each is not None), default=None)


merge_min, merge_max = _merge_present(min), _merge_present(max)


class Addable:
    """Dataclass whose instances add up field by field, by `_merges` or by ``+``."""

    _merges: ClassVar[dict[str, Callable[[Any, Any], Any]]] = {}

    def __add__(self, other: Self) -> Self:
        names = [entry.name for entry in fields(self)]  # type: ignore[arg-type]
        pairs = ((self._merges.get(name, add), getattr(self, name), getattr(other, name)) for name in names)
        return type(self)(*(merge(one, two) for merge, one, two in pairs))


class DistinctLimits(NamedTuple):
    """Number of distinct values (None: unknown), its source as in `ColumnProfile.distinct_kind`, and certain limits."""

    num_distinct: int | None
    source: str
    least: int
    most: int


@dataclass
class ValueSummary(Addable):
    """Values of one kind in a column.

    Attributes
    ----------
    low, high : (key, bool) or None
        Smallest bound, and whether it may not occur as a value; largest bound, and whether it occurs. None if no chunk
        has bounds. So the outer of equal bounds is the one that occurs.
    unbounded, uncounted : int
        Values (not null, not NaN) in chunks without bounds, and in those that are not in the sketch.
    sketch : DistinctSketch
        Distinct values of chunks whose values or dictionaries were read.
    is_certain : bool
        Whether each value of the sketch occurs; dictionaries may have unused entries.
    """

    low: tuple[Any, bool] | None = None
    high: tuple[Any, bool] | None = None
    unbounded: int = 0
    uncounted: int = 0
    sketch: DistinctSketch = field(default_factory=DistinctSketch)
    is_certain: bool = True

    _merges: ClassVar = {"low": merge_min, "high": merge_max, "is_certain": min}

    def limit_distinct(self, kind: ValueKind | None, num_present: int, is_certain: bool) -> DistinctLimits:
        """Return the distinct count of `num_present` values, at most so many unless `is_certain`.

        Without a kind, values of several kinds do not compare.
        """
        least = int(num_present > 0)
        if kind is None:
            return DistinctLimits(None, "unknown", least, num_present)
        least, most = least * is_certain, min(num_present, self._max_distinct(kind, num_present))
        if self.sketch.is_exact and self.is_certain:
            least = max(least, len(self.sketch.hashes))
        if self.low and self.high and not self.low[1] and self.high[1] and self.low[0] != self.high[0]:
            least = max(least, 2)
        if self.uncounted:
            source = "exact" if least == most else "unknown"
            return DistinctLimits(most if least == most else None, source, least, most)
        count = round(self.sketch.count())
        if not self.sketch.is_exact:
            return DistinctLimits(min(max(count, least), most), "estimate", least, most)
        if self.is_certain:
            return DistinctLimits(count, "exact", count, count)
        return DistinctLimits(count, "exact" if least == count else "dictionary", min(least, count), count)

    def _max_distinct(self, kind: ValueKind, num_present: int) -> int:
        """Return an upper limit of distinct values by the bounds."""
        if kind.key_dtype == "float64" or self.low is None or self.high is None or self.unbounded:
            return num_present
        low, high = self.low[0], self.high[0]
        if isinstance(low, bytes):
            return 1 if low == high else num_present
        return int(high) - int(low) + 1
