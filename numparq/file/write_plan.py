"""Plan of a file to write, cached process-wide by schema and writer options, and the encoding of its columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from numparq.column.dense_values import PHYSICAL_DTYPES
from numparq.column.leaf_values import LeafValues, SourceColumn
from numparq.column.scratch import ThreadScratch
from numparq.column.write.chunk import EncodedLeaf, LeafEncoder
from numparq.column.write.options import ColumnOptions
from numparq.errors import ParquetError, error_context
from numparq.format.column_order import ColumnOrder, leaf_orders
from numparq.format.schema import Leaf
from numparq.format.schema_node import SchemaNode, leaf_columns, to_schema_elements
from numparq.format.thrift.encode import EncodedThrift, encode_field
from numparq.kernels.enums import BYTE_ARRAY, DELTA_BYTE_ARRAY, DELTA_LENGTH_BYTE_ARRAY
from numparq.util.bounded_cache import fork_safe_lru_cache

from .null_leaves import nested_null_leaves
from .writer_context import WriterContext
from .writer_options import WriterOptions

if TYPE_CHECKING:
    from numparq.column.write.sealed_pages import PageSealing

# Smaller chunks are mostly Python code, where threads only contend for the GIL.
_MIN_PARALLEL_ROWS = 4096
_JOINED_VALUES = 1 << 16  # columns of one type are encoded together up to so many values

_DELTAS = (DELTA_BYTE_ARRAY, DELTA_LENGTH_BYTE_ARRAY)

_MAX_CACHED, _MAX_CACHED_COLUMNS = 8, 1 << 14


class WritePlan(NamedTuple):
    """Leaf columns, their encoder, and the parts of the footer that no row changes.

    Attributes
    ----------
    paths : list of bytes
        `ColumnMetaData.path_in_schema` of each leaf, encoded.
    delta_leaves : frozenset of int
        Leaves of byte arrays in a DELTA encoding, which pyarrow cannot read as dictionaries.
    null_leaves : list of int
        Nested leaves of the null type, whose levels are kept.
    """

    leaves: list[Leaf]
    schema: EncodedThrift
    column_orders: EncodedThrift
    paths: list[bytes]
    encoder: ColumnEncoder
    delta_leaves: frozenset[int]
    null_leaves: list[int]


def write_plan(
    columns: Sequence[SchemaNode], options: WriterOptions, orders: Sequence[ColumnOrder] | None = None
) -> WritePlan:
    """Return the plan of a file; `orders` are those of its leaves, by default as the options say."""
    is_cached = len(columns) <= _MAX_CACHED_COLUMNS and not options.names_columns
    return (_cached_plan if is_cached else _build_plan)(tuple(columns), options, None if orders is None else (*orders,))


def _build_plan(
    columns: tuple[SchemaNode, ...], options: WriterOptions, orders: tuple[ColumnOrder, ...] | None
) -> WritePlan:
    leaves = leaf_columns(columns)
    by_leaf = leaf_orders(columns, options.column_order) if orders is None else orders
    schema = encode_field("FileMetaData", "schema", to_schema_elements(columns))
    unions = encode_field("FileMetaData", "column_orders", [order.thrift_union for order in by_leaf])
    paths = [encode_field("ColumnMetaData", "path_in_schema", list(leaf.path)) for leaf in leaves]
    resolved = options.resolve(leaves)
    deltas = frozenset(leaf.index for leaf, each in zip(leaves, resolved, strict=True) if each.encoding in _DELTAS)
    encoder = ColumnEncoder(leaves, by_leaf, resolved)
    nulls = [leaf.index for leaf in nested_null_leaves(leaves)]
    return WritePlan(leaves, EncodedThrift(schema), EncodedThrift(unions), paths, encoder, deltas, nulls)


_cached_plan = fork_safe_lru_cache(_MAX_CACHED)(_build_plan)


class _Rows(NamedTuple):
    """Rows to encode: `bounds` of their row groups, from 0 on, and the number of the row group if there is one.

    `scratch` are the buffers to encode them with; `sealing` encrypts their pages.
    """

    start: int
    stop: int
    bounds: list[int]
    row_group: int | None
    scratch: ThreadScratch
    sealing: PageSealing | None


class ColumnEncoder:
    """Encoder of a file's columns; leaves of one type and equal options share their encoder."""

    def __init__(
        self,
        leaves: Sequence[Leaf],
        orders: Sequence[ColumnOrder],
        options: Sequence[ColumnOptions],
    ) -> None:
        self._num_leaves = len(leaves)
        self._leaves: list[list[tuple[Leaf, LeafEncoder]]] = [[] for _ in range(leaves[-1].column + 1 if leaves else 0)]
        encoders: dict[object, LeafEncoder] = {}
        for leaf, order, each in zip(leaves, orders, options, strict=True):
            levels = (leaf.max_definition_level, leaf.max_repetition_level)
            key = (leaf.physical, leaf.type_length, leaf.logical, levels, order, id(each))
            if key not in encoders:
                encoders[key] = LeafEncoder(leaf, order, each)
            self._leaves[leaf.column].append((leaf, encoders[key]))

    def encode(
        self,
        columns: Sequence[SourceColumn],
        bounds: Sequence[int],
        row_group: int | None,
        context: WriterContext,
        sealing: PageSealing | None = None,
    ) -> list[EncodedLeaf]:
        """Encode the row groups between consecutive bounds, costly columns first; `row_group` is for errors."""
        rows = _Rows(
            bounds[0], bounds[-1], [bound - bounds[0] for bound in bounds], row_group, context.scratch, sealing
        )
        encoded: list[EncodedLeaf | None] = [None] * self._num_leaves
        if rows.bounds[1] >= _MIN_PARALLEL_ROWS:
            order = sorted(range(len(columns)), key=self._cost)
            context.pool.run([partial(self._encode_column, columns[number], number, rows, encoded) for number in order])
        else:
            for numbers in self._joined_columns(columns, rows.bounds[-1]):
                self._encode_columns(columns, numbers, rows, encoded)
        return [leaf for leaf in encoded if leaf is not None]

    def encode_nulls(
        self, leaf: Leaf, definition: np.ndarray, repetition: np.ndarray, num_rows: int, scratch: ThreadScratch
    ) -> EncodedLeaf:
        """Encode a row group of a leaf that has only nulls, of given levels."""
        encoder = next(encoder for each, encoder in self._leaves[leaf.column] if each.index == leaf.index)
        values, no_bounds = np.empty(0, PHYSICAL_DTYPES[leaf.physical]), np.empty(0, np.int64)
        starts = no_bounds if leaf.physical == BYTE_ARRAY else None
        levels = definition, repetition if leaf.max_repetition_level else None
        leaf_values = LeafValues(values, starts, starts, None, *levels)
        return encoder.encode([leaf], leaf_values, [0, num_rows], scratch.get())[0]

    def _cost(self, number: int) -> int:
        """Rank a column by the cost of encoding, low if costly: nested, then binary, then others."""
        leaf, _ = self._leaves[number][0]
        return -3 if leaf.is_nested else -2 if leaf.physical == BYTE_ARRAY else -1

    def _joined_columns(self, columns: Sequence[SourceColumn], num_rows: int) -> list[list[int]]:
        """Return the columns that are encoded together."""
        most = max(_JOINED_VALUES // num_rows, 1) if num_rows else 1
        groups: dict[object, list[int]] = {}
        found = []
        for number, column in enumerate(columns):
            joinable = column.joinable
            key = number if joinable is None or most == 1 else (joinable.kind, self._leaves[number][0][1])
            group = groups.get(key)
            if group is None or len(group) == most:
                group = groups[key] = []
                found.append(group)
            group.append(number)
        return found

    def _encode_columns(
        self,
        columns: Sequence[SourceColumn],
        numbers: Sequence[int],
        rows: _Rows,
        encoded: list[EncodedLeaf | None],
    ) -> None:
        """Encode flat columns of one type together, or a single column of any."""
        if len(numbers) > 1:
            try:
                sources = [source for number in numbers if (source := columns[number].joinable) is not None]
                parts = [part for source in sources for part in source.slice_rows(rows.start, rows.stop)]
                values = sources[0].convert(parts)
                leaves, (_, encoder) = [self._leaves[number][0][0] for number in numbers], self._leaves[numbers[0]][0]
                for leaf in encoder.encode(leaves, values, rows.bounds, rows.scratch.get()):
                    if rows.sealing is not None:
                        rows.sealing.seal(leaf)
                    encoded[leaf.leaf.index] = leaf
                return
            except ParquetError:
                pass  # again one by one, so that the error names the column
        for number in numbers:
            self._encode_column(columns[number], number, rows, encoded)

    def _encode_column(self, column: SourceColumn, number: int, rows: _Rows, encoded: list[EncodedLeaf | None]) -> None:
        with error_context(row_group=rows.row_group, column=column.node.name):
            found = column.read_leaves(rows.start, rows.stop)
            for (leaf, encoder), values in zip(self._leaves[number], found, strict=True):
                (each,) = encoder.encode([leaf], values, rows.bounds, rows.scratch.get())
                if rows.sealing is not None:
                    rows.sealing.seal(each)
                encoded[leaf.index] = each
