"""The columns of a read of many files: those of the united schema, and the partition columns behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..arrow_schema import ArrowType
from ..column.buffer import ColumnBuffer
from ..errors import SchemaError
from ..frame import allocate
from ..opened import OpenedFile
from ..reading.choices import Choices
from ..reading.columns import ReadColumns
from ..schema import Leaf
from ..selection import (
    NestedColumn,
    always_read,
    missing,
    names_of,
    select_column,
    together,
    virtual_columns,
    with_leaves,
)
from ..targets import Target
from .partitions import Partitions

__all__ = ["TableColumns", "table_columns"]

# What a column is decoded as that no file holds.
_ELSEWHERE = Target("null", "nulls", ArrowType("null"))


def table_columns(prototype: OpenedFile, partitions: Partitions, columns: Any, choices: Choices) -> TableColumns:
    """Find the columns to read.

    Parameters
    ----------
    prototype : OpenedFile
        Stands for the united schema of all files.
    partitions : Partitions
        The partition columns; a file's column of such a name is not read.
    columns : sequence of str or tuple, or None
        As in `numparq.read_parquet`; None stands for all, the partition columns last.
    choices : Choices
        What else is asked for.

    Returns
    -------
    TableColumns

    Raises
    ------
    SchemaError
        When there is no such column.
    """
    schema, keys = prototype.schema, {key: partitions.leaf(key) for key in partitions.keys}
    metadata = prototype.pandas_metadata
    index = [name for name in (metadata.index_fields if metadata else ()) if name not in keys]
    if columns is None:
        names: list[Any] = [
            name for position, name in enumerate(schema.columns) if name not in keys and schema.has_leaves(position)
        ]
        wanted = [*names, *keys]
    else:
        wanted = names_of(columns)
    selected: list[Leaf | NestedColumn] = together(
        keys[name] if isinstance(name, str) and name in keys else _selected(schema, name, keys) for name in wanted
    )
    own = [column for column in selected if not _is_partition(column)]
    selected += always_read(schema, index, own)
    return TableColumns(prototype, selected, choices, virtual_columns(choices.include), partitions)


def _selected(schema: Any, name: Any, keys: Mapping[str, Leaf]) -> Leaf | NestedColumn:
    try:
        return select_column(schema, name)
    except SchemaError:
        raise missing(name, [*schema.columns, *keys], "the dataset") from None


def _is_partition(column: Leaf | NestedColumn) -> bool:
    return isinstance(column, Leaf) and column.index < 0


class TableColumns(ReadColumns):
    """The columns of a read of many files.

    Parameters
    ----------
    prototype : OpenedFile
        Stands for all files.
    selected : list of Leaf or NestedColumn
        Columns of the prototype and of the partitions, in the order of the frame.
    choices : Choices
        What else is asked for.
    virtual : sequence of str
        The virtual columns wanted.
    partitions : Partitions
        The partition columns.

    Attributes
    ----------
    prototype, selected
        As given.
    places : list of slice
        For each of them its leaves among `leaves`.
    """

    def __init__(
        self, prototype: OpenedFile, selected: list[Leaf | NestedColumn], choices: Choices, virtual: Sequence[str],
        partitions: Partitions,
    ) -> None:  # fmt: skip
        super().__init__(prototype, with_leaves(selected), choices, virtual)
        self.prototype = prototype
        self.selected = selected
        self.partitions = partitions
        self.places = places_of(selected)

    @property
    def stored(self) -> list[int]:
        """Which of the selected columns are in files, by position."""
        return [at for at, column in enumerate(self.selected) if not _is_partition(column)]

    def _target(self, leaf: Leaf, null_count: int | None, categorical: bool) -> Target:
        return _ELSEWHERE if leaf.index < 0 else super()._target(leaf, null_count, categorical)

    def partition_arrays(self, ordinals: Sequence[int], counts: Sequence[int]) -> dict[int, Any]:
        """Make the partition columns.

        Parameters
        ----------
        ordinals : sequence of int
            The files, as `partitions` counts them.
        counts : sequence of int
            Rows of each.

        Returns
        -------
        dict of int to array
            By the positions of their leaves.
        """
        return {
            self.places[at].start: self.partitions.column(column.name, ordinals, counts, self._choices.dtype_backend)
            for at, column in enumerate(self.selected)
            if _is_partition(column)
        }

    def dtypes(self, targets: Sequence[Target]) -> list[Any]:
        """Give the dtype of each stored column, by its position among all; None for partition columns."""
        layout = allocate(list(targets), 0)
        buffers = [ColumnBuffer(*memory) for memory in zip(layout.values, layout.validity, strict=True)]
        made = self.finished(targets, buffers, 0)
        return [
            None if _is_partition(column) else array.dtype for column, array in zip(self.selected, made, strict=True)
        ]


def places_of(selected: Sequence[Leaf | NestedColumn]) -> list[slice]:
    """Give for each column where its leaves are among those of all."""
    found, place = [], 0
    for column in selected:
        count = 1 if isinstance(column, Leaf) else len(column.leaves)
        found.append(slice(place, place + count))
        place += count
    return found
