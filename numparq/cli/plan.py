"""`numparq plan`: print the read plan of a filter and draw which pages it reads."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.text import Text

from numparq.dataset.dataset import Dataset
from numparq.dataset.discover.files import is_dataset_path
from numparq.file.readable_file import ReadableFile
from numparq.keys.part_keys import keys_of_single_file
from numparq.plan.read_plan import ReadPlan
from numparq.plan.row_group_plan import RowGroupPlan
from numparq.scan.options import ScanOptions
from numparq.typing import TableFormat
from numparq.util.pluralize import pluralize

from .terminal import open_console

if TYPE_CHECKING:
    from numparq.crypto.key import KeySource

_WIDTH = 72  # maximum characters of a column's map; each is one page or more
_MIN_WIDTH = 8
_COUNT_WIDTH = 16  # characters after a map: " 1,000 of 10,000"
_READ, _PARTIAL, _SKIPPED = "#", "+", "."
_STYLES = {_READ: "green", _PARTIAL: "yellow", _SKIPPED: "dim"}


def plan(
    file: str,
    filter: str | None,
    columns: list[str] | None,
    pages: bool,
    table_format: TableFormat,
    decryption: KeySource | None = None,
) -> None:
    """Print the read plan of a file or a dataset and, with `pages`, the maps of the pages."""
    console = open_console()
    if is_dataset_path(file):
        with Dataset(file, table_format=table_format, decryption=decryption) as dataset:
            _plan_dataset(console, dataset, filter, columns, pages)
        return
    with ReadableFile(file, decryption=keys_of_single_file(decryption, file)) as parquet:
        source = parquet.source
        opened = source.num_requests, source.num_bytes
        found = parquet.plan(columns, ScanOptions(filters=filter))
        _print_plan(console, found.explain())
        for what, requests, num_bytes in (
            ("the footer", *opened),
            ("planning", source.num_requests - opened[0], source.num_bytes - opened[1]),
        ):
            console.print(f"{what} took {pluralize(requests, 'request')}, {pluralize(num_bytes, 'byte')}", style="dim")
        if pages:
            _print_page_map(console, found)


def _plan_dataset(
    console: Console, dataset: Dataset, filter: str | None, columns: list[str] | None, pages: bool
) -> None:
    """Print the read plan of a dataset and, with `pages`, the map of each file that is read."""
    found = dataset.plan(columns, filter)
    _print_plan(console, found.explain())
    for name, of_file in found.files if pages else ():
        if of_file.left:
            console.print(f"{name}:", markup=False, soft_wrap=True)
            _print_page_map(console, of_file)


def _print_page_map(console: Console, found: ReadPlan) -> None:
    for row in page_map(found, console.width):
        console.print(row, soft_wrap=True)


def _print_plan(console: Console, words: str) -> None:
    for number, line in enumerate(words.splitlines()):
        console.print(wrap_line(line, console), style="" if number else "bold", markup=False, soft_wrap=True)


def wrap_line(line: str, console: Console) -> str:
    """Wrap a line at blanks to the width of the terminal; output that is not a terminal keeps long lines."""
    if not console.is_terminal:
        return line
    return textwrap.fill(line, console.width, subsequent_indent=" " * 6, break_long_words=False, break_on_hyphens=False)


# --- page map ---------------------------------------------------------------------------------------------------------


def page_map(found: ReadPlan, width: int = 200) -> Iterator[Text]:
    """Yield lines that draw the pages of each column chunk: ``#`` is read, ``.`` is not.

    One ``+`` stands for several pages of which some are read. Long column names may exceed `width` characters.
    """
    longest = max(map(len, found.columns), default=0)
    most = max(min(_WIDTH, width - longest - len("  ") - len(" ") - _COUNT_WIDTH), _MIN_WIDTH)
    for is_left, neighbours in groupby(found, lambda group: bool(group.rows)):
        groups = list(neighbours)
        if not is_left:
            yield Text(_skipped_row_groups(groups), style="dim")
            continue
        for group in groups:
            yield Text(f"row group {group.ordinal}: {group.rows.count:,} of {pluralize(group.num_rows, 'row')}")
            for place, name in enumerate(found.columns):
                line = Text(f"  {name:<{longest}} ")
                for mark in _page_marks(group, place, most):
                    line.append(mark, _STYLES[mark])
                yield line.append(_page_count(group, place))


def _skipped_row_groups(groups: list[RowGroupPlan]) -> str:
    first, last = groups[0].ordinal, groups[-1].ordinal
    return f"row group {first}: skipped" if first == last else f"row groups {first} to {last}: skipped"


def _page_count(group: RowGroupPlan, place: int) -> str:
    chunk = group.chunks[place]
    return f" {len(group.pages_with_rows(place)):,} of {chunk.num_pages:,}" if chunk.is_indexed else " all pages"


def _page_marks(group: RowGroupPlan, place: int, most: int) -> str:
    is_read = np.zeros(group.chunks[place].num_pages, np.int64)
    is_read[group.pages_with_rows(place)] = 1
    if not group.chunks[place].is_indexed:
        return _READ
    if len(is_read) <= most:
        return "".join(_READ if flag else _SKIPPED for flag in is_read.tolist())
    edges = np.arange(most + 1) * len(is_read) // most
    before = np.concatenate([[0], np.cumsum(is_read)])
    shares = (before[edges[1:]] - before[edges[:-1]]) / (edges[1:] - edges[:-1])
    return "".join(_READ if share == 1 else _PARTIAL if share else _SKIPPED for share in shares.tolist())
