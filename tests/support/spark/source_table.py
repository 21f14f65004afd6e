"""Row count and read of the data source tests' table."""

from __future__ import annotations

from typing import Any

ROWS = 3_000


def load_numparq(spark: Any, path: str, **options: Any) -> Any:
    return spark.read.format("numparq").options(**options).load(path)
