"""Memory of one table that many files are decoded into, and the present output type of each leaf."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from threading import Lock
from typing import Any

import numpy as np

from numparq.column.buffers import DecodedColumn, DictionaryArray
from numparq.to_pandas.dictionary import keep_order_if_common
from numparq.to_pandas.frame import BlockLayout
from numparq.types.output_type import OutputType

__all__ = ["FileMemory", "SharedMemory", "concat_columns", "merge_category_orders"]


class SharedMemory:
    """Memory of a table. A leaf that one file cannot decode as its output type gets another one for all files."""

    def __init__(self, layout: BlockLayout) -> None:
        self.layout = layout
        self._lock = Lock()

    def view(self, places: Sequence[int], own_types: Sequence[OutputType] = ()) -> FileMemory:
        """Return the memory as one file sees it: leaves at `places` of the table, then its own, without memory."""
        with self._lock:
            return FileMemory(self, places, own_types)

    def change_type(self, place: int, old: OutputType, new: OutputType, view: FileMemory) -> None:
        """Change a leaf's output type, unless another file has already done so, and update a view of it."""
        with self._lock:
            if self.layout.targets[place] is old:
                self.layout.reallocate(place, new)
            view.update(view.places.index(place))


class FileMemory:
    """Memory of a table as one file sees it (`ReplaceableMemory`); made by `SharedMemory.view`."""

    def __init__(self, memory: SharedMemory, places: Sequence[int], own_types: Sequence[OutputType]) -> None:
        self._memory = memory
        self.places = list(places)
        self.num_rows = memory.layout.num_rows
        self.blocks = memory.layout.blocks
        count = len(self.places) + len(own_types)
        self.targets = [*(memory.layout.targets[place] for place in self.places), *own_types]
        self.values: list[np.ndarray | None] = [None] * count
        self.validity: list[np.ndarray | None] = [None] * count
        self.block_of: list[int | None] = [None] * count
        self.row_of: list[int | None] = [None] * count
        for position in range(len(self.places)):
            self.update(position)

    def update(self, position: int) -> None:
        """Take over the present type and memory of a leaf."""
        layout, place = self._memory.layout, self.places[position]
        self.targets[position] = layout.targets[place]
        self.values[position], self.validity[position] = layout.values[place], layout.validity[place]
        self.block_of[position], self.row_of[position] = layout.block_of[place], layout.row_of[place]

    def reallocate(self, position: int, target: OutputType) -> None:
        """Change the output type of a leaf for all files; the others then decode it again."""
        self._memory.change_type(self.places[position], self.targets[position], target, self)


def concat_columns(layout: BlockLayout, parts: Sequence[dict[int, DecodedColumn]]) -> list[DecodedColumn]:
    """Concatenate what the files have decoded of each leaf."""
    made = []
    for place in range(len(layout.targets)):
        buffer = DecodedColumn(layout.values[place], layout.validity[place])
        for part in parts:
            if place in part:
                buffer.null_count += part[place].null_count
                buffer.arrays.extend(part[place].arrays)
        made.append(buffer)
    return made


def merge_category_orders(
    layout: BlockLayout, parts: Sequence[dict[int, DecodedColumn]], starts: Sequence[Sequence[int]]
) -> None:
    """Keep the order of a Categorical only if the files agree on it; `starts` are the first rows of a part's files."""
    for place, target in enumerate(layout.targets):
        if target.storage == "dictionary":
            firsts = [
                piece.dictionary
                for part, rows in zip(parts, starts, strict=True)
                if place in part
                for piece in _pieces_at(part[place].arrays, rows)
            ]
            layout.targets[place] = keep_order_if_common(target, firsts)


def _pieces_at(pieces: Sequence[Any], rows: Sequence[int]) -> list[DictionaryArray]:
    """Return the pieces with some rows, each once: a file's first dictionary has the order of its categories."""
    edges = [0, *accumulate(map(len, pieces))]
    found = dict.fromkeys(min(bisect_left(edges, row + 1) - 1, len(pieces) - 1) if row else 0 for row in rows)
    return [pieces[at] for at in found if pieces and isinstance(pieces[at], DictionaryArray)]
