"""Render a profile as text, as a rich table, or as HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape
from typing import Any, Literal, NamedTuple

from numparq.util.format_numbers import format_decimal_bytes, format_percent
from numparq.util.pluralize import pluralize

from .figures import ColumnProfile, LookupCost, ProfileFigures

_MAX_BOUND_LENGTH = 24
_BAR_WIDTH = 60  # pixels for a share of 1
_COLOUR = "#2b7bba"
_DISTINCT_PREFIXES = {"estimate": "~", "dictionary": "≤ ", "exact": "", "unknown": ""}
_LEGEND = (
    "look-up, 1 % range: the share of the bytes that a query for one value, or for 1 % of the rows, is expected to "
    "read with the existing bounds and Bloom filters; ~: an estimate, ≤: at most; ≥ and ≤ before bounds: no value "
    "lies beyond"
)


def headline(profile: ProfileFigures) -> str:
    """Return a line on the size of the dataset."""
    files = f"{format_decimal_bytes(profile.smallest_file)} to {format_decimal_bytes(profile.largest_file)}"
    return (
        f"{profile.path}: {pluralize(profile.num_files, 'file')} ({files}), "
        f"{pluralize(profile.num_row_groups, 'row group')}, {pluralize(profile.num_rows, 'row')}, "
        f"{format_decimal_bytes(profile.size)}, {format_decimal_bytes(profile.uncompressed)} before compression"
    )


def _notes(profile: ProfileFigures) -> Iterator[str]:
    """Yield lines on the writers and the declared sort orders."""
    if profile.writers:
        yield "written by " + ", ".join(
            f"{name} ({pluralize(count, 'file')})" for name, count in profile.writers.items()
        )
    for words, count in profile.sorted_by.items():
        yield f"declared as sorted by {words}: {count:,} of {pluralize(profile.num_row_groups, 'row group')}"


def _format_nulls(column: ColumnProfile) -> str:
    if column.nulls is None:
        return "?"
    return format_percent(column.null_share) if column.nulls else "none"


def _format_bound(value: Any, is_exact: bool, sign: str) -> str:
    if value is None:
        return ""
    text = f"{value:,}" if type(value) is int else f"{value:.6g}" if isinstance(value, float) else str(value)
    text = "".join(letter if letter.isprintable() else "·" for letter in text)
    text = text if len(text) <= _MAX_BOUND_LENGTH else text[: _MAX_BOUND_LENGTH - 1] + "…"
    return text if is_exact else f"{sign} {text}"


def _byte_share(lookup: LookupCost | None) -> float | None:
    return None if lookup is None else lookup.num_bytes


class _Heading(NamedTuple):
    """Column of the table: title, text of a cell, alignment, and the share that a bar shows in HTML."""

    title: str
    cell: Callable[[ColumnProfile], str]
    side: Literal["left", "right"] = "left"
    bar: Callable[[ColumnProfile], float | None] = lambda column: None


def _share_cell(share: Callable[[ColumnProfile], float | None]) -> Any:
    """Return text, alignment and bar of a share."""
    return lambda column: format_percent(share(column)), "right", share


_HEADINGS = (
    _Heading("column", lambda column: column.name),
    _Heading("type", lambda column: column.type + (", a partition key" if column.is_partition else "")),
    _Heading("nulls", _format_nulls, "right", lambda column: column.null_share),
    _Heading(
        "distinct",
        lambda column: (
            "?" if column.distinct is None else f"{_DISTINCT_PREFIXES[column.distinct_kind]}{column.distinct:,}"
        ),
        "right",
    ),
    _Heading("min", lambda column: _format_bound(column.min, column.min_exact, "≥")),
    _Heading("max", lambda column: _format_bound(column.max, column.max_exact, "≤")),
    _Heading("size", lambda column: "" if column.is_partition else format_decimal_bytes(column.compressed), "right"),
    _Heading("share", *_share_cell(lambda column: None if column.is_partition else column.share)),
    _Heading("codec", lambda column: ", ".join(column.codecs)),
    _Heading("encoding", lambda column: ", ".join(list(column.page_encodings or column.encodings)[:2])),
    _Heading("order", lambda column: column.order),
    _Heading("look-up", *_share_cell(lambda column: _byte_share(column.lookup))),
    _Heading("1 % range", *_share_cell(lambda column: _byte_share(column.small_range))),
)


def _row_cells(column: ColumnProfile) -> list[str]:
    return [heading.cell(column) for heading in _HEADINGS]


def to_text(profile: ProfileFigures) -> str:
    """Return a profile as lines of text."""
    table = [[heading.title for heading in _HEADINGS], *map(_row_cells, profile.columns)]
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    lines = [headline(profile), *(f"  {note}" for note in _notes(profile)), ""]
    for row in table:
        cells = (
            cell.rjust(width) if heading.side == "right" else cell.ljust(width)
            for cell, width, heading in zip(row, widths, _HEADINGS, strict=True)
        )
        lines.append("  ".join(cells).rstrip())
    lines += ["", _LEGEND]
    for title, several in (("advice", profile.advice), ("could not be read", profile.troubles)):
        lines += ["", title, *(f"  - {one}" for one in several)] if several else []
    return "\n".join(lines)


def to_rich(profile: ProfileFigures) -> Any:
    """Return a profile as a `rich` renderable for terminals."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in _HEADINGS:
        table.add_column(heading.title, justify=heading.side, no_wrap=heading.title in ("column", "size"))
    for column in profile.columns:
        cells, share = [Text(cell) for cell in _row_cells(column)], _byte_share(column.lookup)
        if share is not None:
            cells[-2].stylize("green" if share < 0.1 else "red" if share >= 0.5 else "")
        table.add_row(*cells)
    parts: list[Any] = [Text(headline(profile), "bold"), *(Text(f"  {note}", "dim") for note in _notes(profile)), table]
    parts.append(Text(_LEGEND, "dim"))
    parts += [Text(f"→ {one}", "yellow") for one in profile.advice]
    parts += [Text(f"✗ {one}", "red") for one in profile.troubles]
    return Group(*parts)


def to_html(profile: ProfileFigures) -> str:
    """Return a profile as HTML: headline, table with bars, advice."""
    cell = 'style="text-align: {}; padding: 0 1em 0 0; white-space: nowrap"'
    head = "".join(f"<th {cell.format(heading.side)}>{escape(heading.title)}</th>" for heading in _HEADINGS)
    rows = [
        "".join(
            f"<td {cell.format(heading.side)}>{escape(heading.cell(column))}{_bar_html(heading.bar(column))}</td>"
            for heading in _HEADINGS
        )
        for column in profile.columns
    ]
    notes = "<br>".join(escape(note) for note in _notes(profile))
    lists = "".join(
        f"<p>{escape(title)}</p><ul>{''.join(f'<li>{escape(one)}</li>' for one in several)}</ul>"
        for title, several in (("Advice", profile.advice), ("Could not be read", profile.troubles))
        if several
    )
    return (
        f"<div><p><b>{escape(headline(profile))}</b><br>{notes}</p><table><tr>{head}</tr>"
        f"{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"
        f'<p style="font-size: 11px">{escape(_LEGEND)}</p>{lists}</div>'
    )


def _bar_html(share: float | None) -> str:
    """Return a bar that shows a share."""
    if not share:
        return ""
    width = max(round(_BAR_WIDTH * min(share, 1.0)), 1)
    return (
        f'<div style="width: {_BAR_WIDTH}px; height: 3px; background: #8883"><div style="width: {width}px; height: '
        f'3px; background: {_COLOUR}"></div></div>'
    )
