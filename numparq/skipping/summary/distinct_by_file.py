"""Distinct values of many files, collected from their row groups."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from numparq.column.buffers import BinaryArray
from numparq.format.schema import Leaf

from .chunk_values import ChunkValues, empty_values
from .column_climb import merge_sources
from .distinct_values import merge_distinct


class DistinctByFile:
    """Distinct values of files, added row group by row group, and given up where they are too many."""

    def __init__(self, most: int | None, num_files: int) -> None:
        self._most = most
        self._parts: list[list[np.ndarray | BinaryArray]] = [[] for _ in range(num_files)]
        self._exceeded = [most is None] * num_files
        self._sources: list[list[str]] = [[] for _ in range(num_files)]

    def reduction(self, owner: int) -> Callable[[ChunkValues], np.ndarray | BinaryArray | None] | None:
        """Return the function that reduces a chunk's values; None if they are not needed."""
        return None if self._exceeded[owner] or self._most is None else partial(ChunkValues.distinct, most=self._most)

    def add(self, owner: int, values: np.ndarray | BinaryArray | None, source: str) -> None:
        """Add the values of a row group, None if they are too many."""
        assert self._most is not None
        self._sources[owner].append(source)
        merged = None if values is None else merge_distinct([*self._parts[owner], values], self._most)
        self._exceeded[owner] = merged is None
        self._parts[owner] = [] if merged is None else [merged]

    def result(self, owner: int, leaf: Leaf) -> tuple[np.ndarray | BinaryArray | None, str]:
        """Return the values of a file and their source."""
        source = merge_sources(self._sources[owner])
        if self._exceeded[owner] or self._most is None:
            return None, source
        return (*self._parts[owner], empty_values(leaf).distinct(self._most))[0], source
