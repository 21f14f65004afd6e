"""Memory of a frame that several files are decoded into, and the present output type of each leaf."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from threading import Lock
from typing import Any

import numpy as np

from numparq.column.buffers import BinaryArray, DecodedColumn, DictionaryArray
from numparq.column.nested.levels import NestedLeaf, concat_leaves
from numparq.format.schema import Leaf
from numparq.to_pandas.dictionary import keep_order_if_common
from numparq.to_pandas.frame import BlockLayout
from numparq.types.output_type import OutputType

from .file_reader import FileReader


class SharedMemory:
    """Memory of a frame. A leaf that one file cannot decode as its output type gets another one for all files.

    Parameters
    ----------
    layout : BlockLayout
        The memory.
    leaves : sequence of Leaf
        The projected leaves.
    readers : sequence of FileReader
        Readers of the files, open.
    starts : sequence of int
        First row of each in the frame.
    """

    def __init__(
        self, layout: BlockLayout, leaves: Sequence[Leaf], readers: Sequence[FileReader], starts: Sequence[int]
    ) -> None:
        self.layout = layout
        self.leaves = leaves
        self.lock = Lock()
        self._readers, self._starts = readers, starts

    def decode(self, run_each: Callable[[Iterable[Any], Callable[[Any], None]], None]) -> list[DecodedColumn]:
        """Decode all files, and leaves whose type a later file has changed once more; return the projected leaves."""
        # No attribute: a cycle of references would keep the memory of earlier units until Python looks for cycles.
        files = [FileMemory(self, reader, first) for reader, first in zip(self._readers, self._starts, strict=False)]
        while outdated := [file for file in files if file.is_outdated]:
            run_each(outdated, FileMemory.decode)
        columns = []
        for leaf, target in enumerate(self.layout.targets):
            column = DecodedColumn(self.layout.values[leaf], self.layout.validity[leaf])
            for file in files:
                if leaf in file.columns:
                    column.null_count += file.columns[leaf].null_count
                    column.arrays.extend(file.columns[leaf].arrays)
            columns.append(column)
            if target.storage == "dictionary":
                self.layout.targets[leaf] = _merge_category_order(files, leaf, target)
        return columns

    def change_type(self, leaf: int, old: OutputType, new: OutputType) -> None:
        """Change a leaf's output type, unless another file has already done so."""
        with self.lock:
            if self.layout.targets[leaf] is old:
                self.layout.reallocate(leaf, new)


def _merge_category_order(files: Sequence[FileMemory], leaf: int, output_type: OutputType) -> OutputType:
    """Keep the order of a Categorical only if the files agree on it."""
    firsts = []
    for file in files:
        if leaf in file.columns:
            rows = [0, *accumulate(file.reader.counts[:-1])]
            firsts += [array.dictionary for array in _arrays_at(file.columns[leaf].arrays, rows)]
    return keep_order_if_common(output_type, firsts)


def _arrays_at(arrays: Sequence[Any], rows: Sequence[int]) -> list[DictionaryArray]:
    """Return the arrays with some rows, each once: a file's first dictionary has the order of its categories."""
    edges = [0, *accumulate(map(len, arrays))]
    positions = dict.fromkeys(min(bisect_left(edges, row + 1) - 1, len(arrays) - 1) if row else 0 for row in rows)
    return [arrays[at] for at in positions if arrays and isinstance(arrays[at], DictionaryArray)]


class FileMemory:
    """Memory of a frame as the leaves of one file see it (`ReplaceableMemory`).

    Attributes
    ----------
    columns : dict of int to DecodedColumn
        What the file adds to the projected leaves.
    """

    def __init__(self, memory: SharedMemory, reader: FileReader, first: int) -> None:
        self._memory = memory
        self.reader = reader
        self._first = first
        self._positions, self._missing = reader.columns.positions, reader.columns.missing_positions
        self._cast = [leaf for column in reader.columns.cast for leaf in column.projected]
        self._apart = [*self._missing, *self._cast]
        self.num_rows = memory.layout.num_rows
        self.columns: dict[int, DecodedColumn] = {}
        self._decoded_as: dict[int, OutputType] = {}  # by projected leaf
        self.targets = [*reader.output_types]
        count = len(self.targets)
        self.values: list[np.ndarray | None] = [None] * count
        self.validity: list[np.ndarray | None] = [None] * count
        self.block_of: list[int | None] = [None] * count
        self.row_of: list[int | None] = [None] * count
        self.blocks = memory.layout.blocks

    @property
    def is_outdated(self) -> bool:
        """Whether a projected leaf is not decoded yet, or as another output type than its present one."""
        return bool(self._outdated(self._positions) or self._outdated(self._apart))

    def _outdated(self, leaves: Sequence[int]) -> list[int]:
        targets = self._memory.layout.targets
        return [leaf for leaf in leaves if self._decoded_as.get(leaf) is not targets[leaf]]

    def _update(self, position: int) -> None:
        """Take over the present type and memory of a leaf."""
        layout, leaf = self._memory.layout, self._positions[position]
        self.targets[position] = layout.targets[leaf]
        self.values[position], self.validity[position] = layout.values[leaf], layout.validity[leaf]
        self.block_of[position], self.row_of[position] = layout.block_of[leaf], layout.row_of[leaf]

    def reallocate(self, position: int, target: OutputType) -> None:
        """Change the output type of a leaf for all files; the others then decode it again."""
        self._memory.change_type(self._positions[position], self.targets[position], target)
        with self._memory.lock:
            self._update(position)

    def decode(self) -> None:
        """Decode the outdated leaves, and fill those that the file lacks with nulls."""
        with self._memory.lock:
            for position in range(len(self._positions)):
                self._update(position)
        outdated = {
            position: leaf
            for position, leaf in enumerate(self._positions)
            if self._decoded_as.get(leaf) is not self.targets[position]
        }
        columns = self.reader.decode(self, outdated, self._first)
        if self.reader.joined is not None:
            self.reader.joined.release()
        self.columns.update((leaf, columns[position]) for position, leaf in outdated.items())
        self._decoded_as.update(zip(self._positions, self.targets, strict=False))
        if self._cast and self._outdated(self._cast):
            self._cast_leaves()
        self._fill_missing()

    def _cast_leaves(self) -> None:
        """Decode the leaves that the file casts; their types are the schema's, which no value changes."""
        from .cast_memory import CastMemory

        layout = self._memory.layout
        casts = CastMemory(self.reader, layout, self._memory.leaves, self._first)
        casts.decode()
        self.columns.update(casts.columns)
        self.reader.unfit = casts.unfit
        self._decoded_as.update((leaf, layout.targets[leaf]) for leaf in self._cast)

    def _fill_missing(self) -> None:
        """Fill the outdated leaves of columns that the file lacks with nulls."""
        layout = self._memory.layout
        with self._memory.lock:
            outdated = [
                (leaf, layout.targets[leaf], layout.values[leaf], layout.validity[leaf])
                for leaf in self._outdated(self._missing)
            ]
        for leaf, target, values, validity in outdated:
            self._decoded_as[leaf] = target
            self.columns[leaf] = self._nulls(self._memory.leaves[leaf], target, values, validity)

    def _nulls(
        self, leaf: Leaf, target: OutputType, values: np.ndarray | None, validity: np.ndarray | None
    ) -> DecodedColumn:
        """Fill the file's rows of a leaf with nulls."""
        count, rows = self.reader.num_rows, slice(self._first, self._first + self.reader.num_rows)
        if values is None:
            return DecodedColumn(null_count=count, arrays=[_null_array(leaf, target, count)])
        values[rows] = np.frombuffer(target.fill or bytes(values.itemsize), values.dtype)[0]
        if validity is not None:
            validity[rows] = 0
        return DecodedColumn(null_count=count)


def _null_array(leaf: Leaf, target: OutputType, count: int) -> BinaryArray | DictionaryArray | NestedLeaf:
    if target.nested:
        levels = np.zeros(count, np.uint8)
        repetition = levels if leaf.max_repetition_level else None
        return NestedLeaf(levels, repetition, count, concat_leaves([], leaf, target).values, -1)
    nothing = BinaryArray(np.zeros(1, np.int64), np.zeros(0, np.uint8))
    if target.storage == "dictionary":
        return DictionaryArray(np.full(count, -1, np.int32), nothing)
    return BinaryArray(np.zeros(count + 1, np.int64), np.zeros(0, np.uint8), np.zeros(count, np.uint8))
