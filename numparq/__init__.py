"""numparq reads and writes Apache Parquet for people who work in pandas.

>>> import io, pandas, numparq
>>> buffer = io.BytesIO()
>>> pandas.DataFrame({"a": [1, 2, 3]}).to_parquet(buffer)
>>> numparq.read_parquet(buffer)
   a
0  1
1  2
2  3
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import pandas as pandas
    from . import spark as spark
    from .api import file_bytes, read_parquet, to_parquet
    from .dataset.dataset import Dataset
    from .dataset.pruners import FilePruner
    from .dataset.writing import DatasetWriter
    from .errors import (
        CorruptPageError,
        DecryptionError,
        InvalidFileError,
        LimitError,
        ParquetError,
        SchemaError,
        UnsupportedError,
    )
    from .kernels import warmup
    from .plan.byte_ranges import Coalescing
    from .predicate.expression import col
    from .reader import ParquetFile
    from .runtime_filter import RuntimeFilter
    from .salvaging import Salvaged, salvage
    from .verifying import Deviation, verify
    from .writer import ParquetWriter

__version__ = "0.1.0"

# Public names, and the module of each: imported when it is first asked for, so that `import numparq` costs nothing.
_HOMES = {
    "read_parquet": "api",
    "to_parquet": "api",
    "file_bytes": "api",
    "ParquetWriter": "writer",
    "Dataset": "dataset.dataset",
    "DatasetWriter": "dataset.writing",
    "FilePruner": "dataset.pruners",
    "ParquetFile": "reader",
    "verify": "verifying",
    "salvage": "salvaging",
    "Salvaged": "salvaging",
    "Deviation": "verifying",
    "warmup": "kernels",
    "col": "predicate.expression",
    "RuntimeFilter": "runtime_filter",
    "Coalescing": "plan.byte_ranges",
    "ParquetError": "errors",
    "InvalidFileError": "errors",
    "CorruptPageError": "errors",
    "UnsupportedError": "errors",
    "DecryptionError": "errors",
    "SchemaError": "errors",
    "LimitError": "errors",
}
# Modules that are public names themselves. None is in `__all__`: a star import must not shadow pandas.
_MODULES = ("pandas", "spark")

__all__ = [
    "Coalescing",
    "CorruptPageError",
    "Dataset",
    "DatasetWriter",
    "DecryptionError",
    "Deviation",
    "FilePruner",
    "InvalidFileError",
    "LimitError",
    "ParquetError",
    "ParquetFile",
    "ParquetWriter",
    "RuntimeFilter",
    "Salvaged",
    "SchemaError",
    "UnsupportedError",
    "col",
    "file_bytes",
    "read_parquet",
    "salvage",
    "to_parquet",
    "verify",
    "warmup",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name not in _HOMES:
        raise AttributeError(f"module 'numparq' has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES})
