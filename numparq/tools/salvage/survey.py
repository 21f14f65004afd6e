"""Survey of a damaged file: the rows and columns that a read of the whole file with ``on_error="skip"`` returns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from numparq.errors import InvalidFileError
from numparq.file.reader import ParquetFile
from numparq.format.schema import Leaf, Schema
from numparq.plan.row_ranges import RowRanges
from numparq.scan.recovery.losses import LOST_ATTR, Lost, choose_columns
from numparq.tools.verify.deviations import Deviation

__all__ = ["DamageSurvey", "readable_leaves", "survey_damage"]


@dataclass
class DamageSurvey:
    """Rows and columns of a file that ``on_error="skip"`` returns, and its losses.

    Attributes
    ----------
    losses : list of Lost
        All losses, as a read of each row group reports them.
    dropped : set of str
        Lost columns.
    kept : RowRanges
        Rows, counted over the whole file, that are intact in all other columns.
    starts : list of int
        First row of each row group, and the number of rows.
    invalid_keys : list of str
        Keys of the key-value metadata whose values are invalid, by `verify`.
    """

    losses: list[Lost]
    dropped: set[str]
    kept: RowRanges
    starts: list[int]
    invalid_keys: list[str] = field(default_factory=list)

    def num_intact_rows(self, row_group: int) -> int:
        """Return the number of rows kept of a row group."""
        return self.kept.clip(*self.starts[row_group : row_group + 2]).count

    def confines(self, errors: Sequence[Deviation]) -> bool:
        """Whether row groups are lost, and all errors that `verify` finds are in these."""
        groups = [one.row_group for one in errors]
        return bool(self.losses) and all(group is not None and not self.num_intact_rows(group) for group in groups)


def readable_leaves(schema: Schema) -> Iterator[Leaf]:
    """Yield the leaf columns whose schema elements are valid."""
    for index in range(schema.num_leaves):
        with suppress(InvalidFileError):
            yield schema.leaf(index)


def survey_damage(file: ParquetFile) -> DamageSurvey:
    """Read each row group, skipping damage, and choose rows and columns as a read of the whole file does."""
    columns = list(file.schema.columns)
    leaf_columns = {leaf.name: leaf.path[0] for leaf in readable_leaves(file.schema)}
    starts = [0, *np.cumsum(file.footer.row_group_num_rows).tolist()]
    losses: list[Lost] = []
    dropped: set[str] = set()
    lost_rows: dict[str, list[tuple[int, int]]] = {}
    for row_group in range(file.num_row_groups):
        for loss in file.read(row_groups=[row_group], on_error="skip").attrs[LOST_ATTR]:
            losses.append(loss)
            name = leaf_columns.get(loss.column, loss.column)
            if loss.rows is None:
                dropped.add(name)
            else:
                lost_rows.setdefault(name, []).append(loss.rows)
    left = [name for name in columns if name not in dropped]
    unreadable, kept = choose_columns([RowRanges(lost_rows.get(name, ())) for name in left], RowRanges.all(starts[-1]))
    dropped.update(left[position] for position in unreadable)
    return DamageSurvey(losses, dropped, kept, starts)
