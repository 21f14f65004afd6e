"""A plan as a map for notebooks: from left to right the rows, a lane for each column, what is read and what is not.

However many pages there are, no lane is made of more shapes than it has points of width.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from .row_ranges import RowRanges
from .words import headline

if TYPE_CHECKING:
    from .read_plan import ReadPlan

__all__ = ["picture"]

_WIDTH, _HEIGHT, _STEP, _LABEL = 720, 12, 18, 150
_MOST_LANES = 40
# Edges of pages or row groups closer than that, on the average, would only be a grey.
_NEAREST_EDGES = 4
_ROWS, _PAGES = "#e08214", "#2b7bba"
_LEGEND = (
    f'The rows of the file from left to right: <span style="color: {_ROWS}">■</span> wanted, '
    f'<span style="color: {_PAGES}">■</span> read of a column; between the lines row groups, and pages as far as known.'
)
_CELL = 'style="text-align: {}; padding: 0 1em 0 0"'


def picture(plan: ReadPlan) -> str:
    """Draw a plan.

    Parameters
    ----------
    plan : ReadPlan
        The plan.

    Returns
    -------
    str
        HTML: a headline, an SVG, and a table of what cut the plan.
    """
    return f"<div><p>{escape(headline(plan))}</p>{_map(plan)}{_cuts(plan)}</div>"


def _map(plan: ReadPlan) -> str:
    counts = np.array([group.num_rows for group in plan.row_groups], np.float64)
    ends = np.cumsum(counts)
    if not len(ends) or not ends[-1]:
        return ""
    starts, scale = ends - counts, _WIDTH / ends[-1]
    shown = plan.columns[:_MOST_LANES]
    wanted = [(group.rows.bounds + start) * scale for group, start in zip(plan.row_groups, starts, strict=True)]
    lanes = [_lane(0, "wanted rows", f"{plan.num_rows:,} rows", wanted, _ROWS)]
    for column, name in enumerate(shown):
        lanes.append(_column_lane(plan, column, name, starts, scale))
    if len(plan.columns) > len(shown):
        y = (len(shown) + 2) * _STEP - 4
        lanes.append(f'<text x="0" y="{y}">and {len(plan.columns) - len(shown):,} more columns</text>')
    bottom = (len(shown) + 1) * _STEP
    edges = _edges(starts[1:] * scale, 0, bottom - _STEP + _HEIGHT, 1.0)
    height = bottom + (_STEP if len(plan.columns) > len(shown) else 0)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LABEL + _WIDTH}" viewBox="0 0 {_LABEL + _WIDTH} {height}" '
        f'style="max-width: 100%" font-size="11" font-family="sans-serif" fill="currentColor">'
        f'{"".join(lanes)}{edges}</svg><p style="font-size: 11px; margin: 0 0 1em 0">{_LEGEND}</p>'
    )


def _column_lane(plan: ReadPlan, column: int, name: str, starts: np.ndarray, scale: float) -> str:
    """Draw the pages of a column that are read, and where pages begin."""
    read, begins, num_bytes, all_bytes = [], [], 0, 0
    for group, start in zip(plan.row_groups, starts, strict=True):
        chunk = group.chunks[column]
        read.append((chunk.rows_of(group.needed(column)).bounds + start) * scale)
        num_bytes, all_bytes = num_bytes + chunk.num_bytes(group.rows), all_bytes + chunk.end - chunk.start
        if chunk.is_indexed:
            begins.append((chunk.first_rows + start) * scale)
    y = (column + 1) * _STEP
    edges = _edges(np.concatenate(begins), y, _HEIGHT, 0.4) if begins else ""
    return _lane(y, name, f"{name}: {num_bytes:,} of {all_bytes:,} bytes", read, _PAGES) + edges


def _lane(y: int, label: str, title: str, filled: list[np.ndarray], colour: str) -> str:
    """Draw a lane: its name, a pale bar, and on it what is filled, in whole points, never less than one."""
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
    """Draw upright lines, unless there are too many to tell them apart."""
    places = np.unique(np.round(points).astype(np.int64))
    if not len(places) or len(points) > _WIDTH // _NEAREST_EDGES:
        return ""
    lines = "".join(f"M{_LABEL + place} {y}v{height}" for place in places.tolist())
    return f'<path d="{lines}" stroke="currentColor" stroke-width="{width}"/>'


def _cuts(plan: ReadPlan) -> str:
    if not plan.cuts:
        return ""
    titles = {"cut by": "left", "rows": "right", "bytes": "right", "because of": "left"}
    head = "".join(f"<th {_CELL.format(side)}>{text}</th>" for text, side in titles.items())
    body = "".join(
        f"<tr><td {_CELL.format('left')}>{escape(cut.level)}</td><td {_CELL.format('right')}>{cut.num_rows:,}</td>"
        f"<td {_CELL.format('right')}>{cut.num_bytes:,}</td><td {_CELL.format('left')}>{escape(cut.reason)}</td></tr>"
        for cut in plan.cuts
    )
    return f"<table><tr>{head}</tr>{body}</table>"
