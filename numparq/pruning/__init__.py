"""What need not be read: statistics, Bloom filters, page indexes and dictionaries held against a predicate.

A `Planner` makes the plan of a read and cuts it down, level by level, fetching what that takes.
"""

from __future__ import annotations

from .planner import Planner

__all__ = ["Planner"]
