"""numparq on Apache Spark; the only package that imports pyspark, and only on first use."""

from __future__ import annotations

from numparq.util.lazy import lazy_names

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
_MODULE_OF = {
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


__getattr__, __dir__ = lazy_names(__name__, _MODULE_OF)
