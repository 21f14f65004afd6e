"""Decoded columns to DataFrames: memory for them first (`allocate`), then the frame made of it (`assemble`)."""

from .assemble import assemble
from .layout import Layout, allocate

__all__ = ["Layout", "allocate", "assemble"]
