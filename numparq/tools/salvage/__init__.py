"""Salvage a damaged or unfinished file: write what is left of it to a sound file."""

from __future__ import annotations

from .file import salvage
from .output import Salvaged
from .unfinished_files import leftovers, recover

__all__ = ["Salvaged", "leftovers", "recover", "salvage"]
