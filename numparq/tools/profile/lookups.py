"""Look-ups on a column over all files: expected reads, and how files are ordered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from numparq.format.bloom_filter import DEFAULT_FPP, false_positive_rate
from numparq.skipping.summary.bounds import KeyBounds

from .figures import LookupCost
from .lookup_model import PrunableContainers, RowGroups, expected_reads
from .page_index import bounds_order
from .partial_profile import FileSizes, PartialColumnProfile

UNKNOWN_BLOOM_BYTES = 1  # placeholder for a Bloom filter without bloom_filter_length


class FileOrderCounts(NamedTuple):
    """Number of files with row groups in order, not in order, and with bounds that overlap another file's."""

    in_order: int = 0
    out_of_order: int = 0
    overlapping: int = 0


def count_file_orders(column: PartialColumnProfile) -> FileOrderCounts:
    """Count how files are ordered inside and among each other, by the bounds of row groups."""
    orders, hulls = [], []
    for row_groups in column.row_groups.values():
        bounds, live = KeyBounds(*row_groups[:3]), row_groups.rows > 0
        hull = bounds.hull(live)
        if hull is not None:
            hulls.append(hull)
            orders.append(bounds_order(bounds, live))
    known = [order != 0 for order in orders if order is not None]
    return FileOrderCounts(sum(known), len(known) - sum(known), _count_overlapping(hulls))


def _count_overlapping(hulls: Sequence[tuple[Any, Any]]) -> int:
    """Count (low, high) ranges that overlap another one by more than an end point."""
    order = sorted(hulls)
    overlaps = [False] * len(order)
    reach = 0  # index of the range with the highest end so far
    for at in range(1, len(order)):
        if order[at][0] < order[reach][1]:
            overlaps[at] = overlaps[reach] = True
        if order[at][1] > order[reach][1]:
            reach = at
    return sum(overlaps)


def estimate_lookups(
    column: PartialColumnProfile, files: Mapping[int, FileSizes], distinct: int | None
) -> tuple[LookupCost | None, LookupCost | None]:
    """Estimate what look-ups on a column read: of one value, and of 1 % of the rows; None if there is nothing to read.

    `distinct` None: all values are taken as distinct. Bounds of files that differ in value kind do not compare.
    """
    parts = [column.row_groups[ordinal] for ordinal in sorted(column.row_groups)]
    totals = np.array([[file.compressed, file.row_groups] for file in files.values()]).sum(axis=0)
    if not parts or not totals.all():
        return None, None
    if len(column.values) != 1:
        parts = [part._replace(**dict.fromkeys(("lows", "highs", "known"), np.zeros(len(part.rows)))) for part in parts]
    lows, highs, known, rows, costs, read_share, bloom_bytes = map(np.concatenate, zip(*parts, strict=True))
    has_pages = bool((costs[rows > 0, 2] > 0).all())
    costs[:, 2] = np.maximum(costs[:, 2], 1)
    ordinals = np.repeat(sorted(column.row_groups), [len(part.rows) for part in parts])
    chance = _read_probabilities(rows, bloom_bytes, distinct)
    containers = PrunableContainers(lows, highs, known.astype(np.bool_), rows, costs, read_share, chance, ordinals)
    reads = expected_reads(containers, len(files))
    scale = np.append(costs[:, :2].sum(axis=0) / totals, 1.0)
    return (
        _lookup(reads.point * scale, reads.point_files, has_pages),
        _lookup(reads.small_range * scale, reads.range_files, has_pages),
    )


def _lookup(shares: np.ndarray, files: float, has_pages: bool) -> LookupCost:
    num_bytes, row_groups, pages = np.clip(shares, 0.0, 1.0).tolist()
    return LookupCost(min(files, 1.0), row_groups, num_bytes, pages if has_pages else None)


def _read_probabilities(rows: np.ndarray, bloom_bytes: np.ndarray, distinct: int | None) -> np.ndarray:
    """Return how likely a row group whose bounds include a value is read, unless the value is known to be there.

    Below 1 with a Bloom filter: the value occurs there too (uniformly distributed) or is a false positive.
    """
    live = max(int((rows > 0).sum()), 1)
    others = max(rows.sum() / distinct - 1, 0.0) if distinct else 0.0  # other rows with the same value
    has_value = 1 - (1 - 1 / live) ** min(others, 1e9) if live > 1 else 0.0
    rates: dict[tuple[float, int], float] = {}
    chances = np.ones(len(rows))
    for at in np.flatnonzero(bloom_bytes > 0).tolist():
        each = float(min(rows[at], distinct or rows[at])), int(bloom_bytes[at])
        if each not in rates:
            rates[each] = DEFAULT_FPP if each[1] <= UNKNOWN_BLOOM_BYTES else false_positive_rate(*each)
        chances[at] = has_value + (1 - has_value) * rates[each]
    return chances


def prunable_row_groups(
    bounds: KeyBounds, rows: np.ndarray, sizes: np.ndarray, pages: np.ndarray, bloom_bytes: np.ndarray
) -> RowGroups:
    """Return the row groups of a file for look-ups on one column.

    `rows` has the non-null values of each chunk, `sizes` the bytes of each row group, `pages` (row groups, 3) the
    number of pages and the shares of bytes and pages that a look-up reads.
    """
    ones = np.ones(len(rows))
    return RowGroups(
        *bounds,
        rows.astype(np.float64),
        np.stack([sizes.astype(np.float64), ones, pages[:, 0]], axis=1),
        np.stack([pages[:, 1], ones, pages[:, 2]], axis=1),
        bloom_bytes,
    )
