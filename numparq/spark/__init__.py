"""numparq on Spark: its reader, planner and writer inside the Python workers of the executors, Spark for the rest.

This is the only package that imports pyspark, and importing it does not yet.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Public names, and the module of each: imported when it is first asked for.
_HOMES: dict[str, str] = {
    "aggregate_pandas": "jobs",
    "aggregate_pandas_by": "jobs",
    "configure": "configuration",
    "decode_bytes": "decoders",
    "decode_paths": "decoders",
    "map_pandas": "jobs",
    "optimize": "optimizing",
    "profile": "profiling",
    "read": "reading",
    "register": "reading",
}

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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'numparq.spark' has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
