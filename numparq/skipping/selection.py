"""The files that a store selects for a filter: kept, skipped, outside, unknown, and why."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from numparq.util.pluralize import pluralize

_MAX_NAMES = 8


@dataclass(frozen=True)
class StoreSelection:
    """Files of a dataset by what a store says of a filter.

    Attributes
    ----------
    kept : list of str
        Files that may have matching rows.
    skipped : list of str
        Files of the filter's partitions in which no row matches.
    outside : list of str
        Files of other partitions than the filter's.
    unknown : list of str
        Files that the store does not know as they are now; they may have matching rows.
    reasons : dict of str to int
        Number of skipped files by what ruled them out.
    """

    kept: Sequence[str]
    skipped: Sequence[str]
    outside: Sequence[str] = ()
    unknown: Sequence[str] = ()
    reasons: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        total = len(self.kept) + len(self.skipped) + len(self.outside) + len(self.unknown)
        read = len(self.kept) + len(self.unknown)
        lines = [f"{pluralize(read, 'file')} of {total:,} may match"]
        lines += [f"  skipped  {count:,} by {reason}" for reason, count in self.reasons.items()]
        lines += [f"  outside  {len(self.outside):,} by partition columns"] if self.outside else []
        lines += [f"  unknown  {len(self.unknown):,} are not in the store as they are now"] if self.unknown else []
        names = [*self.kept, *self.unknown]
        lines += [f"  read     {name}" for name in names[:_MAX_NAMES]]
        lines += [f"  ...      {len(names) - _MAX_NAMES:,} more"] if len(names) > _MAX_NAMES else []
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        counts = [
            ("kept", len(self.kept), "#4c78a8"),
            ("unknown", len(self.unknown), "#f58518"),
            ("skipped", len(self.skipped), "#d8d8d8"),
            ("outside", len(self.outside), "#eeeeee"),
        ]
        total = sum(count for _, count, _ in counts) or 1
        bars = "".join(
            f'<span title="{name}: {count:,}" style="display:inline-block;height:1em;'
            f'width:{100 * count / total:.2f}%;background:{color}"></span>'
            for name, count, color in counts
            if count
        )
        return f'<div style="width:100%;white-space:nowrap">{bars}</div><pre>{html.escape(str(self))}</pre>'
