"""The Parquet format: one module or package for each chapter of the specification; public names, lazily loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numparq.util.lazy import lazy_names

if TYPE_CHECKING:
    from .arrow_type import ArrowType
    from .bloom_filter import BloomFilter
    from .footer.checkpoints import find_last_footer
    from .logical_type import LogicalType
    from .schema import Leaf, Schema
    from .schema_node import SchemaNode
    from .writer_quirks import statistics_quirks, untrusted_statistics

__all__ = [
    "ArrowType",
    "BloomFilter",
    "Leaf",
    "LogicalType",
    "Schema",
    "SchemaNode",
    "find_last_footer",
    "statistics_quirks",
    "untrusted_statistics",
]

_MODULE_OF = {
    "ArrowType": "arrow_type",
    "BloomFilter": "bloom_filter",
    "Leaf": "schema",
    "LogicalType": "logical_type",
    "Schema": "schema",
    "SchemaNode": "schema_node",
    "find_last_footer": "footer.checkpoints",
    "statistics_quirks": "writer_quirks",
    "untrusted_statistics": "writer_quirks",
}

__getattr__, __dir__ = lazy_names(__name__, _MODULE_OF)
