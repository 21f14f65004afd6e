"""What was saved of a file, and what was lost."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Salvaged"]


@dataclass
class Salvaged:
    """What was saved of a file.

    Attributes
    ----------
    num_rows, num_row_groups : int
        What the new file has.
    kept : list of str
        What was saved, and by what, in words.
    lost : list of str
        What was not, and why.
    """

    num_rows: int = 0
    num_row_groups: int = 0
    kept: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{self.num_rows:,} rows in {self.num_row_groups:,} row groups are saved"]
        return "\n".join([*lines, *(f"kept: {line}" for line in self.kept), *(f"lost: {line}" for line in self.lost)])
