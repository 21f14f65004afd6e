"""DataFrames and Arrow data to leaf columns, schema and key-value metadata for the writer."""

from __future__ import annotations

from numparq.util import pandas_version  # noqa: F401  (before anything of pandas 3)
