"""``numparq plan``: which rows, pages and bytes of a file a filter leaves to be read, and what it is that cuts them."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from itertools import groupby

import numpy as np
from rich.console import Console
from rich.text import Text

from ..dataset.dataset import Dataset
from ..dataset.files import is_many
from ..plan.read_plan import ReadPlan
from ..plan.row_group_plan import RowGroupPlan
from ..plan.words import counted
from ..predicate.text import parse_for
from ..reader import ParquetFile

__all__ = ["folded", "page_map", "plan"]

_WIDTH = 72  # at most so many characters of a column's map, each a page or several
_LEAST_WIDTH = 8
_COUNT = 16  # characters behind a map: " 1,000 of 10,000"
_READ, _SOME, _SKIPPED = "#", "+", "."
_STYLES = {_READ: "green", _SOME: "yellow", _SKIPPED: "dim"}


def plan(file: str, filter: str | None, columns: str | None, pages: bool) -> None:
    """Print the plan of a read."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)
    if is_many(file):
        _plan_of_many(console, file, filter, columns)
        return
    with ParquetFile(file) as parquet:
        source = parquet.source
        opened = source.num_requests, source.num_bytes
        filters = None if filter is None else parse_for(filter, lambda: parquet.schema)
        found = parquet.plan(None if columns is None else columns.split(","), filters)
        _explain(console, found.explain())
        for what, requests, num_bytes in (
            ("the footer", *opened),
            ("planning", source.num_requests - opened[0], source.num_bytes - opened[1]),
        ):
            console.print(f"{what} took {counted(requests, 'request')}, {counted(num_bytes, 'byte')}", style="dim")
        if pages:
            for row in page_map(found, console.width):
                console.print(row, soft_wrap=True)


def _plan_of_many(console: Console, path: str, filter: str | None, columns: str | None) -> None:
    """Print the plan of a read of many files."""
    with Dataset(path) as dataset:
        filters = None if filter is None else parse_for(filter, lambda: dataset.schema)
        _explain(console, dataset.plan(None if columns is None else columns.split(","), filters).explain())


def _explain(console: Console, words: str) -> None:
    for number, line in enumerate(words.splitlines()):
        console.print(folded(line, console), style="" if number else "bold", markup=False, soft_wrap=True)


def folded(line: str, console: Console) -> str:
    """Fold a line at blanks where a terminal would cut words; what is not a terminal has lines of any length."""
    if not console.is_terminal:
        return line
    return textwrap.fill(line, console.width, subsequent_indent=" " * 6, break_long_words=False, break_on_hyphens=False)


# --- a map of pages ---------------------------------------------------------------------------------------------------


def page_map(found: ReadPlan, width: int = 200) -> Iterator[Text]:
    """Draw the pages of each column chunk: ``#`` is read, ``.`` is not; ``+``, of several pages, some.

    Parameters
    ----------
    found : ReadPlan
        The plan, of all row groups of a file.
    width : int
        Characters that a line may have, if the names of the columns are not too long.

    Yields
    ------
    rich.text.Text
        Lines.
    """
    longest = max(map(len, found.columns), default=0)
    most = max(min(_WIDTH, width - longest - len("  ") - len(" ") - _COUNT), _LEAST_WIDTH)
    for is_left, neighbours in groupby(found, lambda group: bool(group.rows)):
        groups = list(neighbours)
        if not is_left:
            yield Text(_skipped(groups), style="dim")
            continue
        for group in groups:
            yield Text(f"row group {group.ordinal}: {group.rows.count:,} of {counted(group.num_rows, 'row')}")
            for place, name in enumerate(found.columns):
                line = Text(f"  {name:<{longest}} ")
                for mark in _marks(group, place, most):
                    line.append(mark, _STYLES[mark])
                yield line.append(_count(group, place))


def _skipped(groups: list[RowGroupPlan]) -> str:
    first, last = groups[0].ordinal, groups[-1].ordinal
    return f"row group {first}: skipped" if first == last else f"row groups {first} to {last}: skipped"


def _count(group: RowGroupPlan, place: int) -> str:
    chunk = group.chunks[place]
    return f" {len(group.needed(place)):,} of {chunk.num_pages:,}" if chunk.is_indexed else " all pages"


def _marks(group: RowGroupPlan, place: int, most: int) -> str:
    is_read = np.zeros(group.chunks[place].num_pages, np.int64)
    is_read[group.needed(place)] = 1
    if not group.chunks[place].is_indexed:
        return _READ
    if len(is_read) <= most:
        return "".join(_READ if flag else _SKIPPED for flag in is_read.tolist())
    edges = np.arange(most + 1) * len(is_read) // most
    before = np.concatenate([[0], np.cumsum(is_read)])
    shares = (before[edges[1:]] - before[edges[:-1]]) / (edges[1:] - edges[:-1])
    return "".join(_READ if share == 1 else _SOME if share else _SKIPPED for share in shares.tolist())
