"""Covering arrays: few cases in which every valid combination of values of any t axes occurs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

CANDIDATES = 40  # completions of an uncovered combination, of which the one that covers most is taken
TRIES = 400  # rows drawn for a combination before it counts as impossible


class _Combinations:
    """Numbers of the combinations of values of any `strength` axes, and those not covered yet."""

    def __init__(self, sizes: np.ndarray, strength: int) -> None:
        self.axes = np.array(list(itertools.combinations(range(len(sizes)), strength)))
        counts = sizes[self.axes]
        self._strides = np.cumprod(np.concatenate([np.ones((len(counts), 1), int), counts[:, :0:-1]], 1), 1)[:, ::-1]
        self._starts = np.concatenate([[0], np.cumsum(counts.prod(1))])
        self._counts = counts
        self.missing = np.ones(self._starts[-1], bool)

    def numbers(self, rows: np.ndarray) -> np.ndarray:
        """Return the combinations of each row, shape (rows, combinations of axes)."""
        found: np.ndarray = (rows[:, self.axes] * self._strides).sum(2) + self._starts[:-1]
        return found

    def values(self, number: int) -> dict[int, int]:
        """Return the value of each axis of a combination."""
        place = int(np.searchsorted(self._starts, number, side="right")) - 1
        left = (number - self._starts[place]) // self._strides[place] % self._counts[place]
        return dict(zip(self.axes[place].tolist(), left.tolist(), strict=True))


def covering_array(
    axes: Mapping[str, Sequence[str]], strength: int, is_valid: Callable[[dict[str, str]], bool], seed: int = 0
) -> list[dict[str, str]]:
    """Return valid cases that cover all possible combinations of values of any `strength` axes, greedily."""
    rng = np.random.default_rng(seed)
    names, sizes = list(axes), np.array([len(values) for values in axes.values()])
    combinations = _Combinations(sizes, strength)
    chosen = []

    def case(row: np.ndarray) -> dict[str, str]:
        return {name: axes[name][at] for name, at in zip(names, row.tolist(), strict=True)}

    for number in rng.permutation(len(combinations.missing)).tolist():
        if not combinations.missing[number]:
            continue
        found: list[np.ndarray] = []
        for _ in range(TRIES // CANDIDATES):
            rows = rng.integers(0, sizes, (CANDIDATES, len(sizes)))
            for axis, value in combinations.values(number).items():
                rows[:, axis] = value
            found.extend(row for row in rows if is_valid(case(row)))
            if len(found) >= CANDIDATES // 2:
                break
        combinations.missing[number] = False
        if found:
            covered = combinations.numbers(np.array(found))
            best = int(combinations.missing[covered].sum(1).argmax())
            combinations.missing[covered[best]] = False
            chosen.append(case(found[best]))
    return chosen
