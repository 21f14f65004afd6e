"""Figures drawn from the times: ratios, geometric means, and which workloads are slower than pyarrow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from asv_benchmarks.timing import Outcome

Results = Mapping[str, Mapping[str, Outcome]]
"""``results[workload][reader]``."""


def geometric_mean(values: Iterable[float]) -> float | None:
    """Geometric mean of positive numbers; None of no numbers."""
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms)) if logarithms else None


def ratio(outcomes: Mapping[str, Outcome], base: str, peer: str) -> float | None:
    """Best time of `peer` over that of `base`: larger than 1 means that `base` is faster. None where one is missing."""
    times = [outcomes[name].best if name in outcomes else None for name in (peer, base)]
    return None if None in times else times[0] / times[1]


@dataclass(frozen=True)
class Summary:
    """What one peer's column comes to: the mean of its ratios, their number, and the workloads where `base` loses."""

    mean: float | None
    compared: int
    slower: tuple[str, ...]


def summarise(results: Results, base: str, peer: str) -> Summary:
    """Summary over all workloads that both have a time for."""
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
    """Fastest of `peers`; None where it or `base` has no time."""
    ratios = {peer: ratio(outcomes, base, peer) for peer in peers}
    known = [Best(peer, value) for peer, value in ratios.items() if value is not None]
    return min(known, key=lambda best: best.ratio, default=None)
