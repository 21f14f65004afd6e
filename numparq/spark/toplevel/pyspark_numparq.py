"""Top-level module `pyspark_numparq`, which Spark imports to find the data source."""

from __future__ import annotations

try:
    from numparq.spark.data_source.source import NumparqDataSource as DefaultSource
except ImportError:  # no pyarrow, or a pyspark without Python data sources
    __all__: list[str] = []
else:
    __all__ = ["DefaultSource"]
