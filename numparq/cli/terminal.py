"""Output of the commands: a console that fits the terminal, and tables that lose nothing in a narrow one."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest
from typing import NoReturn

from rich.console import Console

_UNLIMITED = 1 << 15  # columns of output that is not a terminal: nothing is wrapped or cut off
_GAP = "  "
_LINES = 1000  # printed together
_MIN_NAME_WIDTH = 12
_ELLIPSIS = "…"
# Shares of a shortened name before its ellipsis, tried until all names are distinct.
_HEAD_SHARES = (0.5, 0.25, 0.75, 0.0, 1.0)


class _Console(Console):
    def on_broken_pipe(self) -> NoReturn:
        """Raise BrokenPipeError for `main`; rich would exit with status 1."""
        raise BrokenPipeError


def open_console() -> Console:
    """Return the console of standard output, as wide as the terminal, or without limit if it is none."""
    return _Console(highlight=False, width=None if sys.stdout.isatty() else _UNLIMITED)


def print_table(console: Console, titles: Sequence[str], rows: Sequence[Sequence[str]], list_column: int) -> None:
    """Print rows, each beginning with a name; as two tables if the terminal is too narrow for one.

    The columns up to `list_column` are words, the last of them a list that may wrap; the others are numbers.
    """
    columns = [list(cells) for cells in zip(titles, *rows, strict=True)]
    widths = [max(map(len, cells)) for cells in columns]
    fits = sum(widths) + len(_GAP) * (len(widths) - 1) <= console.width
    words, numbers = columns[1 : list_column + 1], columns[list_column + 1 :]
    for number, (listed, right) in enumerate([(words, numbers)] if fits else [(words, []), ([], numbers)]):
        if number:
            console.print()
        lines = _table_lines(columns[0], listed, right, console.width)
        console.print(next(lines), style="bold", markup=False, soft_wrap=True)
        while some := [*islice(lines, _LINES)]:
            console.print("\n".join(some), markup=False, soft_wrap=True)


def _table_lines(names: list[str], words: list[list[str]], numbers: list[list[str]], width: int) -> Iterator[str]:
    """Yield the lines of a table, given its columns with their titles; only names and the last of `words` give way."""
    natural = [max(map(len, cells)) for cells in (*words, *numbers)]
    lists = words[-1] if words else []
    longest_word = max((len(word) for cell in lists for word in cell.split()), default=0)
    spare = natural[len(words) - 1] - longest_word if words else 0
    room = width - sum(natural) - len(_GAP) * len(natural)
    name_width = min(max(map(len, names)), max(room + spare, _MIN_NAME_WIDTH))
    names = shorten_names(names, name_width)
    if words:
        natural[len(words) - 1] = max(natural[len(words) - 1] + min(room - name_width, 0), longest_word)
    sizes = [name_width, *natural]
    for row in zip(names, *words, *numbers, strict=True):
        for parts in zip_longest(*map(_wrap, row, sizes), fillvalue=""):
            cells = [
                part.ljust(size) if place <= len(words) else part.rjust(size)
                for place, (part, size) in enumerate(zip(parts, sizes, strict=True))
            ]
            yield _GAP.join(cells).rstrip()


def _wrap(cell: str, width: int) -> list[str]:
    return [cell] if len(cell) <= width else textwrap.wrap(cell, width, break_on_hyphens=False)


def shorten_names(names: Sequence[str], width: int) -> list[str]:
    """Shorten names to `width` characters in the middle; return them whole if they would not stay distinct."""
    for share in _HEAD_SHARES:
        shortened = [_shorten(name, width, share) for name in names]
        if len(set(shortened)) == len(set(names)):
            return shortened
    return list(names)


def _shorten(name: str, width: int, head_share: float) -> str:
    if len(name) <= width:
        return name
    head = int((width - len(_ELLIPSIS)) * head_share)
    tail = width - len(_ELLIPSIS) - head
    return name[:head] + _ELLIPSIS + name[len(name) - tail :]
