"""Explain a read plan as text, or as an HTML map for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Protocol

import numpy as np

from numparq.util.pluralize import pluralize

from .chunk_pages import DICTIONARY_PAGE_ORDINAL
from .row_ranges import RowRanges

if TYPE_CHECKING:
    from .plan_change import PlanCut
    from .row_group_plan import RowGroupPlan

# Row groups, and columns of each, that the text lists; the rest is only counted.
_MOST_ROW_GROUPS = 20
_MOST_COLUMNS = 6

_WIDTH, _HEIGHT, _STEP, _LABEL = 720, 12, 18, 150
_MOST_LANES = 40
# Least average distance between edges in pixels; denser ones would blur to grey.
_NEAREST_EDGES = 4
_ROWS, _PAGES = "#e08214", "#2b7bba"
_LEGEND = (
    f'Rows of the file from left to right: <span style="color: {_ROWS}">■</span> selected, '
    f'<span style="color: {_PAGES}">■</span> read of a column. Lines separate row groups and known pages.'
)
_CELL = 'style="text-align: {}; padding: 0 1em 0 0"'


class ExplainedPlan(Protocol):
    """Members of `ReadPlan` that an explanation reads."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Leaf columns to read."""

    @property
    def row_groups(self) -> tuple[RowGroupPlan, ...]:
        """All row groups in scope."""

    @property
    def left(self) -> tuple[RowGroupPlan, ...]:
        """Row groups with selected rows."""

    @property
    def num_rows(self) -> int:
        """Number of selected rows."""

    @property
    def num_bytes(self) -> int:
        """Number of bytes to read."""

    @property
    def cuts(self) -> tuple[PlanCut, ...]:
        """Rows and bytes pruned by each step."""

    def __getitem__(self, ordinal: int) -> RowGroupPlan: ...

    def byte_ranges(self) -> np.ndarray:
        """Return the byte ranges to read."""


def summary_text(plan: ExplainedPlan) -> str:
    """Return one line with the columns, rows and bytes that are read."""
    all_rows = sum(group.num_rows for group in plan.row_groups)
    all_bytes = sum(group.num_chunk_bytes for group in plan.row_groups)
    return (
        f"{pluralize(len(plan.columns), 'column')}, {plan.num_rows:,} of {pluralize(all_rows, 'row')}, "
        f"{plan.num_bytes:,} of {pluralize(all_bytes, 'byte')}"
    )


def explain_text(plan: ExplainedPlan) -> str:
    """Return the text of `ReadPlan.explain`."""
    lines = [summary_text(plan)]
    if plan.cuts:
        lines += ["pruned by", *_aligned([_cut_words(cut) for cut in plan.cuts])]
    left = plan.left
    lines.append(f"read from {len(left):,} of {pluralize(len(plan.row_groups), 'row group')}")
    lines += [f"  {_group_words(plan, group)}" for group in left[:_MOST_ROW_GROUPS]]
    if len(left) > _MOST_ROW_GROUPS:
        lines.append(f"  and {pluralize(len(left) - _MOST_ROW_GROUPS, 'more row group')}")
    return "\n".join(lines)


def list_reads(plan: ExplainedPlan) -> list[str]:
    """Return the lines of `ReadPlan.reads`."""
    return [
        f"row group {group}, column {plan.columns[column]}: {_page_words(plan[group], column, page)} "
        f"({pluralize(stop - start, 'byte')})"
        for start, stop, group, column, page in plan.byte_ranges().tolist()
    ]


def _page_words(group: RowGroupPlan, column: int, page: int) -> str:
    if not group.chunks[column].is_indexed:
        return "all pages"
    return "dictionary" if page == DICTIONARY_PAGE_ORDINAL else f"page {page:,}"


def _group_words(plan: ExplainedPlan, group: RowGroupPlan) -> str:
    pages: dict[str, list[str]] = {}
    for place, name in enumerate(plan.columns[:_MOST_COLUMNS]):
        pages.setdefault(_pages_words(group, place), []).append(name)
    columns = [f"{', '.join(names)}: {words}" for words, names in pages.items()]
    if len(plan.columns) > _MOST_COLUMNS:
        columns.append(pluralize(len(plan.columns) - _MOST_COLUMNS, "more column"))
    return "; ".join([f"row group {group.ordinal}: {_rows_words(group)}", *columns])


def _rows_words(group: RowGroupPlan) -> str:
    if group.rows.count == group.num_rows:
        return "the row" if group.num_rows == 1 else f"all {pluralize(group.num_rows, 'row')}"
    return f"{group.rows.count:,} of {pluralize(group.num_rows, 'row')} in {pluralize(len(group.rows), 'range')}"


def _pages_words(group: RowGroupPlan, place: int) -> str:
    chunk = group.chunks[place]
    if not chunk.is_indexed:
        return "all pages"
    return f"{len(group.pages_with_rows(place)):,} of {pluralize(chunk.num_pages, 'page')}"


def _cut_words(cut: PlanCut) -> list[str]:
    return [cut.level, pluralize(cut.num_rows, "row"), pluralize(cut.num_bytes, "byte"), cut.reason]


def _aligned(table: list[list[str]]) -> list[str]:
    """Align table cells: first and last column to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        f"  {row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]}".rstrip() for row in table
    ]


def explain_html(plan: ExplainedPlan) -> str:
    """Return a plan as HTML: a headline, an SVG map, and a table of the cuts."""
    return f"<div><p>{escape(summary_text(plan))}</p>{_map(plan)}{_cuts(plan)}</div>"


def _map(plan: ExplainedPlan) -> str:
    counts = np.array([group.num_rows for group in plan.row_groups], np.float64)
    ends = np.cumsum(counts)
    if not len(ends) or not ends[-1]:
        return ""
    starts, scale = ends - counts, _WIDTH / ends[-1]
    shown = plan.columns[:_MOST_LANES]
    selected = [(group.rows.bounds + start) * scale for group, start in zip(plan.row_groups, starts, strict=True)]
    lanes = [_lane(0, "selected rows", pluralize(plan.num_rows, "row"), selected, _ROWS)]
    for column, name in enumerate(shown):
        lanes.append(_column_lane(plan, column, name, starts, scale))
    if len(plan.columns) > len(shown):
        y = (len(shown) + 2) * _STEP - 4
        lanes.append(f'<text x="0" y="{y}">and {pluralize(len(plan.columns) - len(shown), "more column")}</text>')
    bottom = (len(shown) + 1) * _STEP
    edges = _edges(starts[1:] * scale, 0, bottom - _STEP + _HEIGHT, 1.0)
    height = bottom + (_STEP if len(plan.columns) > len(shown) else 0)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LABEL + _WIDTH}" viewBox="0 0 {_LABEL + _WIDTH} {height}" '
        f'style="max-width: 100%" font-size="11" font-family="sans-serif" fill="currentColor">'
        f'{"".join(lanes)}{edges}</svg><p style="font-size: 11px; margin: 0 0 1em 0">{_LEGEND}</p>'
    )


def _column_lane(plan: ExplainedPlan, column: int, name: str, starts: np.ndarray, scale: float) -> str:
    """Draw the pages of a column that are read, and the edges of all pages."""
    read, begins, num_bytes, all_bytes = [], [], 0, 0
    for group, start in zip(plan.row_groups, starts, strict=True):
        chunk = group.chunks[column]
        read.append((chunk.rows_in_pages(group.pages_with_rows(column)).bounds + start) * scale)
        num_bytes, all_bytes = num_bytes + chunk.num_bytes(group.rows), all_bytes + chunk.end - chunk.start
        if chunk.is_indexed:
            begins.append((chunk.first_rows + start) * scale)
    y = (column + 1) * _STEP
    edges = _edges(np.concatenate(begins), y, _HEIGHT, 0.4) if begins else ""
    return _lane(y, name, f"{name}: {num_bytes:,} of {pluralize(all_bytes, 'byte')}", read, _PAGES) + edges


def _lane(y: int, label: str, title: str, filled: list[np.ndarray], colour: str) -> str:
    """Draw a lane: label, pale bar, and filled ranges in whole pixels, at least one wide."""
    points = np.concatenate(filled)
    left = np.minimum(np.floor(points[:, 0]), _WIDTH - 1)
    right = np.minimum(np.maximum(np.ceil(points[:, 1]), left + 1), _WIDTH)
    runs = RowRanges(np.stack([left, right], axis=1).astype(np.int64))
    shapes = "".join(f"M{_LABEL + start} {y}h{stop - start}v{_HEIGHT}h{start - stop}z" for start, stop in runs)
    short = label if len(label) <= 22 else f"{label[:21]}…"
    return (
        f'<g><title>{escape(title)}</title><text x="0" y="{y + _HEIGHT - 2}">{escape(short)}</text>'
        f'<rect x="{_LABEL}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" fill-opacity="0.12"/>'
        f'<path d="{shapes}" fill="{colour}"/></g>'
    )


def _edges(points: np.ndarray, y: int, height: int, width: float) -> str:
    """Draw vertical lines at the given points, or nothing if they are too dense."""
    places = np.unique(np.round(points).astype(np.int64))
    if not len(places) or len(points) > _WIDTH // _NEAREST_EDGES:
        return ""
    lines = "".join(f"M{_LABEL + place} {y}v{height}" for place in places.tolist())
    return f'<path d="{lines}" stroke="currentColor" stroke-width="{width}"/>'


def _cuts(plan: ExplainedPlan) -> str:
    if not plan.cuts:
        return ""
    titles = {"pruned by": "left", "rows": "right", "bytes": "right", "reason": "left"}
    head = "".join(f"<th {_CELL.format(side)}>{text}</th>" for text, side in titles.items())
    body = "".join(
        f"<tr><td {_CELL.format('left')}>{escape(cut.level)}</td><td {_CELL.format('right')}>{cut.num_rows:,}</td>"
        f"<td {_CELL.format('right')}>{cut.num_bytes:,}</td><td {_CELL.format('left')}>{escape(cut.reason)}</td></tr>"
        for cut in plan.cuts
    )
    return f"<table><tr>{head}</tr>{body}</table>"
