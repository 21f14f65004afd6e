"""Small row groups of which some rows are selected: decoded whole and together, then the selected rows are kept."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from numparq.column.read.row_selection import SLICE_OUT, RowSelection, RowSlices
from numparq.errors import ParquetError
from numparq.plan.row_ranges import RowRanges
from numparq.to_pandas.frame import BlockLayout, allocate_blocks
from numparq.types.output_type import OutputType

from .file_runs import runner_of
from .recovery.lost_rows import keep_rows
from .shared_memory import SharedMemory

if TYPE_CHECKING:
    from numparq.column.buffers import DecodedColumn

    from .file_reader import FileReader
    from .projected_columns import ProjectedColumns

# A task for selected rows takes the time of so many bytes of a column chunk. Of fewer tasks all are run.
_MAX_CHUNK_BYTES, FEW_TASKS = 32 << 10, 32
# Memory of the rows that are decoded and then dropped.
_MAX_BYTES, _VALUE_BYTES = 256 << 20, 16


class _WholeRowGroups(NamedTuple):
    """All rows of the row groups that have selected ones.

    Attributes
    ----------
    slices : RowSlices
        All rows.
    selected_bounds : int64 array, (ranges, 2)
        First row and end of the ranges of selected ones, counted in the output of `slices`.
    """

    slices: RowSlices
    selected_bounds: np.ndarray


def decode_whole(
    readers: Sequence[FileReader],
    types: Sequence[OutputType],
    projection: ProjectedColumns,
    memory_limit: int | None,
) -> tuple[BlockLayout, list[DecodedColumn]] | None:
    """Decode all rows of small row groups with selected ones, and keep these; None if it does not pay, or fails."""
    whole = _whole_row_groups(readers) if memory_limit is None else None
    if whole is None:
        return None
    selected = [reader.selections for reader in readers]
    for reader, each in zip(readers, whole, strict=True):
        reader.selections = each.slices
    starts = [*accumulate((each.slices.num_rows for each in whole), initial=0)]
    try:
        layout = allocate_blocks(types, starts[-1], projection.index_leaves)
        buffers = SharedMemory(layout, projection.leaves, readers, starts).decode(runner_of(readers))
    except (ParquetError, MemoryError):
        return None
    finally:
        for reader, rows in zip(readers, selected, strict=True):
            reader.selections = rows
    selected_bounds = np.concatenate([each.selected_bounds + start for each, start in zip(whole, starts, strict=False)])
    return keep_rows(layout, buffers, projection.leaves, RowRanges(selected_bounds))


def _whole_row_groups(readers: Sequence[FileReader]) -> list[_WholeRowGroups] | None:
    """Return for each reader the row groups to decode whole; None if selected rows alone take less time or memory."""
    whole = []
    num_tasks = num_bytes = 0
    for reader in readers:
        selections, num_leaves = reader.selections.selections, len(reader.leaves)
        if selections is None or reader.joined is None:  # whole row groups, or few of them
            whole.append(_WholeRowGroups(reader.selections, np.array([[0, reader.num_rows]])))
            continue
        if not _are_small(reader, selections):
            return None
        slices = _all_rows(reader, selections)
        num_tasks += sum(not part.selects_all for part in selections) * num_leaves
        num_bytes += slices.num_rows * num_leaves * _VALUE_BYTES
        whole.append(_WholeRowGroups(slices, _selected_bounds(selections, slices)))
    return whole if num_tasks > FEW_TASKS and num_bytes <= _MAX_BYTES else None


def _are_small(reader: FileReader, selections: Sequence[RowSelection]) -> bool:
    """Whether no row group comes twice, and their column chunks are small."""
    groups = [part.row_group for part in selections]
    starts, ends = reader.chunk_tables.byte_ranges(groups)
    num_bytes = int((ends - starts)[:, : len(reader.leaves)].sum())
    return len({*groups}) == len(groups) and num_bytes <= _MAX_CHUNK_BYTES * len(groups) * len(reader.leaves)


def _all_rows(reader: FileReader, selections: Sequence[RowSelection]) -> RowSlices:
    groups = np.array([part.row_group for part in selections], np.int64)
    counts = reader.file.footer.row_group_num_rows[groups]
    return RowSlices(np.stack([groups, np.zeros_like(groups), counts, np.cumsum(counts) - counts], axis=1))


def _selected_bounds(selections: Sequence[RowSelection], slices: RowSlices) -> np.ndarray:
    """Return the bounds of the selected rows, counted in the output of all rows."""
    bounds = [np.empty((0, 2), np.int64)]
    for part, out in zip(selections, slices.table[:, SLICE_OUT].tolist(), strict=True):
        bounds.append(part.selected_ranges.bounds + out)
    return np.concatenate(bounds)
