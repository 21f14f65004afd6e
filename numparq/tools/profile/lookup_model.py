"""Cost model of look-ups: the expected share of containers read, by how their bounds overlap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

SMALL_RANGE_SHARE = 0.01  # share of all rows in a small range
_NUM_LOOKUPS = 512
_MAX_LOOKUPS_PER_CONTAINER = 8
_MAX_MATRIX_CELLS = 1 << 21  # look-ups times containers


@dataclass(frozen=True)
class PrunableContainers:
    """Containers (row groups or pages) that a look-up reads or prunes; one item each.

    Attributes
    ----------
    lows, highs : array of keys
        Bounds.
    known : bool array
        Whether a container has bounds; one without is always read.
    rows : float64 array
        Non-null values; containers without any are never read.
    costs : float64 array, (containers, costs)
        Cost of reading a whole container, in several units.
    read_share : float64 array, (containers, costs)
        Share of the cost of one look-up that reads the container; below 1 if pages can be skipped.
    read_probability : float64 array
        Probability of reading a container that the bounds do not prune and that is not the value's own; below 1 with
        a Bloom filter.
    files : int64 array
        Ordinal of the file of each container, ascending.
    """

    lows: np.ndarray
    highs: np.ndarray
    known: np.ndarray
    rows: np.ndarray
    costs: np.ndarray
    read_share: np.ndarray
    read_probability: np.ndarray
    files: np.ndarray

    def take(self, chosen: np.ndarray) -> PrunableContainers:
        """Return the containers at some indices."""
        return PrunableContainers(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class ExpectedReads:
    """Expected shares that look-ups read, from 0 to 1.

    `point` (one value) and `small_range` (1 % of the rows) have an item for each of `PrunableContainers.costs`.
    """

    point: np.ndarray
    small_range: np.ndarray
    point_files: float
    range_files: float


def expected_reads(containers: PrunableContainers, num_files: int, points: int = _NUM_LOOKUPS) -> ExpectedReads:
    """Return the shares that look-ups read; zero if there are no values.

    `num_files` includes files without containers. At most `points` look-ups are tried, spread evenly by rows.
    """
    total = np.maximum(containers.costs.sum(axis=0), 1e-300)
    live = containers.take(np.flatnonzero(containers.rows > 0))
    if not len(live.rows):
        return ExpectedReads(np.zeros(len(total)), np.zeros(len(total)), 0.0, 0.0)
    if not live.known.any():
        share = live.costs.sum(axis=0) / total
        in_files = len(np.unique(live.files)) / num_files
        return ExpectedReads(share, share, in_files, in_files)
    asked = _SampledLookups.sample(live, points)
    point, point_files = _point_reads(live, asked)
    small_range, range_files = _range_reads(live, asked)
    return ExpectedReads(point / total, small_range / total, point_files / num_files, range_files / num_files)


def expected_point_reads(containers: PrunableContainers, points: int) -> list[float]:
    """Return only `ExpectedReads.point`; parameters as in `expected_reads`."""
    live = containers.take(np.flatnonzero(containers.rows > 0))
    if not len(live.rows) or not live.known.any():
        shares = expected_reads(containers, 1, points).point
    else:
        cost, _ = _point_reads(live, _SampledLookups.sample(live, points))
        shares = cost / np.maximum(containers.costs.sum(axis=0), 1e-300)
    return [float(share) for share in shares]


@dataclass(frozen=True)
class _SampledLookups:
    """Sampled look-up values and the bounds of all containers, as ranks in their common order."""

    ranks: np.ndarray  # rank of each value, ascending
    origins: np.ndarray  # container of each value
    weights: np.ndarray  # weight of each value; sum 1
    lows: np.ndarray
    highs: np.ndarray

    @classmethod
    def sample(cls, containers: PrunableContainers, points: int) -> _SampledLookups:
        places = np.flatnonzero(containers.known)
        rows = containers.rows[places]
        each = 1
        if len(places) <= points:
            each = max(1, min(_MAX_LOOKUPS_PER_CONTAINER, points // len(places)))
            origins, weights = np.repeat(places, each), np.repeat(rows / each, each)
        else:  # all `points`, at equal distances in rows
            edges = np.cumsum(rows)
            wanted = (np.arange(points) + 0.5) * edges[-1] / points
            origins = places[np.minimum(np.searchsorted(edges, wanted), len(places) - 1)]
            weights = np.ones(points)
        shares = (np.arange(len(origins)) % each + 0.5) / each
        values = _interpolate(containers.lows[origins], containers.highs[origins], shares)
        everything = np.concatenate([containers.lows[places], containers.highs[places], values])
        _, ranks = np.unique(everything, return_inverse=True)
        lows, highs = np.zeros(len(containers.rows), np.int64), np.full(len(containers.rows), len(everything), np.int64)
        lows[places], highs[places] = ranks[: len(places)], ranks[len(places) : 2 * len(places)]
        found = ranks[2 * len(places) :]
        order = np.argsort(found, kind="stable")
        return cls(found[order], origins[order], weights[order] / weights.sum(), lows, highs)

    def range_ends(self) -> np.ndarray:
        """Return for each value the rank at the end of the range that starts there and has 1 % of the rows."""
        edges = np.cumsum(self.weights)
        return self.ranks[np.minimum(np.searchsorted(edges, edges + SMALL_RANGE_SHARE), len(self.ranks) - 1)]


def _point_reads(containers: PrunableContainers, sample: _SampledLookups) -> tuple[np.ndarray, float]:
    """Return the mean cost and the mean number of files that look-ups of one value read."""
    costs, files = containers.costs * containers.read_share, 0.0
    cost = np.zeros(costs.shape[1])
    for turn in _batches(len(sample.ranks), len(containers.rows)):
        ranks, weights = sample.ranks[turn, None], sample.weights[turn]
        hits = ((sample.lows <= ranks) & (sample.highs >= ranks)) * containers.read_probability
        hits[np.arange(len(ranks)), sample.origins[turn]] = 1.0
        cost += (weights @ hits) @ costs
        files += _count_files(hits, weights, containers.files)
    return cost, files


def _range_reads(containers: PrunableContainers, sample: _SampledLookups) -> tuple[np.ndarray, float]:
    """Return the mean cost and the mean number of files that small ranges read, starting at each value."""
    ends, span = sample.range_ends(), np.maximum(sample.highs - sample.lows, 1).astype(np.float64)
    cost, files = np.zeros(containers.costs.shape[1]), 0.0
    for turn in _batches(len(sample.ranks), len(containers.rows)):
        start, stop, weights = sample.ranks[turn, None], ends[turn, None], sample.weights[turn]
        hits = ((sample.lows <= stop) & (sample.highs >= start)).astype(np.float64)
        covered = np.clip(np.minimum(sample.highs, stop) - np.maximum(sample.lows, start), 0, None) / span
        for place in range(len(cost)):
            one = containers.read_share[:, place]  # share for one value; the rest in proportion to the range
            share = (one + covered * (1 - one)) * hits
            cost[place] += (weights @ share) @ containers.costs[:, place]
        files += _count_files(hits, weights, containers.files)
    return cost, files


def _batches(count: int, num_runs: int) -> Iterator[slice]:
    """Divide look-ups so that the matrix of a batch and all containers stays small."""
    step = max(_MAX_MATRIX_CELLS // num_runs, 1)
    return (slice(first, first + step) for first in range(0, count, step))


def _count_files(hits: np.ndarray, weights: np.ndarray, files: np.ndarray) -> float:
    """Return the mean number of files with a container that is read."""
    firsts = np.flatnonzero(np.diff(files, prepend=files[0] - 1))
    return float(weights @ np.maximum.reduceat(hits, firsts, axis=1).sum(axis=1))


# --- interpolation ----------------------------------------------------------------------------------------------------


def _interpolate(lows: np.ndarray, highs: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return values between lower and upper bounds at the given shares of the way."""
    if lows.dtype == object:
        made = np.empty(len(lows), object)
        made[:] = [_interpolate_one(*item) for item in zip(lows, highs, shares.tolist(), strict=True)]
        return made
    if lows.dtype.kind == "f":
        big = np.finfo(np.float64).max / 4
        low, high = np.clip(lows, -big, big), np.clip(highs, -big, big)
        floats: np.ndarray = np.clip(low + (high - low) * shares, lows, highs)
        return floats
    width = highs.view(np.uint64) - lows.view(np.uint64)  # wraps around as intended
    steps = np.minimum((width.astype(np.float64) * shares).clip(0, 2.0**63), width.astype(np.float64))
    integers: np.ndarray = (lows.view(np.uint64) + np.minimum(steps.astype(np.uint64), width)).view(lows.dtype)
    return integers


def _interpolate_one(low: Any, high: Any, share: float) -> Any:
    if isinstance(low, int):
        return low + (high - low) * int(share * 1024) // 1024
    same = next((at for at, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    first, last = (int.from_bytes(each[same : same + 6].ljust(6, b"\0"), "big") for each in (low, high))
    found = low[:same] + (first + int((last - first) * share)).to_bytes(6, "big")
    return min(max(found, low), high)
