"""Spark looks for modules named ``pyspark_*`` and registers their `DefaultSource`: ``spark.read.format("numparq")``.

This file is installed beside the package numparq, not in it. It must not fail, whatever is missing here: Spark would
then find nobody's data sources.
"""

try:
    from numparq.spark.source import NumparqDataSource as DefaultSource
except ImportError:  # no pyarrow, or a pyspark that has no such sources yet
    __all__: list[str] = []
else:
    __all__ = ["DefaultSource"]
