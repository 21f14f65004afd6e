"""Names of columns in public parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

# A dotted name is first a top-level column of exactly that name, then a path; a tuple is always a path.
ColumnName: TypeAlias = str | tuple[str, ...]
Columns: TypeAlias = Sequence[ColumnName] | None
