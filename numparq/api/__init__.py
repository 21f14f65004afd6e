"""Public functions that read and write: `read_parquet` and `to_parquet`."""

from numparq.util import pandas_version  # noqa: F401  (before anything of pandas 3)
