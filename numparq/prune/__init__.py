"""Prune row groups and pages by statistics, Bloom filters, column indexes and dictionaries."""

from __future__ import annotations

from .planner import ReadPlanner

__all__ = ["ReadPlanner"]
