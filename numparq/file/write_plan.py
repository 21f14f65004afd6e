"""Plan of a file to write: what its schema and the writer options decide, cached process-wide by both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from numparq.format.column_order import ColumnOrder, leaf_orders
from numparq.format.schema import Leaf
from numparq.format.schema_node import SchemaNode, leaf_columns, to_schema_elements
from numparq.format.thrift.encode import EncodedThrift, encode_field
from numparq.util.bounded_cache import fork_safe_lru_cache

from .encode_columns import ColumnEncoder
from .writer_options import WriterOptions

_MAX_CACHED, _MAX_CACHED_COLUMNS = 8, 1 << 14


class WritePlan(NamedTuple):
    """Leaf columns, their encoder, and the parts of the footer that no row changes.

    Attributes
    ----------
    paths : list of bytes
        `ColumnMetaData.path_in_schema` of each leaf, encoded.
    """

    leaves: list[Leaf]
    schema: EncodedThrift
    column_orders: EncodedThrift
    paths: list[bytes]
    encoder: ColumnEncoder


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
    encoder = ColumnEncoder(leaves, by_leaf, options.resolve(leaves))
    return WritePlan(leaves, EncodedThrift(schema), EncodedThrift(unions), paths, encoder)


_cached_plan = fork_safe_lru_cache(_MAX_CACHED)(_build_plan)
