"""numparq on Apache Spark; the only package that imports pyspark, and only on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = [
    "aggregate_pandas",
    "aggregate_pandas_by",
    "configure",
    "decode_bytes",
    "decode_paths",
    "map_pandas",
    "optimize",
    "profile",
    "read",
    "register",
]

# Module of each public name, imported on first use.
_HOMES: dict[str, str] = {
    "aggregate_pandas": "jobs.pandas_jobs",
    "aggregate_pandas_by": "jobs.pandas_jobs",
    "configure": "session",
    "decode_bytes": "udf",
    "decode_paths": "udf",
    "map_pandas": "jobs.pandas_jobs",
    "optimize": "optimization.optimize",
    "profile": "profiler",
    "read": "scan.read",
    "register": "session",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'numparq.spark' has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
