"""Files of a scan that are known by their footers alone: no row of theirs is read, but they decide dtypes too."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numparq.format.footer.joined_footer import JoinedFooter
from numparq.format.writer_quirks import leaf_may_be_null

from .file_columns import FileColumns


@dataclass(frozen=True, eq=False)
class UnreadFiles:
    """Files with the same columns and writer, in which no row satisfies the predicate.

    Parameters
    ----------
    columns : FileColumns
        How they store the projected columns.
    num_rows : int
        Number of their rows; any above 0 if it is not known.
    null_counts : list of int or None
        As of `FileReader`.
    may_be_null : list of bool
        As of `FileReader`.
    """

    columns: FileColumns
    num_rows: int
    null_counts: list[int | None]
    may_be_null: list[bool]

    @classmethod
    def from_footer(cls, columns: FileColumns, footer: JoinedFooter) -> UnreadFiles:
        """Return what the footers of files say, as far as these columns need them."""
        row_groups = range(len(footer.row_group_num_rows))
        counts = footer.chunks.read_table(row_groups, [leaf.index for leaf in columns.leaves])["null_count"]
        are_known: np.ndarray = np.logical_and.reduce(counts >= 0, axis=0)
        totals = zip(counts.sum(axis=0, dtype=np.int64).tolist(), are_known.tolist(), strict=True)
        null_counts: list[int | None] = [total if is_known else None for total, is_known in totals]
        pairs = zip(columns.leaves, null_counts, strict=True)
        may_be_null = [leaf_may_be_null(leaf, count, footer.created_by) for leaf, count in pairs]
        return cls(columns, int(footer.row_group_num_rows.sum()), null_counts, may_be_null)
