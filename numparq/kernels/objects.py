"""Kernels that make Python objects."""
from __future__ import annotations
