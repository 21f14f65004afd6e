"""Decoded leaf columns to DataFrames and Arrow data."""

from __future__ import annotations

from .frame import BlockLayout, allocate_blocks, assemble

__all__ = ["BlockLayout", "allocate_blocks", "assemble"]
