"""DataFrames and Arrow data to leaf columns, schema and key-value metadata for the writer."""

from __future__ import annotations

from numparq.format.key_values.arrow import arrow_schema_value
from numparq.util import pandas_version  # noqa: F401  (before anything of pandas 3)

from .frame import ShreddedFrame, shred_frame

__all__ = ["ShreddedFrame", "arrow_schema_value", "shred_frame"]
