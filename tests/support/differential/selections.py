"""Fourteen shapes of selections: options of a read, and the rows that it must return."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from numparq import col

from .files import KEY_STEP, PAGE


class Selection(NamedTuple):
    """A selection of rows, counted over all files."""

    name: str
    options: dict[str, Any]
    rows: np.ndarray
    reads_x: bool = False  # whether the filter needs the values of `x`


def selections(table: pa.Table, is_flat: bool) -> list[Selection]:
    """Return the selections of a table."""
    count, key = table.num_rows, col("key")
    rows = np.arange(count)
    half = np.flatnonzero(np.random.default_rng(1).random(count) < 0.5)
    middle, last = count // 2, count - 1

    def keys(some: np.ndarray) -> dict[str, Any]:
        return {"filters": key.isin((some * KEY_STEP).tolist())}

    def run(start: int, stop: int) -> dict[str, Any]:
        return {"row_range": (start, stop)}

    far = (key < 2 * KEY_STEP) | ((key >= (last - 20) * KEY_STEP) & (key < (last - 15) * KEY_STEP))
    found = [
        Selection("all", {}, rows),
        Selection("none", {"filters": key == middle * KEY_STEP + 1}, rows[:0]),
        Selection("first", {"filters": [("key", "==", 0)]}, rows[:1]),
        Selection("last", {"filters": key == last * KEY_STEP}, rows[last:]),
        Selection("run in a page", run(PAGE + 3, PAGE + 9), rows[PAGE + 3 : PAGE + 9]),
        Selection("run over a page bound", run(2 * PAGE - 4, 3 * PAGE + 5), rows[2 * PAGE - 4 : 3 * PAGE + 5]),
        Selection("whole pages", run(PAGE, 3 * PAGE), rows[PAGE : 3 * PAGE]),
        Selection("every 2nd", keys(rows[::2]), rows[::2]),
        Selection("every 7th", keys(rows[3::7]), rows[3::7]),
        Selection("every 100th", keys(rows[40::100]), rows[40::100]),
        Selection("two far runs", {"filters": far}, np.concatenate([rows[:2], rows[last - 20 : last - 15]])),
        Selection("mask of half", keys(half), half),
        Selection("head", {"nrows": 23}, rows[:23]),
    ]
    if is_flat:
        there = np.flatnonzero(table["x"].is_valid().to_numpy())
        return [*found, Selection("filter", {"filters": col("x").is_not_null()}, there, reads_x=True)]
    words = np.array([value == "word 3" for value in table["z"].to_pylist()])
    return [*found, Selection("filter", {"filters": col("z") == "word 3"}, np.flatnonzero(words))]
