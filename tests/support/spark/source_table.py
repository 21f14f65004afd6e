"""What tests of the data source read: so many rows, and how they are read."""

from __future__ import annotations

from typing import Any

ROWS = 3_000


def load_numparq(spark: Any, path: str, **options: Any) -> Any:
    return spark.read.format("numparq").options(**options).load(path)
