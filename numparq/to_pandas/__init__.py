"""Decoded leaf columns to DataFrames and Arrow data."""

from __future__ import annotations

from numparq.util import pandas_version  # noqa: F401  (before anything of pandas 3)
