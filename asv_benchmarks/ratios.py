"""Figures from times: ratios, geometric means, and workloads slower than pyarrow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from asv_benchmarks.timing import Outcome

Results = Mapping[str, Mapping[str, Outcome]]
"""``results[workload][reader]``."""


def geometric_mean(values: Iterable[float]) -> float | None:
    """Return the geometric mean of positive numbers; None without numbers."""
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else None


def ratio(outcomes: Mapping[str, Outcome], base: str, peer: str) -> float | None:
    """Return the best time of `peer` over that of `base` (above 1: `base` is faster); None if one is missing."""
    times = [outcomes[name].best if name in outcomes else None for name in (peer, base)]
    return None if None in times else times[0] / times[1]


@dataclass(frozen=True)
class Summary:
    """Summary of a peer's column: mean ratio, number of ratios, and workloads where `base` is slower."""

    mean: float | None
    compared: int
    slower: tuple[str, ...]


def summarise(results: Results, base: str, peer: str) -> Summary:
    """Return the summary over all workloads with both times."""
    ratios = {workload: ratio(outcomes, base, peer) for workload, outcomes in results.items()}
    known = {workload: value for workload, value in ratios.items() if value is not None}
    return Summary(
        mean=geometric_mean(known.values()),
        compared=len(known),
        slower=tuple(workload for workload, value in known.items() if value < 1.0),
    )


@dataclass(frozen=True)
class Best:
    """The fastest of some peers, and its time over that of the base."""

    peer: str
    ratio: float


def best_peer(outcomes: Mapping[str, Outcome], base: str, peers: Iterable[str]) -> Best | None:
    """Return the fastest of `peers`; None if it or `base` has no time."""
    ratios = {peer: ratio(outcomes, base, peer) for peer in peers}
    known = [Best(peer, value) for peer, value in ratios.items() if value is not None]
    return min(known, key=lambda best: best.ratio, default=None)
