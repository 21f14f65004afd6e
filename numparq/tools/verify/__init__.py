"""Verify a file against the specification; every deviation is named by its check."""

from __future__ import annotations

from .checks import CHECKS
from .deviations import Deviation
from .file import VerificationReport, check_file, verify

__all__ = ["CHECKS", "Deviation", "VerificationReport", "check_file", "verify"]
