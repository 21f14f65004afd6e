"""Report of an optimize run: files, row groups, rows and bytes before and after."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .checksum import Checksum

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["FileTotals", "OptimizeReport"]


@dataclass(frozen=True, slots=True)
class FileTotals:
    """Files, counted.

    Parameters
    ----------
    files, row_groups, rows, bytes : int
        How many.
    """

    files: int = 0
    row_groups: int = 0
    rows: int = 0
    bytes: int = 0


@dataclass
class OptimizeReport:
    """What `numparq.spark.optimize` did.

    Attributes
    ----------
    path : str
        The dataset.
    out : str or None
        Where the new files are, if not in its place.
    status : {"done", "nothing to do", "dry run"}
        What became of it.
    before, after : FileTotals
        The files that were rewritten, and those that came of them; `after` is empty where nothing was written, and
        estimated in a dry run.
    folders, fine_folders : int
        Directories with files that were rewritten, and those that were laid out well already.
    sort_by, cluster_by : tuple of str
        What rows are in the order of, or brought together by.
    bloom_filters : tuple of str
        The columns that have Bloom filters now.
    checksum : Checksum or None
        Of all values, the same before and after: see `numparq.tools.optimize.checksum`.
    seconds : dict of str to float
        How long each step took.
    """

    path: str
    out: str | None = None
    status: str = "done"
    before: FileTotals = field(default_factory=FileTotals)
    after: FileTotals = field(default_factory=FileTotals)
    folders: int = 0
    fine_folders: int = 0
    sort_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    bloom_filters: tuple[str, ...] = ()
    checksum: Checksum | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [self._headline()]
        if self.status != "nothing to do":
            lines += [f"  {title:<10} {before:>16} -> {after:>16}" for title, before, after in self._counts()]
        return "\n".join([*lines, *(f"  {line}" for line in self._facts())])

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        facts = [Text(f"  {line}", style="dim") for line in self._facts()]
        counts = [self._table()] if self.status != "nothing to do" else []
        return Group(Text(self._headline(), style="bold"), *counts, *facts)

    def _table(self) -> Table:
        from rich.table import Table

        table = Table(box=None, pad_edge=True)
        table.add_column("")
        table.add_column("before", justify="right")
        table.add_column("after", justify="right", style="bold")
        for row in self._counts():
            table.add_row(*row)
        return table

    def _headline(self) -> str:
        what = {"done": "optimized", "dry run": "would optimize", "nothing to do": "nothing to do:"}[self.status]
        well = f"{_count_text(self.fine_folders, 'directory', 'directories')} laid out well already"
        if self.status == "nothing to do":
            return f"{what} {self.path} has {well}"
        where = f" into {self.out}" if self.out else ""
        fine = f"; {well}" if self.fine_folders else ""
        return f"{what} {self.path}{where}: {_count_text(self.folders, 'directory', 'directories')}{fine}"

    def _counts(self) -> list[tuple[str, str, str]]:
        about = "~" if self.status == "dry run" else ""
        rows = []
        for name in ("files", "row_groups", "rows", "bytes"):
            old, new = getattr(self.before, name), getattr(self.after, name)
            rows.append((name.replace("_", " "), f"{old:,}", f"{about}{new:,}" if new or not about else "?"))
        return rows

    def _facts(self) -> list[str]:
        facts = []
        if self.sort_by:
            facts.append(f"sorted by {', '.join(self.sort_by)}")
        if self.cluster_by:
            facts.append(f"clustered by {', '.join(self.cluster_by)}")
        if self.status == "done":
            filters = f"; Bloom filters of {', '.join(self.bloom_filters)}" if self.bloom_filters else ""
            facts.append(f"page indexes of all columns{filters}")
        if self.checksum is not None:
            facts.append(f"checksum {self.checksum}, before and after")
        if self.seconds:
            facts.append(", ".join(f"{name} {seconds:.1f} s" for name, seconds in self.seconds.items()))
        return facts


def _count_text(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"
