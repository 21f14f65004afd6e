"""Projected columns of a dataset read: those of the merged schema, then partition columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numparq.column.buffers import DecodedColumn
from numparq.column.projection import (
    NestedProjection,
    check_categories,
    check_include,
    check_names,
    index_columns,
    merge_parts,
    projection_of,
    select_column,
    unknown_column_error,
)
from numparq.dataset.partitions.columns import DatasetPartitions
from numparq.errors import SchemaError, error_context
from numparq.format.arrow_type import ArrowType
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.scan.options import ScanOptions
from numparq.scan.projected_columns import ProjectedColumns
from numparq.to_pandas.frame import allocate_blocks
from numparq.types.output_type import OutputType

if TYPE_CHECKING:
    from numparq.to_pandas.nested.explode import ExplodedCollection

__all__ = ["DatasetColumns", "project_columns"]

# What a column is decoded as that no file holds.
_ELSEWHERE = OutputType("null", "nulls", ArrowType("null"))


def project_columns(
    prototype: OpenFile, partitions: DatasetPartitions, columns: Any, choices: ScanOptions
) -> DatasetColumns:
    """Find the columns to read.

    Parameters
    ----------
    prototype : OpenFile
        Stands for the united schema of all files.
    partitions : DatasetPartitions
        The partition columns; a file's column of such a name is not read.
    columns : sequence of str or tuple, or None
        As in `numparq.read_parquet`; None stands for all, the partition columns last.
    choices : ScanOptions
        What else is asked for.

    Returns
    -------
    DatasetColumns

    Raises
    ------
    SchemaError
        When there is no such column.
    """
    schema, keys = prototype.schema, {key: partitions.leaf(key) for key in partitions.keys}
    metadata = prototype.pandas_metadata
    index = [name for name in (metadata.index_fields if metadata else ()) if name not in keys]
    if choices.explode is not None:
        from numparq.to_pandas.nested.explode import ExplodedCollection

        explosion = ExplodedCollection(
            schema, choices.explode, columns, index, choices.include, choices.categorical_names, keys
        )
        return DatasetColumns(prototype, explosion.read_columns, choices, partitions, explosion)
    if columns is None:
        names: list[Any] = [
            name for position, name in enumerate(schema.columns) if name not in keys and schema.has_leaves(position)
        ]
        wanted = [*names, *keys]
    else:
        wanted = check_names(columns)
    selected: list[Leaf | NestedProjection] = merge_parts(
        keys[name] if isinstance(name, str) and name in keys else _selected(prototype, name, keys) for name in wanted
    )
    own = [column for column in selected if not _is_partition(column)]
    selected += index_columns(schema, index, own)
    check_categories({*choices.categorical_names, *partitions.categories}, schema, [*keys, *choices.include])
    return DatasetColumns(prototype, selected, choices, partitions)


def _selected(prototype: OpenFile, name: Any, keys: Mapping[str, Leaf]) -> Leaf | NestedProjection:
    try:
        with error_context(file=prototype.source.name):
            return select_column(prototype.schema, name)
    except SchemaError:
        raise unknown_column_error(name, [*prototype.schema.columns, *keys], "the dataset") from None


def _is_partition(column: Leaf | NestedProjection) -> bool:
    return isinstance(column, Leaf) and column.index < 0


class DatasetColumns(ProjectedColumns):
    """The columns of a read of many files.

    Parameters
    ----------
    schema_file : OpenFile
        Stands for all files.
    selected : list of Leaf or NestedProjection
        Columns of the prototype and of the partitions, in the order of the frame.
    choices : ScanOptions
        What else is asked for.
    partitions : DatasetPartitions
        The partition columns.
    explosion : ExplodedCollection, optional
        The collection whose elements become rows; the last of `selected`.

    Attributes
    ----------
    selected
        As given.
    """

    def __init__(
        self,
        prototype: OpenFile,
        selected: Sequence[Leaf | NestedProjection],
        choices: ScanOptions,
        partitions: DatasetPartitions,
        explosion: ExplodedCollection | None = None,
    ) -> None:
        virtual = check_include(choices.include) if explosion is None else explosion.virtual_columns
        super().__init__(prototype, projection_of(selected), choices, virtual, explosion)
        self.selected = selected
        self.partitions = partitions

    @property
    def stored_positions(self) -> list[int]:
        """Which of the selected columns are in files, by position."""
        return [at for at, column in enumerate(self.selected) if not _is_partition(column)]

    def _output_type(self, leaf: Leaf, null_count: int | None, categorical: bool) -> OutputType:
        return _ELSEWHERE if leaf.index < 0 else super()._output_type(leaf, null_count, categorical)

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
            self.leaf_slices[at].start: self.partitions.column(
                column.name, ordinals, counts, self._options.dtype_backend, self._options.dates
            )
            for at, column in enumerate(self.selected)
            if _is_partition(column)
        }

    def select(self, positions: Sequence[int]) -> DatasetColumns:
        """Return some of the columns, by position, without virtual columns."""
        selected = [self.selected[at] for at in positions]
        return type(self)(self.schema_file, selected, replace(self._options, include=()), self.partitions)

    def dtypes(self, targets: Sequence[OutputType]) -> list[Any]:
        """Give the dtype of each stored column, by its position among all; None for partition columns."""
        layout = allocate_blocks(list(targets), 0)
        buffers = [DecodedColumn(*memory) for memory in zip(layout.values, layout.validity, strict=True)]
        made = self.to_arrays(targets, buffers, 0)
        return [
            None if _is_partition(column) else array.dtype for column, array in zip(self.selected, made, strict=True)
        ]
