"""Small row groups of which some rows are selected: decoded whole and together, then the selected rows are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from numparq.column.read.row_selection import RowSelection, RowSlices
from numparq.plan.row_ranges import RowRanges

if TYPE_CHECKING:
    from .file_reader import FileReader

# A task for selected rows takes the time of so many bytes of a column chunk. Of fewer tasks all are run.
_MAX_CHUNK_BYTES, FEW_TASKS = 32 << 10, 32
# Memory of the rows that are decoded and then dropped.
_MAX_BYTES, _VALUE_BYTES = 256 << 20, 16


class WholeRowGroups(NamedTuple):
    """All rows of the row groups that have selected ones.

    Attributes
    ----------
    slices : RowSlices
        All rows.
    kept : RowRanges
        The selected ones, counted in the output of `slices`.
    """

    slices: RowSlices
    kept: RowRanges


def whole_row_groups(readers: Sequence[FileReader]) -> list[WholeRowGroups] | None:
    """Return for each reader the row groups to decode whole; None if selected rows alone take less time or memory."""
    found = []
    num_tasks = num_bytes = 0
    for reader in readers:
        selections, num_leaves = reader.selections.selections, len(reader.leaves)
        if selections is None:  # these are ranges of rows already
            found.append(WholeRowGroups(reader.selections, RowRanges.all(reader.num_rows)))
            continue
        if reader.columns.cast or not _are_small(reader, selections):
            return None
        slices = _all_rows(reader, selections)
        num_tasks += sum(not part.selects_all for part in selections) * num_leaves
        num_bytes += slices.num_rows * num_leaves * _VALUE_BYTES
        found.append(WholeRowGroups(slices, _kept_rows(selections, slices)))
    return found if num_tasks > FEW_TASKS and num_bytes <= _MAX_BYTES else None


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


def _kept_rows(selections: Sequence[RowSelection], slices: RowSlices) -> RowRanges:
    """Return the selected rows, counted in the output of all rows."""
    mask = np.zeros(slices.num_rows, np.bool_)
    for part, rows in zip(selections, slices, strict=True):
        for at, (start, stop) in enumerate(part.row_ranges):
            mask[rows.out + start : rows.out + stop] = True if part.mask is None or at else part.mask
    return RowRanges.from_mask(mask)
