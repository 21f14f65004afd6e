"""Cost model of look-ups: the expected share of containers read, by how their bounds overlap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["ExpectedReads", "PrunableContainers", "expected_point_reads", "expected_reads"]

SMALL_RANGE_SHARE = 0.01  # of all rows, that a small range has
_NUM_LOOKUPS = 512
_MAX_LOOKUPS_PER_CONTAINER = 8
_MAX_MATRIX_CELLS = 1 << 21  # of a matrix of look-ups and runs


@dataclass(frozen=True)
class PrunableContainers:
    """Runs of values, of which each is read or not; each array has an item a run.

    Parameters
    ----------
    lows, highs : array of keys
        Their bounds.
    known : bool array
        Which of them have bounds; the others are always read.
    rows : float64 array
        Values, nulls not counted; runs without any are never read.
    costs : float64 array, (runs, costs)
        What reading all of a run takes, in several currencies.
    within : float64 array, (runs, costs)
        The share of that which one look-up takes where it reads the run: less than 1 where pages can be skipped.
    chance : float64 array
        How likely a run is read that the bounds do not rule out, and that is not the one the value is from: less than
        1 where there is a Bloom filter.
    files : int64 array
        Which file each run is in, ascending.
    """

    lows: np.ndarray
    highs: np.ndarray
    known: np.ndarray
    rows: np.ndarray
    costs: np.ndarray
    within: np.ndarray
    chance: np.ndarray
    files: np.ndarray

    def at(self, chosen: np.ndarray) -> PrunableContainers:
        """Give some of them."""
        return PrunableContainers(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class ExpectedReads:
    """The shares that look-ups read.

    Parameters
    ----------
    point, small_range : float64 array, (costs,)
        Of each of `PrunableContainers.costs`: by a look-up of one value, and of a range that has 1 % of the rows.
    point_files, range_files : float
        Of the files.
    """

    point: np.ndarray
    small_range: np.ndarray
    point_files: float
    range_files: float


def expected_reads(runs: PrunableContainers, num_files: int, points: int = _NUM_LOOKUPS) -> ExpectedReads:
    """Give the shares that look-ups read.

    Parameters
    ----------
    runs : PrunableContainers
        All runs.
    num_files : int
        All files, those without runs counted.
    points : int
        Look-ups that are tried; runs are chosen evenly by their rows where there are more of them.

    Returns
    -------
    ExpectedReads
        All zero where there are no values.
    """
    total = np.maximum(runs.costs.sum(axis=0), 1e-300)
    live = runs.at(np.flatnonzero(runs.rows > 0))
    if not len(live.rows):
        return ExpectedReads(np.zeros(len(total)), np.zeros(len(total)), 0.0, 0.0)
    if not live.known.any():
        share = live.costs.sum(axis=0) / total
        in_files = len(np.unique(live.files)) / num_files
        return ExpectedReads(share, share, in_files, in_files)
    asked = _SampledLookups.of(live, points)
    point, point_files = _point_reads(live, asked)
    small_range, range_files = _range_reads(live, asked)
    return ExpectedReads(point / total, small_range / total, point_files / num_files, range_files / num_files)


def expected_point_reads(runs: PrunableContainers, points: int) -> list[float]:
    """Give `ExpectedReads.point` alone; parameters as of `expected_reads`."""
    live = runs.at(np.flatnonzero(runs.rows > 0))
    if not len(live.rows) or not live.known.any():
        return expected_reads(runs, 1, points).point.tolist()
    cost, _ = _point_reads(live, _SampledLookups.of(live, points))
    return (cost / np.maximum(runs.costs.sum(axis=0), 1e-300)).tolist()


@dataclass(frozen=True)
class _SampledLookups:
    """Values that are looked up, and the bounds of all runs, as ranks: places in the order of all of them together."""

    ranks: np.ndarray  # of the values, ascending
    origins: np.ndarray  # the run that each is from
    weights: np.ndarray  # of each; 1 together
    lows: np.ndarray
    highs: np.ndarray

    @classmethod
    def of(cls, runs: PrunableContainers, points: int) -> _SampledLookups:
        places = np.flatnonzero(runs.known)
        rows = runs.rows[places]
        each = 1
        if len(places) <= points:
            each = max(1, min(_MAX_LOOKUPS_PER_CONTAINER, points // len(places)))
            origins, weights = np.repeat(places, each), np.repeat(rows / each, each)
        else:  # as many as may be, at equal distances in rows
            edges = np.cumsum(rows)
            wanted = (np.arange(points) + 0.5) * edges[-1] / points
            origins = places[np.minimum(np.searchsorted(edges, wanted), len(places) - 1)]
            weights = np.ones(points)
        shares = (np.arange(len(origins)) % each + 0.5) / each
        values = _interpolate(runs.lows[origins], runs.highs[origins], shares)
        everything = np.concatenate([runs.lows[places], runs.highs[places], values])
        _, ranks = np.unique(everything, return_inverse=True)
        lows, highs = np.zeros(len(runs.rows), np.int64), np.full(len(runs.rows), len(everything), np.int64)
        lows[places], highs[places] = ranks[: len(places)], ranks[len(places) : 2 * len(places)]
        found = ranks[2 * len(places) :]
        order = np.argsort(found, kind="stable")
        return cls(found[order], origins[order], weights[order] / weights.sum(), lows, highs)

    def ends(self) -> np.ndarray:
        """Give for each value the one that has 1 % of the rows between them."""
        edges = np.cumsum(self.weights)
        return self.ranks[np.minimum(np.searchsorted(edges, edges + SMALL_RANGE_SHARE), len(self.ranks) - 1)]


def _point_reads(runs: PrunableContainers, sample: _SampledLookups) -> tuple[np.ndarray, float]:
    """Give the costs and the number of files that look-ups of one value read, on the average."""
    costs, files = runs.costs * runs.within, 0.0
    cost = np.zeros(costs.shape[1])
    for turn in _batches(len(sample.ranks), len(runs.rows)):
        ranks, weights = sample.ranks[turn, None], sample.weights[turn]
        hits = ((sample.lows <= ranks) & (sample.highs >= ranks)) * runs.chance
        hits[np.arange(len(ranks)), sample.origins[turn]] = 1.0
        cost += (weights @ hits) @ costs
        files += _count_files(hits, weights, runs.files)
    return cost, files


def _range_reads(runs: PrunableContainers, sample: _SampledLookups) -> tuple[np.ndarray, float]:
    """Give the same of small ranges, which begin at each of the values."""
    ends, span = sample.ends(), np.maximum(sample.highs - sample.lows, 1).astype(np.float64)
    cost, files = np.zeros(runs.costs.shape[1]), 0.0
    for turn in _batches(len(sample.ranks), len(runs.rows)):
        start, stop, weights = sample.ranks[turn, None], ends[turn, None], sample.weights[turn]
        hits = ((sample.lows <= stop) & (sample.highs >= start)).astype(np.float64)
        covered = np.clip(np.minimum(sample.highs, stop) - np.maximum(sample.lows, start), 0, None) / span
        for place in range(len(cost)):
            one = runs.within[:, place]  # what a single value takes; the rest as far as the range reaches
            share = (one + covered * (1 - one)) * hits
            cost[place] += (weights @ share) @ runs.costs[:, place]
        files += _count_files(hits, weights, runs.files)
    return cost, files


def _batches(count: int, num_runs: int) -> Iterator[slice]:
    """Divide look-ups so that a matrix of some of them and all runs is not too large."""
    step = max(_MAX_MATRIX_CELLS // num_runs, 1)
    return (slice(first, first + step) for first in range(0, count, step))


def _count_files(hits: np.ndarray, weights: np.ndarray, files: np.ndarray) -> float:
    """Count the files that have a run which is read, on the average."""
    firsts = np.flatnonzero(np.diff(files, prepend=files[0] - 1))
    return float(weights @ np.maximum.reduceat(hits, firsts, axis=1).sum(axis=1))


# --- values between bounds --------------------------------------------------------------------------------------------


def _interpolate(lows: np.ndarray, highs: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Give values on the way from lower bounds to upper ones."""
    if lows.dtype == object:
        made = np.empty(len(lows), object)
        made[:] = [_interpolate_one(*item) for item in zip(lows, highs, shares.tolist(), strict=True)]
        return made
    if lows.dtype.kind == "f":
        big = np.finfo(np.float64).max / 4
        low, high = np.clip(lows, -big, big), np.clip(highs, -big, big)
        return np.clip(low + (high - low) * shares, lows, highs)
    width = highs.view(np.uint64) - lows.view(np.uint64)  # which wraps around, as it has to
    steps = np.minimum((width.astype(np.float64) * shares).clip(0, 2.0**63), width.astype(np.float64))
    return (lows.view(np.uint64) + np.minimum(steps.astype(np.uint64), width)).view(lows.dtype)


def _interpolate_one(low: Any, high: Any, share: float) -> Any:
    if isinstance(low, int):
        return low + (high - low) * int(share * 1024) // 1024
    same = next((at for at, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    first, last = (int.from_bytes(each[same : same + 6].ljust(6, b"\0"), "big") for each in (low, high))
    found = low[:same] + (first + int((last - first) * share)).to_bytes(6, "big")
    return min(max(found, low), high)
