"""Salvage a damaged or unfinished file: write what is left of it to a sound file."""

from __future__ import annotations

from .file import salvage
from .output import Salvaged

__all__ = ["Salvaged", "salvage"]
