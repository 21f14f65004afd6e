"""Check of pandas' version, on import: before pandas' newer functions are imported and missed."""

from __future__ import annotations

import pandas as pd

if pd.__version__.startswith(("1.", "2.")):
    raise ImportError(
        f"numparq needs pandas 3.0 or newer; version {pd.__version__} is installed: pip install -U pandas"
    )
