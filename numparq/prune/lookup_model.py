"""Cost model of look-ups: the expected share of row groups or pages that bounds and Bloom filters leave."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from numparq.format.bloom_filter import DEFAULT_FPP, false_positive_rate

SMALL_RANGE_SHARE = 0.01  # share of all rows in a small range
_NUM_LOOKUPS = 512
_MAX_LOOKUPS_PER_CONTAINER = 8
_MAX_MATRIX_CELLS = 1 << 21  # look-ups times containers


class PrunableContainers(NamedTuple):
    """Containers (row groups or pages) that a look-up reads or prunes; one item each.

    Attributes
    ----------
    lows, highs, known
        As in `KeyBounds`. A container without bounds is always read.
    rows : float64 array
        Non-null values; containers without any are never read.
    costs : float64 array, (containers, costs)
        Cost of reading a whole container, in several units.
    read_share : float64 array, (containers, costs)
        Share of the cost of one look-up that reads the container; below 1 if pages can be skipped.
    bloom_bytes : int64 array
        Bytes of the Bloom filter; 0 without one, 1 if the length is not known.
    files : int64 array
        Ordinal of the file of each container, ascending.
    """

    lows: np.ndarray
    highs: np.ndarray
    known: np.ndarray
    rows: np.ndarray
    costs: np.ndarray
    read_share: np.ndarray
    bloom_bytes: np.ndarray
    files: np.ndarray


class ExpectedReads(NamedTuple):
    """Expected shares, from 0 to 1, of each cost and of files that look-ups of one value, or 1 % of the rows, read."""

    point: np.ndarray
    small_range: np.ndarray
    point_files: float
    range_files: float


def expected_reads(
    containers: PrunableContainers, num_files: int, distinct: int | None = None, points: int = _NUM_LOOKUPS
) -> ExpectedReads:
    """Return the shares that look-ups read; zero if there are no values.

    `num_files` includes files without containers; `distinct` None: all values are taken as distinct. At most `points`
    look-ups are tried, spread evenly by rows.
    """
    total, live = _live(containers)
    if not live.known.any():
        share, files = live.costs.sum(axis=0) / total, len(np.unique(live.files)) / num_files
        return ExpectedReads(share, share, files, files)
    sample = _SampledLookups.sample(live, points)
    chances = _read_probabilities(live.rows, live.bloom_bytes, distinct)
    point, point_files = _mean_reads(live, sample, sample.ranks, chances)
    small_range, range_files = _mean_reads(live, sample, sample.range_ends(), None)
    return ExpectedReads(point / total, small_range / total, point_files / num_files, range_files / num_files)


def expected_point_reads(containers: PrunableContainers, points: int) -> list[float]:
    """Return `ExpectedReads.point` alone, without Bloom filters."""
    total, live = _live(containers)
    if live.known.all() and (live.highs[:-1] < live.lows[1:]).all():  # each value lies in one container
        cost = live.rows @ (live.costs * live.read_share) / max(live.rows.sum(), 1.0)
    elif live.known.any():
        sample = _SampledLookups.sample(live, points)
        cost, _ = _mean_reads(live, sample, sample.ranks, np.ones(len(live.rows)))
    else:
        cost = live.costs.sum(axis=0)
    shares: list[float] = (cost / total).tolist()
    return shares


def _live(containers: PrunableContainers) -> tuple[np.ndarray, PrunableContainers]:
    """Return the total of each cost, and the containers with values."""
    selected = np.flatnonzero(containers.rows > 0)
    return np.maximum(containers.costs.sum(axis=0), 1e-300), PrunableContainers(
        *(each[selected] for each in containers)
    )


def _read_probabilities(rows: np.ndarray, bloom_bytes: np.ndarray, distinct: int | None) -> np.ndarray:
    """Return how likely a container whose bounds include a value is read, unless the value is known to be there.

    Below 1 with a Bloom filter: the value occurs there too (uniformly distributed) or is a false positive.
    """
    others = max(rows.sum() / distinct - 1, 0.0) if distinct else 0.0  # other rows with the same value
    has_value = 1 - (1 - 1 / len(rows)) ** min(others, 1e9) if len(rows) > 1 else 0.0
    chances = np.ones(len(rows))
    for at in np.flatnonzero(bloom_bytes > 0).tolist():
        num_distinct, size = float(min(rows[at], distinct or rows[at])), int(bloom_bytes[at])
        rate = DEFAULT_FPP if size == 1 else false_positive_rate(num_distinct, size)
        chances[at] = has_value + (1 - has_value) * rate
    return chances


class _SampledLookups(NamedTuple):
    """Sampled look-up values and the bounds of all containers, as ranks in their common order."""

    ranks: np.ndarray  # rank of each value, ascending
    origins: np.ndarray  # container of each value
    weights: np.ndarray  # weight of each value; sum 1
    lows: np.ndarray
    highs: np.ndarray

    @classmethod
    def sample(cls, containers: PrunableContainers, points: int) -> _SampledLookups:
        bounded = np.flatnonzero(containers.known)
        rows, each = containers.rows[bounded], 1
        if len(bounded) <= points:
            each = max(1, min(_MAX_LOOKUPS_PER_CONTAINER, points // len(bounded)))
            origins, weights = np.repeat(bounded, each), np.repeat(rows / each, each)
        else:  # all `points`, at equal distances in rows
            edges = np.cumsum(rows)
            distances = (np.arange(points) + 0.5) * edges[-1] / points
            origins = bounded[np.minimum(np.searchsorted(edges, distances), len(bounded) - 1)]
            weights = np.ones(points)
        shares = (np.arange(len(origins)) % each + 0.5) / each
        values = _interpolate(containers.lows[origins], containers.highs[origins], shares)
        everything = np.concatenate([containers.lows[bounded], containers.highs[bounded], values])
        _, ranks = np.unique(everything, return_inverse=True)
        lows, highs = np.zeros(len(containers.rows), np.int64), np.full(len(containers.rows), len(everything), np.int64)
        lows[bounded], highs[bounded], values = np.split(ranks, [len(bounded), 2 * len(bounded)])
        order = np.argsort(values, kind="stable")
        return cls(values[order], origins[order], weights[order] / weights.sum(), lows, highs)

    def range_ends(self) -> np.ndarray:
        """Return for each value the rank at the end of the range that starts there and has 1 % of the rows."""
        edges = np.cumsum(self.weights)
        return self.ranks[np.minimum(np.searchsorted(edges, edges + SMALL_RANGE_SHARE), len(self.ranks) - 1)]


def _mean_reads(
    containers: PrunableContainers, sample: _SampledLookups, ends: np.ndarray, chances: np.ndarray | None
) -> tuple[np.ndarray, float]:
    """Return the mean cost and number of files that look-ups read, from each sampled value to its end (a rank).

    `chances` are those of `_read_probabilities` for look-ups of one value; None: Bloom filters do not help.
    """
    span = np.maximum(sample.highs - sample.lows, 1).astype(np.float64)
    firsts = np.flatnonzero(np.diff(containers.files, prepend=containers.files[0] - 1))
    cost, files = np.zeros(containers.costs.shape[1]), 0.0
    step = max(_MAX_MATRIX_CELLS // len(containers.rows), 1)
    for first in range(0, len(ends), step):
        turn = slice(first, first + step)
        start, stop, weights = sample.ranks[turn, None], ends[turn, None], sample.weights[turn]
        hits = ((sample.lows <= stop) & (sample.highs >= start)).astype(np.float64)
        covered = np.clip(np.minimum(sample.highs, stop) - np.maximum(sample.lows, start), 0, None) / span
        if chances is not None:
            hits *= chances
            hits[np.arange(len(weights)), sample.origins[turn]] = 1.0
        for unit, one in enumerate(containers.read_share.T):  # share for one value; the rest in proportion to the range
            cost[unit] += (weights @ (hits * (one + covered * (1 - one)))) @ containers.costs[:, unit]
        files += float(weights @ np.maximum.reduceat(hits, firsts, axis=1).sum(axis=1))
    return cost, files


# --- interpolation ----------------------------------------------------------------------------------------------------


def _interpolate(lows: np.ndarray, highs: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return values between lower and upper bounds at the given shares of the way."""
    if lows.dtype == object:
        objects = np.empty(len(lows), object)
        objects[:] = [_interpolate_one(*item) for item in zip(lows, highs, shares.tolist(), strict=True)]
        return objects
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
    between = low[:same] + (first + int((last - first) * share)).to_bytes(6, "big")
    return min(max(between, low), high)
