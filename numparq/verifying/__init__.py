"""A file held against the specification: every deviation named (``numparq verify``).

A module is a chapter: `footer`, `schema`, `groups`, `chunks`, `pages` (with `stored`, which finds, and `values`, which
decodes them), `statistics` and `bounds`, `indexes`, `bloom`, `sorting`, `keys`. `checks` is the table of all checks.
"""

from __future__ import annotations

from .checks import CHECKS
from .deviations import Deviation
from .report import Report, examine, verify

__all__ = ["CHECKS", "Deviation", "Report", "examine", "verify"]
