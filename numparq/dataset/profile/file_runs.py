"""The row groups of a file as what a look-up on one column reads or skips; of very many, neighbours together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ...schema import Leaf
from .bounds import KeyBounds
from .footers import ChunkFacts
from .kinds import Kind
from .pages import ChunkPages
from .part import FileRuns
from .skipping import Stretches, expected_shares

__all__ = ["file_runs"]

MOST_RUNS = 64  # of a file
_UNTOLD_BLOOM = 1  # bytes, of a Bloom filter whose length the footer does not tell
_POINTS = 64


def file_runs(
    kind: Kind, bounds: KeyBounds, rows: np.ndarray, pages: Sequence[ChunkPages], facts: ChunkFacts, leaf: Leaf
) -> FileRuns:
    """Make the runs of a file for one column.

    Parameters
    ----------
    kind : Kind
        Of its values.
    bounds : KeyBounds
        Of its chunks.
    rows : int64 array
        Values of each chunk, nulls not counted.
    pages : sequence of ChunkPages
        What is known of the pages of each chunk.
    facts : ChunkFacts
        What the footer says of all chunks.
    leaf : Leaf
        The column.

    Returns
    -------
    FileRuns
        At most `MOST_RUNS`.
    """
    has_bloom = facts["bloom_offset"][:, leaf.index] > 0
    runs = FileRuns(
        kind.name, bounds.lows, bounds.highs, bounds.known, rows,
        np.maximum(facts["compressed"], 0).sum(axis=1), np.ones(len(rows), np.int64),
        np.array([chunk.number for chunk in pages], np.int64), np.array([chunk.share for chunk in pages]),
        np.array([chunk.page_share for chunk in pages]),
        np.where(has_bloom, np.maximum(facts["bloom_length"][:, leaf.index], _UNTOLD_BLOOM), 0),
    )  # fmt: skip
    if len(rows) <= MOST_RUNS:
        return runs
    edges = np.arange(MOST_RUNS + 1) * len(rows) // MOST_RUNS
    return _joined(runs, [np.arange(start, stop) for start, stop in pairwise(edges.tolist())])


def _joined(runs: FileRuns, parts: Sequence[np.ndarray]) -> FileRuns:
    """Make one run of each of several neighbours."""
    lows, highs = np.empty(len(parts), runs.lows.dtype), np.empty(len(parts), runs.highs.dtype)
    known = np.zeros(len(parts), np.bool_)
    shares = np.ones((len(parts), 2))
    for place, part in enumerate(parts):
        live = part[runs.rows[part] > 0]
        known[place] = bool(len(live)) and bool(runs.known[live].all())
        lows[place], highs[place] = (runs.lows[live].min(), runs.highs[live].max()) if known[place] else (0, 0)
        shares[place] = _shares(runs, part)

    def total(items: np.ndarray) -> np.ndarray:
        return np.array([items[part].sum() for part in parts], np.int64)

    blooms = np.array([runs.bloom_bytes[part].sum() if runs.bloom_bytes[part].all() else 0 for part in parts])
    return FileRuns(
        runs.kind, lows, highs, known, total(runs.rows), total(runs.num_bytes), total(runs.row_groups),
        total(runs.pages), shares[:, 0], shares[:, 1], blooms,
    )  # fmt: skip


def _shares(runs: FileRuns, part: np.ndarray) -> list[float]:
    """Give the shares of the bytes, and of the pages, of some runs that a look-up of a value in one of them reads."""
    count = len(part)
    costs = np.stack([runs.num_bytes[part], np.maximum(runs.pages[part], 1)], axis=1).astype(np.float64)
    within = np.stack([runs.share[part], runs.page_share[part]], axis=1)
    stretches = Stretches(runs.lows[part], runs.highs[part], runs.known[part], runs.rows[part].astype(np.float64),
                          costs, within, np.ones(count), np.zeros(count, np.int64))  # fmt: skip
    return expected_shares(stretches, _POINTS)
