"""Memory of a filter: answers, and the columns of conjuncts that are decoded, estimated from the footer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.column.read.row_selection import SLICE_GROUP, SLICE_START, SLICE_STOP
from numparq.expr.bound import filter_leaves
from numparq.expr.expression import Constant, Expression
from numparq.format.physical_type import INT96
from numparq.format.schema import Leaf

from .filter_columns import stored_output_type
from .filter_rows import BATCH_ROWS, conjuncts
from .leaf_memory import ChunkCounts

if TYPE_CHECKING:
    from .file_reader import FileReader

_ANSWER = 1
_RANGES = 4  # row ranges of the rows that conjuncts left
_CODE = 4
_OFFSET = 8
_LEVELS = 2 + 4 + 8 + 8  # of a nested value: levels, code, and sums of both


def filter_bytes(reader: FileReader, threads: int) -> tuple[int, int, int]:
    """Return the rows of the largest row group, and bytes: of the filter on all threads, of the largest chunk.

    Zeros without a predicate of columns.
    """
    bound = None if reader.predicate is None else reader.predicate.current()
    steps = [] if bound is None else [step for step in conjuncts(bound) if type(step) is not Constant]
    leaves = {leaf.index: leaf for step in steps for leaf in filter_leaves(step)}
    if not leaves or not reader.num_rows:
        return 0, 0, 0
    table, footer = reader.selections.table, reader.file.footer
    rows = np.bincount(table[:, SLICE_GROUP], table[:, SLICE_STOP] - table[:, SLICE_START])
    largest = np.argsort(rows)[-threads:]
    largest = largest[rows[largest] > 0]
    num_rows, of_groups = rows[largest], footer.row_group_num_rows[largest]
    chunks = footer.chunks.read_table(largest, [*leaves])
    positions = {index: at for at, index in enumerate(leaves)}
    held = _step_bytes(steps, chunks, positions, of_groups, bool((num_rows == of_groups).all()))
    together = max(min(BATCH_ROWS, reader.num_rows) / num_rows.max(), 1)  # small row groups, in batches
    stored = np.maximum(chunks["total_compressed_size"], 0) + np.maximum(chunks["total_uncompressed_size"], 0)
    return int(num_rows.max()), int(held.sum() * together), int(stored.max())


def _step_bytes(
    steps: list[Expression], chunks: Mapping[str, Any], positions: Mapping[int, int], rows: np.ndarray, are_whole: bool
) -> np.ndarray:
    """Return the bytes that conjuncts take in each row group."""
    num_rows = rows.astype(np.float64)
    held = num_rows * (_ANSWER + _RANGES * (len(steps) > 1))
    for number, step in enumerate(steps):
        leaves = filter_leaves(step)
        is_matched = not number and are_whole and len({leaf.index for leaf in leaves}) == 1
        for leaf in leaves:
            dtype = stored_output_type(leaf).dtype
            width = 0 if dtype is None or stored_output_type(leaf).storage == "dictionary" else dtype.itemsize
            counts = ChunkCounts.of_chunks(chunks, positions[leaf.index], num_rows, width)
            held = held + (_matched if is_matched and _is_matched_in_pages(leaf) else _decoded)(leaf, counts, width)
    return held


def _is_matched_in_pages(leaf: Leaf) -> bool:
    """Whether values are matched where pages are decompressed, so that only the dictionary is held."""
    return not leaf.is_nested and leaf.physical != INT96


def _matched(leaf: Leaf, counts: ChunkCounts, width: int) -> np.ndarray:
    needed: np.ndarray = counts.has_dictionary * (
        counts.entry_bytes + counts.entries * (_ANSWER + _OFFSET * (not width))
    )
    return needed


def _decoded(leaf: Leaf, counts: ChunkCounts, width: int) -> np.ndarray:
    """Return the bytes of a column that is decoded as it is stored."""
    if leaf.is_nested:
        needed: np.ndarray = counts.values * (_LEVELS + (width or _OFFSET)) + (0 if width else 2 * counts.sizes)
        return needed
    if width:
        needed = counts.rows * (width + 1)
        return needed
    in_codes = counts.has_dictionary & (counts.entries * 4 < counts.values)
    coded = counts.rows * _CODE + counts.entry_bytes + counts.entries * _OFFSET
    needed = np.where(in_codes, coded, 2 * (counts.rows * _OFFSET + counts.sizes))
    return needed
