"""Look-ups on a column: prunable row groups of each file, and the expected reads over all files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from numparq.format.bloom_filter import DEFAULT_FPP, false_positive_rate
from numparq.format.schema import Leaf

from .bounds import KeyBounds
from .chunk_metadata import ChunkMetadataTable
from .figures import LookupCost
from .lookup_model import PrunableContainers, expected_point_reads, expected_reads
from .page_index import ChunkPageSummary, bounds_order
from .partial_profile import FileSizes, PartialColumnProfile, PrunableRowGroups
from .value_kind import ValueKind

MAX_CONTAINERS = 64  # per file
_UNKNOWN_BLOOM_BYTES = 1  # placeholder for a Bloom filter without bloom_filter_length
_NUM_LOOKUPS = 64


def prunable_row_groups(
    kind: ValueKind,
    bounds: KeyBounds,
    rows: np.ndarray,
    pages: Sequence[ChunkPageSummary],
    chunk_metadata: ChunkMetadataTable,
    leaf: Leaf,
) -> PrunableRowGroups:
    """Return the row groups of a file for look-ups on one column, merged to at most `MAX_CONTAINERS`.

    `rows` has the non-null values of each chunk (int64).
    """
    has_bloom = chunk_metadata["bloom_offset"][:, leaf.index] > 0
    runs = PrunableRowGroups(
        kind.name,
        bounds.lows,
        bounds.highs,
        bounds.known,
        rows,
        np.maximum(chunk_metadata["compressed"], 0).sum(axis=1),
        np.ones(len(rows), np.int64),
        np.array([chunk.num_pages for chunk in pages], np.int64),
        np.array([chunk.byte_share for chunk in pages]),
        np.array([chunk.page_share for chunk in pages]),
        np.where(has_bloom, np.maximum(chunk_metadata["bloom_length"][:, leaf.index], _UNKNOWN_BLOOM_BYTES), 0),
    )
    if len(rows) <= MAX_CONTAINERS:
        return runs
    edges = np.arange(MAX_CONTAINERS + 1) * len(rows) // MAX_CONTAINERS
    return _merge_neighbours(runs, [np.arange(start, stop) for start, stop in pairwise(edges.tolist())])


def _merge_neighbours(row_groups: PrunableRowGroups, parts: Sequence[np.ndarray]) -> PrunableRowGroups:
    """Merge each of `parts`, indices of neighbouring row groups, into one container."""
    lows, highs = np.empty(len(parts), row_groups.lows.dtype), np.empty(len(parts), row_groups.highs.dtype)
    known = np.zeros(len(parts), np.bool_)
    shares = np.ones((len(parts), 2))
    for place, part in enumerate(parts):
        live = part[row_groups.rows[part] > 0]
        known[place] = bool(len(live)) and bool(row_groups.known[live].all())
        lows[place], highs[place] = (
            (row_groups.lows[live].min(), row_groups.highs[live].max()) if known[place] else (0, 0)
        )
        shares[place] = _lookup_shares(row_groups, part)

    def total(items: np.ndarray) -> np.ndarray:
        return np.array([items[part].sum() for part in parts], np.int64)

    blooms = np.array(
        [row_groups.bloom_bytes[part].sum() if row_groups.bloom_bytes[part].all() else 0 for part in parts]
    )
    return PrunableRowGroups(
        row_groups.kind,
        lows,
        highs,
        known,
        total(row_groups.rows),
        total(row_groups.num_bytes),
        total(row_groups.row_groups),
        total(row_groups.pages),
        shares[:, 0],
        shares[:, 1],
        blooms,
    )


def _lookup_shares(row_groups: PrunableRowGroups, part: np.ndarray) -> list[float]:
    """Return the shares of bytes and pages that a look-up reads of some row groups, one of which has the value."""
    count = len(part)
    costs = np.stack([row_groups.num_bytes[part], np.maximum(row_groups.pages[part], 1)], axis=1).astype(np.float64)
    within = np.stack([row_groups.byte_share[part], row_groups.page_share[part]], axis=1)
    stretches = PrunableContainers(
        row_groups.lows[part],
        row_groups.highs[part],
        row_groups.known[part],
        row_groups.rows[part].astype(np.float64),
        costs,
        within,
        np.ones(count),
        np.zeros(count, np.int64),
    )
    return expected_point_reads(stretches, _NUM_LOOKUPS)


class FileOrderCounts(NamedTuple):
    """Number of files with row groups in order, not in order, and with bounds that overlap another file's."""

    in_order: int = 0
    out_of_order: int = 0
    overlapping: int = 0


def count_file_orders(column: PartialColumnProfile) -> FileOrderCounts:
    """Count how files are ordered inside and among each other, by the bounds of row groups."""
    orders, hulls = [], []
    for at in sorted(column.row_groups):
        runs = column.row_groups[at]
        live = runs.rows > 0
        if not live.any() or not runs.known[live].all():
            continue
        lows, highs = runs.lows[live], runs.highs[live]
        hulls.append((lows.min(), highs.max()))
        order = bounds_order(lows, highs)
        if order is not None:
            orders.append(order)
    in_order = sum(order != 0 for order in orders)
    return FileOrderCounts(in_order, len(orders) - in_order, _count_overlapping(hulls))


def _count_overlapping(hulls: Sequence[tuple[Any, Any]]) -> int:
    """Count (low, high) ranges that overlap another one by more than an end point."""
    order = sorted(hulls)
    found = [False] * len(order)
    reach = 0  # index of the range with the highest end so far
    for at in range(1, len(order)):
        if order[at][0] < order[reach][1]:
            found[at] = found[reach] = True
        if order[at][1] > order[reach][1]:
            reach = at
    return sum(found)


def estimate_lookups(
    column: PartialColumnProfile, files: Mapping[int, FileSizes], distinct: int | None, *, is_mixed: bool
) -> tuple[LookupCost | None, LookupCost | None]:
    """Estimate what look-ups on a column read: of one value, and of 1 % of the rows; None if there is nothing to read.

    `distinct` None: all values are taken as distinct. `is_mixed`: files differ in value kind, so bounds do not compare.
    """
    runs = [(at, column.row_groups[at]) for at in sorted(column.row_groups)]
    totals = np.array([[file.compressed, file.row_groups] for file in files.values()]).sum(axis=0)
    if not runs or not totals.all():
        return None, None
    kinds = {found.kind: found.lows.dtype for _, found in runs}
    stretches = _prunable_containers(runs, distinct, is_known=not is_mixed and len(kinds) == 1)
    scale = np.append(stretches.costs[:, :2].sum(axis=0) / totals, 1.0)
    found = expected_reads(stretches, len(files))
    has_pages = all((item.pages > 0)[item.rows > 0].all() for _, item in runs)
    return (
        _lookup(found.point * scale, found.point_files, has_pages),
        _lookup(found.small_range * scale, found.range_files, has_pages),
    )


def _lookup(shares: np.ndarray, files: float, has_pages: bool) -> LookupCost:
    num_bytes, row_groups, pages = np.clip(shares, 0.0, 1.0).tolist()
    return LookupCost(min(files, 1.0), row_groups, num_bytes, pages if has_pages else None)


def _prunable_containers(
    row_groups: Sequence[tuple[int, PrunableRowGroups]], distinct: int | None, is_known: bool
) -> PrunableContainers:
    def joined(name: str) -> np.ndarray:
        return np.concatenate([getattr(found, name) for _, found in row_groups])

    rows, num_bytes, groups, pages = (joined(name) for name in ("rows", "num_bytes", "row_groups", "pages"))
    lows, highs, known = joined("lows"), joined("highs"), joined("known")
    if not is_known:  # bounds of several kinds may differ in dtype
        lows = highs = np.zeros(len(rows))
        known = np.zeros(len(rows), np.bool_)
    costs = np.stack([num_bytes, groups, np.maximum(pages, 1)], axis=1).astype(np.float64)
    within = np.stack([joined("byte_share"), np.ones(len(rows)), joined("page_share")], axis=1)
    files = np.repeat([at for at, _ in row_groups], [len(found.rows) for _, found in row_groups])
    chance = _read_probabilities(rows, groups, joined("bloom_bytes"), distinct)
    return PrunableContainers(lows, highs, known, rows.astype(np.float64), costs, within, chance, files)


def _read_probabilities(
    rows: np.ndarray, groups: np.ndarray, bloom_bytes: np.ndarray, distinct: int | None
) -> np.ndarray:
    """Return how likely a container whose bounds include a value is read, unless the value is known to be there.

    Below 1 with a Bloom filter: the value occurs there too (uniformly distributed) or is a false positive.
    """
    live = max(int((rows > 0).sum()), 1)
    others = max(rows.sum() / distinct - 1, 0.0) if distinct else 0.0  # other rows with the same value
    has_value = 1 - (1 - 1 / live) ** min(others, 1e9) if live > 1 else 0.0
    rates: dict[tuple[float, float], float] = {}
    found = np.ones(len(rows))
    for at in np.flatnonzero(bloom_bytes > 0).tolist():
        each = float(min(rows[at], distinct or rows[at]) / groups[at]), float(bloom_bytes[at] / groups[at])
        if each not in rates:
            rates[each] = DEFAULT_FPP if each[1] <= 1 else false_positive_rate(*each)  # type: ignore[arg-type]
        found[at] = has_value + (1 - has_value) * rates[each]
    return found
