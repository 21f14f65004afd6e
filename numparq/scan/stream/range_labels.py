"""Labels of batches: a RangeIndex continued from batch to batch."""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

from numparq.format.key_values.pandas import PandasMetadata, RangeIndexLevel
from numparq.scan.projected_columns import ProjectedColumns


class RangeLabels(NamedTuple):
    """Labels of rows without an index: a RangeIndex continued from batch to batch."""

    start: int = 0
    step: int = 1
    name: Any = None

    @classmethod
    def from_metadata(cls, metadata: PandasMetadata | None, num_rows: int | None) -> RangeLabels:
        """Return the labels that a single read of all rows has; `num_rows` is None if a filter is set."""
        levels = metadata.index if metadata is not None else ()
        level = levels[0] if len(levels) == 1 else None
        if isinstance(level, RangeIndexLevel) and level.num_rows == num_rows:
            return cls(level.start, level.step, level.name)
        return cls()


def drop_range_index(columns: ProjectedColumns) -> ProjectedColumns:
    """Drop the stored RangeIndex of the metadata, which does not fit part of the rows."""
    metadata = columns.metadata
    if metadata is not None and any(isinstance(level, RangeIndexLevel) for level in metadata.index):
        columns.metadata = copy(metadata)
        columns.metadata.index = columns.metadata.index_fields
    return columns
