"""How the files of a dataset lie to each other by one column, and what look-ups on it read of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ...bloom_filter import DEFAULT_FPP, false_positive_rate
from .pages import order_of_runs
from .part import ColumnPart, FileFacts, FileRuns
from .result import Lookup
from .skipping import Stretches, expected

__all__ = ["FilesOrder", "files_order", "lookups"]


class FilesOrder(NamedTuple):
    """How many files have row groups in order, how many have not, and how many overlap with another file."""

    in_order: int = 0
    out_of_order: int = 0
    overlapping: int = 0


def files_order(column: ColumnPart) -> FilesOrder:
    """Say how the values of a column lie in files and between them, by the bounds of row groups."""
    orders, hulls = [], []
    for at in sorted(column.runs):
        runs = column.runs[at]
        live = runs.rows > 0
        if not live.any() or not runs.known[live].all():
            continue
        lows, highs = runs.lows[live], runs.highs[live]
        hulls.append((lows.min(), highs.max()))
        order = order_of_runs(lows, highs)
        if order is not None:
            orders.append(order)
    in_order = sum(order != 0 for order in orders)
    return FilesOrder(in_order, len(orders) - in_order, _overlapping(hulls))


def _overlapping(hulls: Sequence[tuple]) -> int:
    """Count ranges that overlap with another one by more than an end."""
    order = sorted(hulls)
    found = [False] * len(order)
    reach = 0  # the range so far that goes the furthest
    for at in range(1, len(order)):
        if order[at][0] < order[reach][1]:
            found[at] = found[reach] = True
        if order[at][1] > order[reach][1]:
            reach = at
    return sum(found)


def lookups(
    column: ColumnPart, files: Mapping[int, FileFacts], distinct: int | None, *, is_mixed: bool
) -> tuple[Lookup | None, Lookup | None]:  # fmt: skip
    """Say what look-ups on a column read.

    Parameters
    ----------
    column : ColumnPart
        The column.
    files : mapping of int to FileFacts
        All files that could be read.
    distinct : int or None
        How many different values it has; where that is not known, each is taken for different.
    is_mixed : bool
        Whether files have values of several kinds, so that bounds do not compare.

    Returns
    -------
    point, small_range : Lookup or None
        None where there is nothing to read.
    """
    runs = [(at, column.runs[at]) for at in sorted(column.runs)]
    totals = np.array([[file.compressed, file.row_groups] for file in files.values()]).sum(axis=0)
    if not runs or not totals.all():
        return None, None
    kinds = {found.kind: found.lows.dtype for _, found in runs}
    stretches = _stretches(runs, distinct, is_known=not is_mixed and len(kinds) == 1)
    scale = np.append(stretches.costs[:, :2].sum(axis=0) / totals, 1.0)
    found = expected(stretches, len(files))
    has_pages = all((item.pages > 0)[item.rows > 0].all() for _, item in runs)
    return (
        _lookup(found.point * scale, found.point_files, has_pages),
        _lookup(found.small_range * scale, found.range_files, has_pages),
    )


def _lookup(shares: np.ndarray, files: float, has_pages: bool) -> Lookup:
    num_bytes, row_groups, pages = np.clip(shares, 0.0, 1.0).tolist()
    return Lookup(min(files, 1.0), row_groups, num_bytes, pages if has_pages else None)


def _stretches(runs: Sequence[tuple[int, FileRuns]], distinct: int | None, is_known: bool) -> Stretches:
    def joined(name: str) -> np.ndarray:
        return np.concatenate([getattr(found, name) for _, found in runs])

    rows, num_bytes, groups, pages = (joined(name) for name in ("rows", "num_bytes", "row_groups", "pages"))
    lows, highs, known = joined("lows"), joined("highs"), joined("known")
    if not is_known:  # bounds of several kinds, which may not even be of one dtype
        lows = highs = np.zeros(len(rows))
        known = np.zeros(len(rows), np.bool_)
    costs = np.stack([num_bytes, groups, np.maximum(pages, 1)], axis=1).astype(np.float64)
    within = np.stack([joined("share"), np.ones(len(rows)), joined("page_share")], axis=1)
    files = np.repeat([at for at, _ in runs], [len(found.rows) for _, found in runs])
    chance = _chances(rows, groups, joined("bloom_bytes"), distinct)
    return Stretches(lows, highs, known, rows.astype(np.float64), costs, within, chance, files)


def _chances(rows: np.ndarray, groups: np.ndarray, bloom_bytes: np.ndarray, distinct: int | None) -> np.ndarray:
    """Say how likely a run is read that has a value between its bounds, and not certainly itself.

    Of runs with Bloom filters, if the value is in it after all, or its filter says so wrongly; values are taken as
    occurring anywhere alike.
    """
    live = max(int((rows > 0).sum()), 1)
    others = max(rows.sum() / distinct - 1, 0.0) if distinct else 0.0  # that have the same value
    has_value = 1 - (1 - 1 / live) ** min(others, 1e9) if live > 1 else 0.0
    rates: dict[tuple[float, float], float] = {}
    found = np.ones(len(rows))
    for at in np.flatnonzero(bloom_bytes > 0).tolist():
        each = float(min(rows[at], distinct or rows[at]) / groups[at]), float(bloom_bytes[at] / groups[at])
        if each not in rates:
            rates[each] = DEFAULT_FPP if each[1] <= 1 else false_positive_rate(*each)  # type: ignore[arg-type]
        found[at] = has_value + (1 - has_value) * rates[each]
    return found
