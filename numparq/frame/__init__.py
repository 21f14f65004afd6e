"""Decoded columns to DataFrames: memory for them first (`allocate`), then the frame made of it (`assemble`)."""

from numparq.frame.assemble import assemble
from numparq.frame.layout import Layout, allocate

__all__ = ["Layout", "allocate", "assemble"]
