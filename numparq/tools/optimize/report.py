"""Report of an optimize run: files, row groups, rows and bytes before and after."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from numparq.util.pluralize import pluralize

from .checksum import Checksum

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True, slots=True)
class FileTotals:
    """Number of files, row groups, rows and bytes."""

    files: int = 0
    row_groups: int = 0
    rows: int = 0
    bytes: int = 0


@dataclass
class OptimizeReport:
    """Report of `numparq.spark.optimize`.

    Attributes
    ----------
    path : str
        Dataset.
    out : str or None
        Directory of the new files; None if the dataset itself was rewritten.
    status : {"done", "nothing to do", "dry run"}
    before, after : FileTotals
        Rewritten files and new files. `after` is empty if nothing was written, and an estimate in a dry run.
    folders, fine_folders : int
        Number of directories that were rewritten, and that had a good layout already.
    sort_by, cluster_by : tuple of str
        Columns that rows were sorted or clustered by.
    bloom_filters : tuple of str
        Columns with Bloom filters in the new files.
    checksum : Checksum or None
        Checksum of all rows, equal before and after.
    seconds : dict of str to float
        Duration of each step.
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
        return "\n".join([*lines, *(f"  {line}" for line in self._describe_layout())])

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        facts = [Text(f"  {line}", style="dim") for line in self._describe_layout()]
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
        well = f"{pluralize(self.fine_folders, 'directory')} laid out well already"
        if self.status == "nothing to do":
            return f"{what} {self.path} has {well}"
        where = f" into {self.out}" if self.out else ""
        fine = f"; {well}" if self.fine_folders else ""
        return f"{what} {self.path}{where}: {pluralize(self.folders, 'directory')}{fine}"

    def _counts(self) -> list[tuple[str, str, str]]:
        about = "~" if self.status == "dry run" else ""
        rows = []
        for name in ("files", "row_groups", "rows", "bytes"):
            old, new = getattr(self.before, name), getattr(self.after, name)
            rows.append((name.replace("_", " "), f"{old:,}", f"{about}{new:,}" if new or not about else "?"))
        return rows

    def _describe_layout(self) -> list[str]:
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
