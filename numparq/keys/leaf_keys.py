"""Names of columns matched to leaf columns: a name covers all leaf columns below it, and the longest one counts."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from numparq.errors import SchemaError
from numparq.typing import ColumnName
from numparq.util.arguments import did_you_mean


def match_leaves(names: Collection[ColumnName], paths: Sequence[tuple[str, ...]]) -> list[ColumnName | None]:
    """Return the name that covers each leaf column, None without one; SchemaError for a name that covers none."""
    unmatched, leaves = set(names), []
    for path in paths:
        prefixes = [name for end in range(len(path), 0, -1) for name in (path[:end], ".".join(path[:end]))]
        matches = [name for name in prefixes if name in names]
        unmatched.difference_update(matches)
        leaves.append(matches[0] if matches else None)
    if unmatched:
        name = min(unmatched, key=str)
        known = dict.fromkeys(".".join(path[:end]) for path in paths for end in range(1, len(path) + 1))
        raise SchemaError(f"column_keys names {name!r}, which is no column{did_you_mean(name, known)}")
    return leaves


def covers(names: Collection[ColumnName], column: str) -> bool:
    """Whether any of the names covers a column, or any leaf column of it."""
    dotted = [name if isinstance(name, str) else ".".join(name) for name in names]
    return any(f"{name}.".startswith(f"{column}.") or f"{column}.".startswith(f"{name}.") for name in dotted)
