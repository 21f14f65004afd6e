"""Render a profile as text, as a rich table, or as HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape
from typing import TYPE_CHECKING, Any

from numparq.util.pluralize import pluralize

if TYPE_CHECKING:
    from .figures import ColumnProfile, LookupCost, ProfileFigures

_UNITS = ("bytes", "KB", "MB", "GB", "TB", "PB")

_LEFT, _RIGHT = "left", "right"
_MAX_BOUND_LENGTH = 24
_BAR_WIDTH = 60  # pixels for a share of 1
_COLOUR = "#2b7bba"
_DISTINCT_PREFIXES = {"estimate": "~", "dictionary": "≤ ", "exact": "", "unknown": ""}
# Title and alignment of each column.
_COLUMNS = (
    ("column", _LEFT),
    ("type", _LEFT),
    ("nulls", _RIGHT),
    ("distinct", _RIGHT),
    ("min", _LEFT),
    ("max", _LEFT),
    ("size", _RIGHT),
    ("share", _RIGHT),
    ("codec", _LEFT),
    ("encoding", _LEFT),
    ("order", _LEFT),
    ("look-up", _RIGHT),
    ("1 % range", _RIGHT),
)
_LEGEND = (
    "look-up, 1 % range: the share of the bytes that a query for one value, or for 1 % of the rows, is expected to "
    "read with the existing bounds and Bloom filters; ~: an estimate, ≤: at most; ≥ and ≤ before bounds: no value "
    "lies beyond"
)

# Columns with a bar below the number.
_BARS: dict[str, Callable[[ColumnProfile], float | None]] = {
    "share": lambda column: column.share,
    "look-up": lambda column: _byte_share(column.lookup),
    "1 % range": lambda column: _byte_share(column.small_range),
    "nulls": lambda column: column.null_share,
}


def format_bytes(number: float) -> str:
    """Return a number of bytes with a decimal unit (1 KB is 1,000 bytes)."""
    place = 0
    while number >= 999.5 and place + 1 < len(_UNITS):
        number, place = number / 1000, place + 1
    return f"{number:,.0f} {_UNITS[place]}" if place == 0 or number >= 99.5 else f"{number:.1f} {_UNITS[place]}"


def escape_surrogates(text: str) -> str:
    """Escape lone surrogates in a text from a file, so that it can be encoded."""
    return text.encode("utf-8", "backslashreplace").decode()


def format_percent(share: float | None) -> str:
    """Return a share as a percentage, with more digits if it is small."""
    if share is None:
        return ""
    number = 100 * share
    if number == 0 or number >= 9.95:
        return f"{number:.0f} %"
    return f"{number:.1f} %" if number >= 0.1 else f"{number:.1g} %" if number >= 0.001 else "< 0.001 %"


def headline(profile: ProfileFigures) -> str:
    """Return a line on the size of the dataset."""
    files = f"{format_bytes(profile.smallest_file)} to {format_bytes(profile.largest_file)}"
    return (
        f"{profile.path}: {pluralize(profile.num_files, 'file')} ({files}), "
        f"{pluralize(profile.num_row_groups, 'row group')}, {pluralize(profile.num_rows, 'row')}, "
        f"{format_bytes(profile.size)}, {format_bytes(profile.uncompressed)} before compression"
    )


def _notes(profile: ProfileFigures) -> Iterator[str]:
    """Yield lines on the writers and the declared sort orders."""
    if profile.writers:
        yield "written by " + ", ".join(
            f"{name} ({pluralize(count, 'file')})" for name, count in profile.writers.items()
        )
    for words, count in profile.sorted_by.items():
        yield f"declared as sorted by {words}: {count:,} of {pluralize(profile.num_row_groups, 'row group')}"


def _row_cells(column: ColumnProfile) -> list[str]:
    codecs = list(column.codecs or ())
    encodings = list(column.page_encodings or column.encodings or ())
    return [
        column.name,
        column.type + (", a partition key" if column.is_partition else ""),
        _format_nulls(column),
        _format_distinct(column),
        _format_bound(column.min, column.min_exact, "≥"),
        _format_bound(column.max, column.max_exact, "≤"),
        "" if column.is_partition else format_bytes(column.compressed),
        "" if column.is_partition else format_percent(column.share),
        ", ".join(codecs),
        ", ".join(encodings[:2]),
        column.order,
        format_percent(column.lookup.num_bytes) if column.lookup else "",
        format_percent(column.small_range.num_bytes) if column.small_range else "",
    ]


def _format_nulls(column: ColumnProfile) -> str:
    if column.nulls is None:
        return "?"
    return format_percent(column.null_share) if column.nulls else "none"


def _format_distinct(column: ColumnProfile) -> str:
    return "?" if column.distinct is None else f"{_DISTINCT_PREFIXES[column.distinct_kind]}{column.distinct:,}"


def _format_bound(value: Any, is_exact: bool, sign: str) -> str:
    if value is None:
        return ""
    text = f"{value:,}" if type(value) is int else f"{value:.6g}" if isinstance(value, float) else str(value)
    text = "".join(letter if letter.isprintable() else "·" for letter in text)
    text = text if len(text) <= _MAX_BOUND_LENGTH else text[: _MAX_BOUND_LENGTH - 1] + "…"
    return text if is_exact else f"{sign} {text}"


def to_text(profile: ProfileFigures) -> str:
    """Return a profile as lines of text."""
    table = [[title for title, _ in _COLUMNS], *(_row_cells(column) for column in profile.columns)]
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    sides = [side for _, side in _COLUMNS]
    lines = [headline(profile), *(f"  {note}" for note in _notes(profile)), ""]
    for row in table:
        cells = (
            cell.rjust(width) if side == _RIGHT else cell.ljust(width)
            for cell, width, side in zip(row, widths, sides, strict=True)
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
    for title, side in _COLUMNS:
        table.add_column(title, justify=side, no_wrap=title in ("column", "size"))  # type: ignore[arg-type]
    for column in profile.columns:
        cells: list[Any] = [Text(cell) for cell in _row_cells(column)]
        if column.lookup is not None:
            cells[-2].stylize("green" if column.lookup.num_bytes < 0.1 else "red" if _reads_half(column) else "")
        table.add_row(*cells)
    parts: list[Any] = [Text(headline(profile), "bold"), *(Text(f"  {note}", "dim") for note in _notes(profile)), table]
    parts.append(Text(_LEGEND, "dim"))
    parts += [Text(f"→ {one}", "yellow") for one in profile.advice]
    parts += [Text(f"✗ {one}", "red") for one in profile.troubles]
    return Group(*parts)


def _reads_half(column: ColumnProfile) -> bool:
    return column.lookup is not None and column.lookup.num_bytes >= 0.5


def to_html(profile: ProfileFigures) -> str:
    """Return a profile as HTML: headline, table with bars, advice."""
    cell = 'style="text-align: {}; padding: 0 1em 0 0; white-space: nowrap"'
    head = "".join(f"<th {cell.format(side)}>{escape(title)}</th>" for title, side in _COLUMNS)
    rows = []
    for column in profile.columns:
        cells = []
        for (title, side), text in zip(_COLUMNS, _row_cells(column), strict=True):
            bar = _bar_html(_BARS[title](column)) if title in _BARS else ""
            cells.append(f"<td {cell.format(side)}>{escape(text)}{bar}</td>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    notes = "<br>".join(escape(note) for note in _notes(profile))
    lists = "".join(
        f"<p>{escape(title)}</p><ul>{''.join(f'<li>{escape(one)}</li>' for one in several)}</ul>"
        for title, several in (("Advice", profile.advice), ("Could not be read", profile.troubles))
        if several
    )
    return (
        f"<div><p><b>{escape(headline(profile))}</b><br>{notes}</p><table><tr>{head}</tr>{''.join(rows)}</table>"
        f'<p style="font-size: 11px">{escape(_LEGEND)}</p>{lists}</div>'
    )


def _byte_share(lookup: LookupCost | None) -> float | None:
    return None if lookup is None else lookup.num_bytes


def _bar_html(share: float | None) -> str:
    """Return a bar that shows a share."""
    if not share:
        return ""
    width = max(round(_BAR_WIDTH * min(share, 1.0)), 1)
    return (
        f'<div style="width: {_BAR_WIDTH}px; height: 3px; background: #8883"><div style="width: {width}px; height: '
        f'3px; background: {_COLOUR}"></div></div>'
    )
