"""Where a key may be: row groups by their statistics, then rows by column indexes; of columns of signed integers.

The answers are those of `match` and `PageRows` for a test that one key satisfies. What these work out for a predicate
each time that it is asked is worked out here once for all keys.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..column.chunks import ChunkTables
from ..opened import OpenedFile
from ..plan.row_group_plan import RowGroupPlan
from ..predicate.domain import Domain
from ..remembered import Kept
from ..schema import Leaf
from .chunk_facts import chunk_runs
from .look_up import MOST_GROUPS, MOST_ROWS, LookUp
from .page_rows import PageRows
from .runs import Runs

__all__ = ["KeyPages", "KeyRows"]

_MOST_KEPT = 16


class KeyRows(NamedTuple):
    """Rows of a row group that may have a key: from `start` on, up to but not including `stop`."""

    group: RowGroupPlan
    start: int
    stop: int


_Pages = tuple[RowGroupPlan, np.ndarray, np.ndarray, "_Intervals"]  # with first rows, and the rows behind the last ones


class KeyPages:
    """The pages of a column, in files with one and the same footer.

    Parameters
    ----------
    file : OpenedFile
        One of the files; nothing of it is kept but what its footer says.
    leaves : sequence of Leaf
        All columns that are read.
    asked : Leaf
        That of them which is to have the key.
    domain : Domain
        Its keys.
    tables : ChunkTables
        The chunks of `leaves`.
    """

    def __init__(
        self, file: OpenedFile, leaves: Sequence[Leaf], asked: Leaf, domain: Domain, tables: ChunkTables
    ) -> None:  # fmt: skip
        self._leaves = leaves
        self._asked = asked
        self._domain = domain
        self._tables = tables
        self._groups = _Intervals(chunk_runs(file, asked, range(file.num_row_groups)), asked, domain)
        self._of_one_key = self._groups.of_one_key()
        self._look_ups = Kept(_MOST_KEPT)

    def with_key(self, file: OpenedFile, key: int) -> list[KeyRows] | None:
        """Find the rows whose pages may have a key, and read the indexes that tell and have not been read.

        Parameters
        ----------
        file : OpenedFile
            The file.
        key : int
            One of the domain.

        Returns
        -------
        list of KeyRows or None
            A run of rows for each row group that has any; None where one would not do, where nothing tells, or
            where statistics might decide without a look at the rows.
        """
        groups = self._groups.having(key)
        if groups is None or not 0 < len(groups) <= MOST_GROUPS or not self._of_one_key.isdisjoint(groups):
            return None
        look_up = self._look_ups.get(groups, lambda: self._look_up(file, groups))
        told = None if look_up is None else look_up.told(file)
        if told is None:
            return None
        plans, rows = told
        indexed = rows.kept.get(self._asked.index, lambda: self._indexed(plans, rows))
        if indexed is None:
            return None
        found = []
        for group, starts, stops, intervals in indexed:
            pages = intervals.having(key)
            if pages is None:
                return None
            if pages:
                part = KeyRows(group, int(starts[pages[0]]), int(stops[pages[-1]]))
                if not 0 < part.stop - part.start <= MOST_ROWS:
                    return None
                found.append(part)
        return found

    def _look_up(self, file: OpenedFile, groups: range) -> LookUp | None:
        return LookUp.of(file, self._leaves, [self._asked], self._tables, groups)

    def _indexed(self, plans: Sequence[RowGroupPlan], rows: PageRows) -> list[_Pages] | None:
        """Give the pages of each row group by its column index; None where one does not tell."""
        told = rows.of_leaf(self._asked)
        if told is None or not all(chunk.is_indexed for group in plans for chunk in group.chunks):
            return None
        found, start = [], 0
        for group, pages in zip(plans, told.pages, strict=True):
            if pages is None:
                return None
            places = np.arange(start, start + pages.num_pages)
            start += pages.num_pages
            intervals = _Intervals(told.runs.at(places), self._asked, self._domain)
            found.append((group, pages.first_rows, pages.row_stops, intervals))
        return found


class _Intervals:
    """Between which keys the values of runs lie, as `Runs.intervals` has it; none where there are only nulls."""

    def __init__(self, runs: Runs, leaf: Leaf, domain: Domain) -> None:
        lows, highs = runs.intervals(domain)
        has_values = runs.may_have_values(leaf)
        self._lows = np.where(has_values, lows, domain.high - 1)
        self._highs = np.where(has_values, highs, domain.low)
        self._are_sorted = all((keys[1:] >= keys[:-1]).all() for keys in (self._lows, self._highs))

    def having(self, key: int) -> range | None:
        """Give those that may have a key, by their places; None where they do not stand together."""
        if self._are_sorted:
            first, stop = bisect_left(self._highs, key), bisect_right(self._lows, key)
            return range(first, stop)
        found = ((self._lows <= key) & (self._highs >= key)).nonzero()[0].tolist()
        if not found:
            return range(0)
        return range(found[0], found[-1] + 1) if found[-1] - found[0] < len(found) else None

    def of_one_key(self) -> frozenset[int]:
        """Give the places of those that have no more than one key."""
        return frozenset((self._lows == self._highs).nonzero()[0].tolist())
