"""Explode a list or map: one row for each element, other columns repeated."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, compress, groupby
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.internals import create_dataframe_from_blocks

from numparq.column.buffers import DecodedColumn
from numparq.column.nested.arrays import LeafArray, ListArray, NestedArray
from numparq.column.nested.nested_type import NestedType, iter_leaves, project_leaves
from numparq.column.projection import (
    POSITION_COLUMN,
    NestedProjection,
    check_categories,
    check_include,
    check_names,
    index_columns,
    merge_parts,
    resolve_top_level,
    select_column,
    select_columns,
    unknown_column_error,
)
from numparq.errors import SchemaError
from numparq.format.key_values.pandas import PandasMetadata
from numparq.format.schema import Leaf, Schema
from numparq.kernels.enums import BYTE_ARRAY
from numparq.to_pandas.columns import to_categorical
from numparq.to_pandas.labels import append_labels, column_labels
from numparq.types.output_type import OutputType

from .column import NestedOutput
from .explode_path import CollectionPath, ExplodedColumn, collection_paths, merge_columns

_NO_CONSTANTS: Mapping[str, Leaf] = MappingProxyType({})


class ExplodedCollection:
    """Columns to read for an exploded list or map, and the frame built from them.

    `constants` are columns that no file holds, by name: those of a dataset's partitions.
    Raises SchemaError for an unknown column, one that is no collection, or a duplicate virtual column.

    Attributes
    ----------
    read_columns : list of Leaf or NestedProjection
        Columns to read: those to repeat, then index columns, last the exploded one.
    virtual_columns : list of str
        Virtual columns of the file's rows.
    output_columns : list of Leaf or NestedProjection
        Columns of the frame.
    """

    def __init__(
        self,
        schema: Schema,
        explode: Any,
        columns: Any,
        index: Sequence[str],
        include: Any,
        categories: Collection[str],
        constants: Mapping[str, Leaf] = _NO_CONSTANTS,
    ) -> None:
        self._include = check_include(include, (POSITION_COLUMN,))
        self.virtual_columns = [name for name in self._include if name != POSITION_COLUMN]
        exploded, self._path = _collection_path(schema, explode)
        if exploded.name in constants:
            raise SchemaError(f"explode={explode!r}: the column is a partition column")
        if columns is None:
            found: list[Sequence[Any]] = [
                self._path.all_columns() if _position(column) == exploded.position else [column]
                for column in select_columns(schema, None)
                if column.name not in constants
            ]
            found.append([*constants.values()])
        else:
            found = [
                [constants[name]]
                if isinstance(name, str) and name in constants
                else self._selected(schema, exploded, name)
                for name in check_names(columns)
            ]
        wanted = merge_columns(merge_parts(column for columns_of_one in found for column in columns_of_one))
        parents = [column for column in wanted if not isinstance(column, ExplodedColumn)]
        leaves = self._leaves([column for column in wanted if isinstance(column, ExplodedColumn)])
        shape = project_leaves(exploded.full_type, leaves)
        assert shape is not None
        self._lists = [kept for kept in (project_leaves(node, leaves) for node in self._path.lists) if kept is not None]
        above = [name for name in index if name != exploded.name and name not in constants]
        read = NestedProjection(exploded.name, exploded.position, exploded.full_type, shape, True)
        self.read_columns = [*parents, *index_columns(schema, above, parents), read]
        self._outputs = [column for column in wanted if isinstance(column, ExplodedColumn) or column.name not in above]
        self._names = _unique_names(self._outputs)
        self.output_columns = [
            replace(exploded, name=name, type=column.shape) if isinstance(column, ExplodedColumn) else column
            for name, column in zip(self._names, self._outputs, strict=True)
        ]
        self._categories = set(categories)
        if categories:
            paths = [column.full_name for column in self._outputs if isinstance(column, ExplodedColumn)]
            check_categories(categories, schema, [*self._names, *paths, *self._include])
        for name in self._include:
            if name in self._names:
                raise SchemaError(f"include={name!r} cannot be added: the result has a column of that name")

    def _selected(
        self, schema: Schema, exploded: NestedProjection, name: Any
    ) -> Sequence[Leaf | NestedProjection | ExplodedColumn]:
        """Return the columns that one name of the ``read_columns`` argument selects."""
        position, path = resolve_top_level(schema, name)
        if position != exploded.position:
            return [select_column(schema, name)]
        try:
            return self._path.select(path)
        except KeyError:
            raise unknown_column_error(name, _paths_of(exploded.full_type)) from None

    def _leaves(self, items: Sequence[ExplodedColumn]) -> set[int]:
        """Return the ordinals of the leaves to read, plus one for its levels if none lies in the innermost list."""
        found = {leaf.index for item in items for leaf in iter_leaves(item.shape)}
        inside = list(iter_leaves(self._path.lists[-1]))
        if not any(leaf.index in found for leaf in inside):
            found.add(min(inside, key=lambda leaf: (leaf.max_repetition_level, leaf.physical == BYTE_ARRAY)).index)
        return found

    def detach(self, nested: list[NestedOutput], labels: list[str | None]) -> None:
        """Remove the exploded column, the last one, from `nested`, and its label from `labels` (one a leaf)."""
        self._read = nested.pop()
        labels[self._read.leaf_slice.start] = None

    def drop_lost(self, labels: Sequence[str | None]) -> None:
        """Drop the lost columns: those whose first leaf has no label."""
        counts = (1 if isinstance(column, Leaf) else len(column.leaves) for column in self.read_columns)
        firsts = accumulate(counts, initial=0)
        lost = {id(column) for column, first in zip(self.read_columns, firsts, strict=False) if labels[first] is None}
        stays = [id(column) not in lost for column in self._outputs]
        self._outputs, self._names, self.output_columns = (
            list(compress(columns, stays)) for columns in (self._outputs, self._names, self.output_columns)
        )

    def to_frame(
        self,
        parents: pd.DataFrame,
        targets: Sequence[OutputType],
        buffers: Sequence[DecodedColumn],
        metadata: PandasMetadata | None,
    ) -> pd.DataFrame:
        """Build the frame; `parents` has a row per row of the file: columns to repeat, virtual columns and index.

        Raises InvalidFileError if the exploded column's leaves are inconsistent.
        """
        read = self._read
        pieces, by_leaf = read.leaf_pieces(targets, buffers), read.output_types_by_leaf(targets)
        arrays = {_node_key(array.type): array for array in _nodes(read.assemble_stored(pieces, buffers))}
        lists = [arrays[_node_key(shape)] for shape in self._lists]
        rows = _RowRepeats([array.offsets for array in lists if isinstance(array, ListArray)])
        made = []
        for item, name in zip(self._outputs, self._names, strict=True):
            if not isinstance(item, ExplodedColumn):
                continue
            categorical = name in self._categories or item.full_name in self._categories
            part = read.child(item.name, item.shape, "numpy_nullable" if categorical else None)
            array = arrays.get(_node_key(item.shape)) or part.assemble_stored(pieces, buffers)
            column = part.build(part.resolve_files(array), by_leaf)
            made.append(rows.take(to_categorical(column) if categorical else column, item.node.repetition_level))
        made += [rows.positions() for name in self._include if name == POSITION_COLUMN]
        repeated = rows.take(parents, 0)
        if isinstance(parents.index, pd.RangeIndex):
            repeated.index = pd.RangeIndex(rows.count)
        is_made = [isinstance(column, ExplodedColumn) for column in self._outputs] + [
            name == POSITION_COLUMN for name in self._include
        ]
        frame = _concat_columns(repeated, made, is_made)
        labels = column_labels(metadata, self._names)
        frame.columns = append_labels(labels, self._include) if self._include else labels
        frame.attrs = parents.attrs
        return frame


class _RowRepeats:
    """Rows that each element of the flattened lists becomes; `offsets` (int64) are those of each list, outermost first.

    `count` is the number of rows: the elements of the innermost list.
    """

    def __init__(self, offsets: list[np.ndarray]) -> None:
        self._innermost = offsets[-1]
        self.count = int(offsets[-1][-1])
        ends = [offsets[-1]]
        for outer in reversed(offsets[:-1]):
            ends.append(ends[-1][outer])
        self._ends = ends[::-1]  # item `i` at depth `d` becomes rows ``_ends[d][i]`` to ``_ends[d][i + 1]``
        self._sources: dict[int, np.ndarray] = {}

    def take(self, values: Any, depth: int) -> Any:
        """Repeat a column or frame that has an item for each element at a depth, to an item for each row."""
        if depth == len(self._ends):
            return values
        if depth not in self._sources:
            ends = self._ends[depth]
            self._sources[depth] = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        return _take_rows(values, self._sources[depth])

    def positions(self) -> np.ndarray:
        """Return each row's position in its innermost list."""
        starts = self._innermost[:-1]
        positions: np.ndarray = np.arange(self.count) - np.repeat(starts, np.diff(self._innermost))
        return positions


def _take_rows(values: Any, rows: np.ndarray) -> Any:
    """Take rows of a column or frame; in halves if the strings exceed one Arrow array."""
    try:
        return values.take(rows)
    except ValueError as error:
        if type(error).__name__ != "ArrowInvalid" or len(rows) < 2:
            raise
    middle = len(rows) // 2
    parts = [_take_rows(values, rows[:middle]), _take_rows(values, rows[middle:])]
    return pd.concat(parts) if isinstance(values, pd.DataFrame) else values._concat_same_type(parts)


def _collection_path(schema: Schema, explode: Any) -> tuple[NestedProjection, CollectionPath]:
    """Return the column to explode and the path of its collection."""
    if not isinstance(explode, (str, tuple)):
        raise TypeError(
            f"explode must be the path of one list or map, as a string or a tuple of names, not {explode!r}"
        )
    _, path = resolve_top_level(schema, explode)
    column = select_column(schema, path[:1])
    if isinstance(column, Leaf):
        raise SchemaError(f"explode={explode!r}: the column is not a list or map")
    try:
        return column, CollectionPath(column.full_type, path)
    except KeyError:
        raise unknown_column_error(
            explode, [*dict.fromkeys([*collection_paths(column.full_type), *_paths_of(column.full_type)])]
        ) from None
    except ValueError:
        inside = [repr(name) for name in collection_paths(column.full_type)][:5]
        hint = f"; lists and maps of the column: {', '.join(inside)}" if inside else ""
        raise SchemaError(f"explode={explode!r}: the path is not a list or map{hint}") from None


def _paths_of(shape: NestedType) -> list[str]:
    return [leaf.name for leaf in iter_leaves(shape)][:1000]


def _position(column: Leaf | NestedProjection) -> int:
    return column.column if isinstance(column, Leaf) else column.position


def _unique_names(columns: Sequence[Leaf | NestedProjection | ExplodedColumn]) -> list[str]:
    """Return the column names; a column of the exploded one gets its full path if another has the same name."""
    owners: dict[str, set[Any]] = {}
    for column in columns:
        owner = id(column.node) if isinstance(column, ExplodedColumn) else None
        owners.setdefault(column.name, set()).add(owner)
    return [
        column.full_name if isinstance(column, ExplodedColumn) and len(owners[column.name]) > 1 else column.name
        for column in columns
    ]


def _nodes(array: NestedArray) -> Iterator[NestedArray]:
    yield array
    if not isinstance(array, LeafArray):
        for child in array.children:
            yield from _nodes(child)


def _node_key(shape: NestedType) -> tuple[object, ...]:
    """Return a key that distinguishes nodes of one column, which may have equal names."""
    return shape.path, shape.repetition_level, tuple(leaf.index for leaf in iter_leaves(shape))


def _concat_columns(repeated: pd.DataFrame, made: Sequence[Any], is_made: Sequence[bool]) -> pd.DataFrame:
    """Concatenate a frame's columns and new arrays in the order of `is_made`; labels are set by the caller."""
    index, parts, others, place = repeated.index, [], iter(made), 0
    for new, run in groupby(is_made):
        count = len(list(run))
        if new:
            blocks = []
            for number in range(count):
                values = next(others)
                values = values.reshape(1, -1) if isinstance(values, np.ndarray) else values
                blocks.append((values, np.array([number], np.intp)))
            parts.append(create_dataframe_from_blocks(blocks, index, pd.RangeIndex(count)))
        else:
            parts.append(repeated.iloc[:, place : place + count])
            place += count
    return pd.concat(parts, axis=1) if parts else repeated
