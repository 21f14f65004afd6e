"""What is known of many runs of values at once: the chunks of a column, or the pages of a chunk, as arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..predicate.domain import Domain
from ..predicate.may_match import Facts
from ..remembered import Kept
from ..schema import Leaf
from ..statistics.order import NO_ORDER, Order

__all__ = ["UNKNOWN", "Runs", "counts"]

_MOST_PARTS = 4
UNKNOWN = -1  # of a count, and of a position


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """`Facts` of one leaf in many runs of rows; each array has an item a run.

    Parameters
    ----------
    data : uint8 array
        The bytes that bounds lie in.
    lows, highs : int64 array, (runs, 2)
        Where in `data` the PLAIN lower and upper bound lies, and its length; position `UNKNOWN` where there is none.
    num_values, null_counts, nan_counts : int64 array
        How many; `UNKNOWN` where that is not known.
    all_null : bool array
        Runs that are known to have nothing but nulls.
    is_exact : bool array
        Whether both bounds are said to be values that occur.
    order : Order
        How the bounds compare.
    """

    data: np.ndarray
    lows: np.ndarray
    highs: np.ndarray
    num_values: np.ndarray
    null_counts: np.ndarray
    nan_counts: np.ndarray
    all_null: np.ndarray
    is_exact: np.ndarray
    order: Order
    _intervals: dict[Domain, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict, init=False, repr=False)
    _values: dict[bool, np.ndarray] = field(default_factory=dict, init=False, repr=False)
    _parts: Kept = field(default_factory=lambda: Kept(_MOST_PARTS), init=False, repr=False)

    def __len__(self) -> int:
        """How many runs there are."""
        return len(self.num_values)

    @classmethod
    def unknown(cls, num_values: np.ndarray) -> Runs:
        """Make those of runs of which no more is known than how many values they have."""
        absent, no = np.full((len(num_values), 2), UNKNOWN, np.int64), np.zeros(len(num_values), np.bool_)
        return cls(np.empty(0, np.uint8), absent, absent, num_values, absent[:, 0], absent[:, 0], no, no, NO_ORDER)

    def at(self, chosen: np.ndarray) -> Runs:
        """Give some of the runs, by their places (int64 array)."""
        return self._parts.get(chosen.tobytes(), lambda: self._at(chosen))

    def _at(self, chosen: np.ndarray) -> Runs:
        made = Runs(
            self.data, self.lows.take(chosen, axis=0), self.highs.take(chosen, axis=0), self.num_values.take(chosen),
            self.null_counts.take(chosen), self.nan_counts.take(chosen), self.all_null.take(chosen),
            self.is_exact.take(chosen), self.order,
        )  # fmt: skip
        for domain, (low, high) in self._intervals.items():
            made._intervals[domain] = low.take(chosen), high.take(chosen)
        return made

    def facts(self, run: int) -> Facts:
        """Give the Facts of one run."""
        low, high = (self._bound(places[run]) for places in (self.lows, self.highs))
        known = (self.num_values, self.null_counts, self.nan_counts)
        num_values, nulls, nans = (None if counts[run] < 0 else int(counts[run]) for counts in known)
        is_exact, all_null = bool(self.is_exact[run]), bool(self.all_null[run])
        return Facts(num_values, low, high, nulls, nans, is_exact, all_null, self.order)

    def _bound(self, place: np.ndarray) -> bytes | None:
        start, length = place.tolist()
        return None if start < 0 else self.data[start : start + length].tobytes()

    def num_nulls(self, leaf: Leaf) -> np.ndarray:
        """Give the nulls of each run; `UNKNOWN` where the counts do not tell, as in nested leaves."""
        if leaf.is_nested:
            return np.full(len(self), UNKNOWN, np.int64)
        return self.null_counts if leaf.max_definition_level else np.zeros(len(self), np.int64)

    def only_nulls(self, leaf: Leaf) -> np.ndarray:
        """Tell which runs are known to have nothing but nulls."""
        if leaf.is_nested:
            return self.all_null
        return self.all_null | ((self.null_counts >= 0) & (self.null_counts == self.num_values))

    def may_have_values(self, leaf: Leaf) -> np.ndarray:
        """Tell which runs may have a value that is no null; not to be written to."""
        found = self._values.get(leaf.is_nested)
        if found is None:  # every test of the leaf asks it
            found = self._values[leaf.is_nested] = ~self.only_nulls(leaf) & (self.num_values != 0)
        return found

    def have_no_nulls(self, leaf: Leaf) -> np.ndarray:
        """Tell which runs are known to have no null."""
        return (self.num_nulls(leaf) == 0) & ~self.all_null

    def num_present(self, leaf: Leaf) -> np.ndarray:
        """Give the values of each run that are no nulls; `UNKNOWN` where that is not known."""
        nulls = self.num_nulls(leaf)
        return np.where((nulls < 0) | (self.num_values < 0), UNKNOWN, self.num_values - nulls)

    def intervals(self, domain: Domain) -> tuple[np.ndarray, np.ndarray]:
        """Give the keys that the values of each run lie between, both included; of domains whose keys are numbers.

        Parameters
        ----------
        domain : Domain
            Of a kind that `has_numbers` names; all keys where bounds are missing, are none of the type's, or
            contradict each other. Under IEEE 754's total order a NaN's key lies beside those of the domain.

        Returns
        -------
        lows, highs : int64 or uint64 array
        """
        if domain not in self._intervals:  # may and must are asked of the same runs
            self._intervals[domain] = self._made_intervals(domain)
        return self._intervals[domain]

    def _made_intervals(self, domain: Domain) -> tuple[np.ndarray, np.ndarray]:
        least, most = domain.low, domain.high - 1
        low, has_low = self._keys(domain, self.lows)
        high, has_high = self._keys(domain, self.highs)
        is_good = ~(has_low & self._is_worthless(domain, low)) & ~(has_high & self._is_worthless(domain, high))
        if domain.is_float:  # neither order nor writer need have told the zeros apart
            low, high = np.where(low == 0, -1, low), np.where(high == -1, 0, high)
        is_good &= ~(has_low & has_high & (low > high))
        return np.where(has_low & is_good, low, least), np.where(has_high & is_good, high, most)

    def _is_worthless(self, domain: Domain, keys: np.ndarray) -> np.ndarray:
        """Tell which bounds make both of a run worthless: what is no value of the type, and where it counts a NaN."""
        if domain.is_float and self.order.total:
            return np.zeros(len(keys), np.bool_)
        return (keys < domain.low) | (keys > domain.high - 1)

    def _keys(self, domain: Domain, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Give the keys of bounds, and which of them there are."""
        width = domain.width
        there = (places[:, 0] >= 0) & (places[:, 1] == width)
        if self.order.kind != domain.kind or len(self.data) < width:
            there = np.zeros(len(self), np.bool_)
            plain = np.zeros((len(self), width), np.uint8)
        else:  # what is taken where there is nothing does not count
            plain = self.data[np.where(there, places[:, 0], 0)[:, None] + np.arange(width)]
        keys = plain.view(_DTYPES[domain.kind].format(width)).reshape(-1)
        if domain.is_float:
            keys = keys ^ ((keys >> (8 * width - 1)) & np.iinfo(keys.dtype).max)
        return (keys if keys.dtype == np.uint64 else keys.astype(np.int64)), there


_DTYPES = {"signed": "<i{}", "unsigned": "<u{}", "boolean": "<u{}", "float": "<i{}"}


def has_numbers(domain: Domain) -> bool:
    """Tell whether `Runs.intervals` knows the keys of a domain."""
    return domain.kind in _DTYPES


def counts(said: Any, most: np.ndarray) -> np.ndarray:
    """Take counts as they are said, but for those that cannot be.

    Parameters
    ----------
    said : int64 array
        One a run; negative: not known.
    most : int64 array
        The values of each run; `UNKNOWN`: anything may be.

    Returns
    -------
    int64 array
    """
    said = np.asarray(said, np.int64)
    return np.where((said < 0) | ((most >= 0) & (said > most)), UNKNOWN, said)
