"""Verify a file against the specification; every deviation is named by its check."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numparq.util.lazy import lazy_names

if TYPE_CHECKING:
    from .checks import CHECKS
    from .deviations import Deviation
    from .file import VerificationReport, check_file, verify

__all__ = ["CHECKS", "Deviation", "VerificationReport", "check_file", "verify"]

_MODULE_OF = {
    "CHECKS": "checks",
    "Deviation": "deviations",
    "VerificationReport": "file",
    "check_file": "file",
    "verify": "file",
}

__getattr__, __dir__ = lazy_names(__name__, _MODULE_OF)
