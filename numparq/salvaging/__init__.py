"""What is left of a damaged file, as a good one (``numparq salvage``).

`numparq.verifying.walk` finds pages without a footer, `chunks` and `groups` divide them up, `footer` describes what was
found.
"""

from __future__ import annotations

from .report import Salvaged
from .saving import salvage

__all__ = ["Salvaged", "salvage"]
