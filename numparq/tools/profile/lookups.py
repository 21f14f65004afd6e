"""Look-ups on a column over all files: expected reads, and how files are ordered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from numparq.prune.lookup_model import PrunableContainers, expected_reads
from numparq.skipping.summary.bounds import KeyBounds
from numparq.skipping.summary.chunk_pages import bounds_order

from .figures import LookupCost
from .partial_profile import FileSizes, PartialColumnProfile


def count_file_orders(column: PartialColumnProfile) -> dict[str, int]:
    """Count files by the order of their row groups, and those that overlap another, as `ColumnProfile` names them."""
    orders, hulls = [], []
    for row_groups in column.row_groups.values():
        bounds, live = KeyBounds(*row_groups[:3]), row_groups.rows > 0
        hull = bounds.hull(live)
        if hull is not None:
            hulls.append(hull)
            orders.append(bounds_order(bounds, live))
    known = [order != 0 for order in orders if order is not None]
    return {
        "files_in_order": sum(known),
        "files_out_of_order": len(known) - sum(known),
        "files_overlapping": _count_overlapping(hulls),
    }


def _count_overlapping(hulls: Sequence[tuple[Any, Any]]) -> int:
    """Count (low, high) ranges that overlap another one by more than an end point."""
    order = sorted(hulls)
    ends = list(accumulate((high for _, high in order), max))  # the highest end so far
    after_end = [bool(low < end) for (low, _), end in zip(order[1:], ends, strict=False)]
    before_start = [bool(start < high) for (_, high), (start, _) in pairwise(order)]
    return sum(map(max, [False, *after_end], [*before_start, False]))


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
        nothing = [np.zeros(len(part.rows), np.bool_) for part in parts]
        parts = [PrunableContainers(no, no, no, *part[3:]) for no, part in zip(nothing, parts, strict=True)]
    row_groups = PrunableContainers(*map(np.concatenate, zip(*parts, strict=True)))
    has_pages = bool((row_groups.costs[row_groups.rows > 0, 2] > 0).all())
    row_groups.costs[:, 2] = np.maximum(row_groups.costs[:, 2], 1)
    reads = expected_reads(row_groups, len(files), distinct)
    scale = np.append(row_groups.costs[:, :2].sum(axis=0) / totals, 1.0)
    shares = (reads.point, reads.point_files), (reads.small_range, reads.range_files)
    point, small_range = (_lookup(share * scale, files, has_pages) for share, files in shares)
    return point, small_range


def _lookup(shares: np.ndarray, files: float, has_pages: bool) -> LookupCost:
    num_bytes, row_groups, pages = np.clip(shares, 0.0, 1.0).round(12).tolist()  # sums are off by the last bits
    return LookupCost(min(files, 1.0), row_groups, num_bytes, pages if has_pages else None)
