"""Check the values that files had to cast to the merged types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from numparq.errors import SchemaError
from numparq.to_pandas.temporal import are_times

if TYPE_CHECKING:
    from numparq.plan.row_ranges import RowRanges
    from numparq.to_pandas.frame import BlockLayout

    from .file_reader import FileReader
    from .projected_columns import ProjectedColumns


def check_casts(
    projection: ProjectedColumns,
    readers: Sequence[FileReader],
    starts: Sequence[int],
    layout: BlockLayout,
    intact: Sequence[RowRanges] | None,
) -> None:
    """Raise SchemaError for a value, in the intact rows, that does not fit the merged type.

    `starts` has the first row of each reader in the frame.
    """
    for first in projection.cast_columns():
        for at, reader in enumerate(readers):
            for leaf, rows, error in reader.unfit:
                if leaf == first and (intact is None or np.isin(rows, intact[at].indices()).any()):
                    raise error
        if layout.targets[first].array_kind == "times" and not layout.targets[first].nested:
            _check_times(readers, starts, layout, first, projection.labels[first])


def _check_times(
    readers: Sequence[FileReader], starts: Sequence[int], layout: BlockLayout, leaf: int, column: str | None
) -> None:
    """Raise SchemaError for a time beyond a day, or with a fraction of a microsecond."""
    values, unit = layout.values[leaf], layout.targets[leaf].type.unit
    assert values is not None
    for reader, start in zip(readers, starts, strict=False):
        if not are_times(values[start : start + reader.num_rows], unit):
            raise SchemaError(
                "a value exceeds the range of datetime.time, which other files need for this column",
                file=reader.file.source.name,
                column=column,
            )
