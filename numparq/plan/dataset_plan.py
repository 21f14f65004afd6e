"""The plan of a dataset read: pruned files, and the read plans of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from numparq.util.pluralize import pluralize

from .read_plan import ReadPlan

_MOST_FILES = 20
# Pixels of the picture: bars, the names left of them, and the steps from file to file.
_WIDTH, _HEIGHT, _LABEL, _GAP = 560, 12, 260, 8
_STEP, _BASELINE = 16, 10
_READ = "#2b7bba"


@dataclass(frozen=True)
class FileCut:
    """Files that one pruner pruned.

    Parameters
    ----------
    by : str
        Name of the pruner.
    num_files : int
        Number of pruned files.
    num_bytes : int
        Their total size in bytes, as far as it is known.
    """

    by: str
    num_files: int
    num_bytes: int


@dataclass(frozen=True)
class DatasetPlan:
    """The plan of one read of a dataset.

    Parameters
    ----------
    num_files : int
        Number of files in the dataset.
    cuts : tuple of FileCut
        Pruned files, in the order of the pruners.
    files : tuple of (str, ReadPlan)
        Name and read plan of each remaining file.
    """

    num_files: int
    cuts: tuple[FileCut, ...]
    files: tuple[tuple[str, ReadPlan], ...]

    @property
    def num_rows(self) -> int:
        """Number of rows that are read or filtered."""
        return sum(plan.num_rows for _, plan in self.files)

    @property
    def num_bytes(self) -> int:
        """Bytes of the pages to read for them."""
        return sum(plan.num_bytes for _, plan in self.files)

    def explain(self) -> str:
        """Explain what is read, what was pruned, and why.

        Returns
        -------
        str
            Several lines: pruned files, then each remaining file with its row groups, rows and bytes.
        """
        lines = [self._headline()]
        within = self._cuts_within()
        if self.cuts or within:
            lines.append("pruned by")
            lines += [f"  {_cut_words(cut)}" for cut in self.cuts]
            lines += [
                f"  {level}: {pluralize(rows, 'row')}, {pluralize(num_bytes, 'byte')} in opened files"
                for level, (rows, num_bytes) in within.items()
            ]
        lines += [f"  {name}: {_file_words(plan)}" for name, plan in self._left()[:_MOST_FILES]]
        if len(self._left()) > _MOST_FILES:
            lines.append(f"  and {pluralize(len(self._left()) - _MOST_FILES, 'more file')}")
        return "\n".join(lines)

    def _cuts_within(self) -> dict[str, tuple[int, int]]:
        """Return pruned rows and bytes of the opened files, by level."""
        found: dict[str, tuple[int, int]] = {}
        for _, plan in self.files:
            for cut in plan.cuts:
                rows, num_bytes = found.get(cut.level, (0, 0))
                found[cut.level] = rows + cut.num_rows, num_bytes + cut.num_bytes
        return found

    def _left(self) -> Sequence[tuple[str, ReadPlan]]:
        return [(name, plan) for name, plan in self.files if plan.left]

    def _headline(self) -> str:
        return (
            f"{len(self._left()):,} of {pluralize(self.num_files, 'file')}, {pluralize(self.num_rows, 'row')}, "
            f"{pluralize(self.num_bytes, 'byte')}"
        )

    def __repr__(self) -> str:
        return f"<DatasetPlan: {self._headline()}>"

    def _repr_html_(self) -> str:
        """Draw the remaining files with the share of rows that is read of each."""
        left = self._left()
        drawn = left[:_MOST_FILES]
        lanes = "".join(_lane(row * _STEP, name, plan) for row, (name, plan) in enumerate(drawn))
        height = len(drawn) * _STEP
        if len(left) > len(drawn):
            height += _STEP
            more = pluralize(len(left) - len(drawn), "more file")
            lanes += f'<text x="{_LABEL}" y="{height - _STEP + _BASELINE}">and {more}</text>'
        cuts = "".join(f"<li>{escape(cut.by)}: {pluralize(cut.num_files, 'file')} pruned</li>" for cut in self.cuts)
        picture = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LABEL + _WIDTH}" '
            f'viewBox="0 0 {_LABEL + _WIDTH} {height}" style="max-width: 100%" font-size="11" '
            f'font-family="sans-serif" fill="currentColor">{lanes}</svg>'
        )
        return f"<div><p>{escape(self._headline())}</p><ul>{cuts}</ul>{picture if height else ''}</div>"


def _lane(y: int, name: str, plan: ReadPlan) -> str:
    """Draw a file: the end of its name, which a box of its own cuts off at the left, and a bar."""
    total = sum(group.num_rows for group in plan.row_groups)
    share = plan.num_rows / total if total else 0
    return (
        f"<g><title>{escape(name)}: {escape(_file_words(plan))}</title>"
        f'<svg x="0" y="{y}" width="{_LABEL - _GAP}" height="{_STEP}">'
        f'<text x="{_LABEL - _GAP}" y="{_BASELINE}" text-anchor="end">{escape(name)}</text></svg>'
        f'<rect x="{_LABEL}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" fill-opacity="0.12"/>'
        f'<rect x="{_LABEL}" y="{y}" width="{_WIDTH * share:.1f}" height="{_HEIGHT}" fill="{_READ}"/></g>'
    )


def _cut_words(cut: FileCut) -> str:
    size = f", {pluralize(cut.num_bytes, 'byte')}" if cut.num_bytes else ""
    return f"{cut.by}: {pluralize(cut.num_files, 'file')}{size}"


def _file_words(plan: ReadPlan) -> str:
    rows = sum(group.num_rows for group in plan.row_groups)
    return (
        f"{plan.num_rows:,} of {pluralize(rows, 'row')} in {len(plan.left):,} of "
        f"{pluralize(len(plan.row_groups), 'row group')}, {pluralize(plan.num_bytes, 'byte')}"
    )
