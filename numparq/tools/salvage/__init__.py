"""Salvage a damaged or unfinished file: write what is left of it to a sound file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numparq.util.lazy import lazy_names

if TYPE_CHECKING:
    from .file import salvage
    from .output import Salvaged
    from .unfinished_files import leftovers, recover

__all__ = ["Salvaged", "leftovers", "recover", "salvage"]

_MODULE_OF = {
    "salvage": "file",
    "Salvaged": "output",
    "leftovers": "unfinished_files",
    "recover": "unfinished_files",
}

__getattr__, __dir__ = lazy_names(__name__, _MODULE_OF)
